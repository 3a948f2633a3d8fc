//! Open files, as far as a process may raise their limit by itself.

use crate::doctor::FILES_BESIDES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lifts this process's limits, which servers and clients inherit, as far as
/// `connections` need and the system lets it; the doctor then says what is
/// missing.
pub fn raise_files(connections: u32) {
    let files = u64::from(connections) + FILES_BESIDES;
    let have = getrlimit(Resource::Nofile);
    let at_least = |limit: Option<u64>| limit.map(|limit| limit.max(files));
    let wanted = Rlimit {
        current: at_least(have.current),
        maximum: at_least(have.maximum),
    };
    // Only root may lift the hard limit; whether it worked is seen by reading it.
    if setrlimit(Resource::Nofile, wanted).is_err() {
        let soft = Rlimit {
            current: have.maximum,
            maximum: have.maximum,
        };
        let _ = setrlimit(Resource::Nofile, soft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_follows_what_is_needed() {
        let before = getrlimit(Resource::Nofile);
        raise_files(100);
        let soft = getrlimit(Resource::Nofile).current;
        assert!(soft.is_none_or(|soft| soft >= 100 + FILES_BESIDES));
        assert!(soft >= before.current || soft.is_none());
    }
}
