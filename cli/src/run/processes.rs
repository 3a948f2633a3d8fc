//! How many client and server processes carry a load. One a side where the
//! machine's limits allow; where one may not hold so many sockets, as many as it takes.

use crate::doctor::{FILES_BESIDES, files_remedy};
use anyhow::bail;
use std::fmt;
use std::str::FromStr;
use wsbench_report::units::counted;

/// What the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// As many as it takes.
    #[default]
    Auto,
    /// So many.
    Fixed(u32),
}

/// Processes of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// Clients.
    pub client: u32,
    /// Servers.
    pub server: u32,
}

/// Connections that a process can hold that may open so many files at most.
pub fn each_most(nofile_hard: Option<u64>) -> u32 {
    let files = nofile_hard.unwrap_or(u64::MAX);
    u32::try_from(files.saturating_sub(FILES_BESIDES)).unwrap_or(u32::MAX)
}

impl Processes {
    /// For so many connections, of which a client process can hold `each_most`, and a
    /// server process as many as have `descriptors` files each.
    pub fn of(
        connections: u32,
        client: Count,
        server: Count,
        each_most: u32,
        descriptors: u32,
    ) -> Self {
        let side = |count, each_most| match count {
            // Where not even one connection fits, more processes do not help.
            Count::Auto if each_most == 0 => 1,
            Count::Auto => connections.div_ceil(each_most).max(1),
            Count::Fixed(count) => count,
        };
        Self {
            client: side(client, each_most),
            server: side(server, each_most / descriptors),
        }
    }

    /// Whether either side has more than one.
    pub fn are_several(self) -> bool {
        self.client > 1 || self.server > 1
    }

    /// Refuses counts with which a process would have to hold more than it can.
    pub fn check(
        self,
        connections: u32,
        descriptors: u32,
        nofile_hard: Option<u64>,
    ) -> anyhow::Result<()> {
        let each_most = each_most(nofile_hard);
        let held = counted(connections.into(), "connection");
        if let (0, Some(hard)) = (each_most, nofile_hard) {
            bail!(
                "cannot hold {held}: the nofile hard limit of {hard} is below the {} files that a \
                 process with one connection needs (run: {})",
                FILES_BESIDES + 1,
                files_remedy(u64::from(connections) + FILES_BESIDES)
            );
        }
        for (side, count, each_most) in [
            ("client", self.client, each_most),
            ("server", self.server, each_most / descriptors),
        ] {
            let each = connections.div_ceil(count.max(1));
            if each_most == 0 {
                bail!(
                    "cannot hold {held}: one takes {descriptors} files in the server, more than a process may open \
                     (lower `descriptors` in its manifest, or run: {})",
                    files_remedy(u64::from(descriptors) + FILES_BESIDES)
                );
            }
            if each > each_most {
                let least = connections.div_ceil(each_most.max(1));
                let processes = counted(count.into(), &format!("{side} process"));
                bail!(
                    "cannot hold {held} in {processes}: each can open {each_most} (use --{side}-processes {least} or more, or auto)"
                );
            }
        }
        Ok(())
    }

    /// Refuses servers of which some would have no connection under a load.
    pub fn check_share(self, connections: u32) -> anyhow::Result<()> {
        if self.server > connections {
            bail!(
                "{} cannot be shared by {}: some would have none (use --server-processes \
                 {connections} or fewer, or more connections)",
                counted(connections.into(), "connection"),
                counted(self.server.into(), "server process"),
            );
        }
        Ok(())
    }
}

impl fmt::Display for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} processes", self.client, self.server)
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(count)) if count > 0 => Ok(Self::Fixed(count)),
            _ => Err("write a number from 1 on, or auto".into()),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(count) => count.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_a_side_is_enough_until_its_files_are_not() {
        let auto = |connections| Processes::of(connections, Count::Auto, Count::Auto, 19_800, 1);
        let both = |count| Processes {
            client: count,
            server: count,
        };
        assert_eq!(each_most(Some(20_000)), 19_800);
        assert_eq!(each_most(None), u32::MAX);
        assert_eq!(auto(10_000), both(1));
        assert_eq!(auto(19_800), both(1));
        assert_eq!(auto(19_801), both(2));
        assert_eq!(auto(1_000_000), both(51));
        let fixed = Processes::of(10, Count::Fixed(3), Count::Fixed(2), 19_800, 1);
        assert_eq!(fixed.to_string(), "3 x 2 processes");
    }

    #[test]
    fn counts_read_back_as_they_are_written() {
        for text in ["auto", "1", "52"] {
            assert_eq!(text.parse::<Count>().unwrap().to_string(), text);
        }
        for text in ["0", "-1", "all", ""] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_process_that_would_hold_too_many_is_refused_with_the_number_that_works() {
        let counts = Processes {
            client: 6,
            server: 2,
        };
        let hard = Some(20_000);
        counts.check(30_000, 1, hard).unwrap();
        let error = counts.check(100_000, 1, hard).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot hold 100000 connections in 2 server processes: each can open 19800 \
             (use --server-processes 6 or more, or auto)"
        );
    }

    #[test]
    fn a_limit_below_what_any_process_needs_is_not_solved_by_more_processes() {
        let hard = Some(150);
        let counts = Processes::of(1_500, Count::Auto, Count::Auto, each_most(hard), 1);
        assert!(!counts.are_several());
        for counts in [
            counts,
            Processes {
                client: 1_500,
                server: 1_500,
            },
        ] {
            let error = counts.check(1_500, 1, hard).unwrap_err().to_string();
            let expected = "cannot hold 1500 connections: the nofile hard limit of 150 is below \
                            the 201 files that a process with one connection needs (run: ulimit -n \
                            1870 ";
            assert!(error.starts_with(expected), "{error}");
        }
        counts.check(1, 1, Some(201)).unwrap();
    }

    #[test]
    fn server_processes_without_a_connection_are_refused() {
        let counts = Processes {
            client: 1,
            server: 5,
        };
        counts.check_share(5).unwrap();
        let error = counts.check_share(1).unwrap_err().to_string();
        assert_eq!(
            error,
            "1 connection cannot be shared by 5 server processes: some would have none (use \
             --server-processes 1 or fewer, or more connections)"
        );
    }
}
