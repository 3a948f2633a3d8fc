//! What the machine allows this process, with the remedy for each limit.

use crate::EngineError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside the connections: epolls, timers, standard streams, logs.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit of open files to what `connections` need.
///
/// # Errors
/// If the hard limit is lower; the message has the command that lifts it.
pub fn allow_connections(connections: u32) -> Result<(), EngineError> {
    let needed = u64::from(connections) + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if hard < needed {
        return Err(EngineError::OpenFiles {
            connections,
            hard,
            needed,
        });
    }
    if limit.current.is_some_and(|soft| soft < needed) {
        let raised = Rlimit {
            current: Some(hard),
            maximum: limit.maximum,
        };
        let refused = |error: rustix::io::Errno| {
            EngineError::System("raise the limit of open files".into(), error.into())
        };
        setrlimit(Resource::Nofile, raised).map_err(refused)?;
    }
    Ok(())
}

/// Raises the soft limit of open files as far as it goes: who accepts connections
/// does not know how many will come.
///
/// # Errors
/// If the system refuses.
pub fn allow_all() -> Result<(), EngineError> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| EngineError::System("raise the limit of open files".into(), error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hard_limit_refuses_comes_with_its_remedy() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else {
            return;
        };
        let too_many = u32::try_from(hard).unwrap_or(u32::MAX);
        if u64::from(too_many) + OTHER_FILES > hard {
            let error = allow_connections(too_many).unwrap_err().to_string();
            assert!(error.contains("ulimit -Hn"), "{error}");
        }
        allow_connections(10).unwrap();
    }
}
