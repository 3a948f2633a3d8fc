//! What the machine allows this process: CPUs and open files.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many CPUs this process may run on: its affinity mask, as the harness set it.
///
/// `std::thread::available_parallelism` is not the same: it also applies a
/// cgroup's CPU quota, and a quota says how long threads may run, not where.
///
/// # Errors
/// When the kernel refuses to say.
pub fn allowed_cpus() -> io::Result<usize> {
    let cpus = rustix::thread::sched_getaffinity(None)?;
    Ok((cpus.count() as usize).max(1))
}

/// Raises the soft limit of open files to the hard one, which needs no privilege,
/// and returns it (`None` is unlimited).
///
/// # Errors
/// When the kernel refuses.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )?;
    }
    Ok(limit.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_open_files_becomes_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        // Only just lower: the other tests of this process open files meanwhile.
        let lowered = hard.map_or(4096, |hard| hard - 1);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(lowered),
                maximum: hard,
            },
        )
        .unwrap();
        assert_eq!(raise_open_files().unwrap(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }

    #[test]
    fn the_cpus_are_those_of_the_affinity_mask() {
        let cpus = std::thread::spawn(|| {
            let mut one = rustix::thread::sched_getaffinity(None).unwrap();
            let first = (0..1024).find(|&cpu| one.is_set(cpu)).unwrap();
            one.clear();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            allowed_cpus().unwrap()
        });
        assert_eq!(cpus.join().unwrap(), 1);
    }
}
