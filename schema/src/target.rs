//! Where a client sends its load.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Listening ports, both ends included: `10001-10010`, or `10001` for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

/// A port range that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a range of ports: write FIRST-LAST or one port, from 1 to 65535")]
pub struct PortRangeError(String);

impl PortRange {
    /// `count` ports from `first` on; `None` if they go beyond 65535 or are none.
    #[must_use]
    pub fn starting_at(first: u16, count: u16) -> Option<Self> {
        let last = first.checked_add(count.checked_sub(1)?)?;
        (first > 0).then_some(Self { first, last })
    }

    /// Every port of the range.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        self.first..=self.last
    }

    /// Number of ports; at least 1.
    #[must_use]
    pub fn count(self) -> usize {
        usize::from(self.last - self.first) + 1
    }

    /// Whether the port belongs to the range.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || PortRangeError(text.to_owned());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        let (first, last) = (
            port(first).ok_or_else(wrong)?,
            port(last).ok_or_else(wrong)?,
        );
        if first > last {
            return Err(wrong());
        }
        Ok(Self { first, last })
    }
}

impl TryFrom<String> for PortRange {
    type Error = PortRangeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> Self {
        range.to_string()
    }
}

/// A WebSocket service: `ws://HOST:PORT[-PORT]/PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// A name or an address; an IPv6 address has no brackets here.
    pub host: String,
    /// The ports, used in turn by the connections.
    pub ports: PortRange,
    /// Path and query, with the leading slash.
    pub path: String,
}

/// A URL that is not a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Encrypted or other schemes.
    #[error("`{0}`: only ws:// is supported (no TLS), as in ws://127.0.0.1:10001-10010/ws")]
    Scheme(String),
    /// Something is missing between scheme and path.
    #[error("`{0}`: write ws://HOST:PORT[-PORT]/PATH, as in ws://127.0.0.1:10001-10010/ws")]
    Form(String),
    /// The ports cannot be read.
    #[error("`{url}`: {cause}")]
    Ports {
        /// The whole URL.
        url: String,
        /// What is wrong with them.
        cause: PortRangeError,
    },
}

impl Target {
    /// The path that every server under test serves.
    pub const DEFAULT_PATH: &str = "/ws";
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let form = || TargetError::Form(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(form)?;
        if !scheme.eq_ignore_ascii_case("ws") {
            return Err(TargetError::Scheme(url.to_owned()));
        }
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let (host, ports) = authority.rsplit_once(':').unwrap_or((authority, "80"));
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let printable = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let plain_host = !host.contains(['@', '[', ']']) && (bare.is_some() || !host.contains(':'));
        if host.is_empty()
            || !plain_host
            || !printable(host)
            || !printable(path)
            || path.contains('#')
        {
            return Err(form());
        }
        let ports = ports.parse().map_err(|cause| TargetError::Ports {
            url: url.to_owned(),
            cause,
        })?;
        let path = match path.as_bytes().first() {
            Some(b'/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        Ok(Self {
            host: host.to_owned(),
            ports,
            path,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "ws://[{}]:{}{}", self.host, self.ports, self.path)
        } else {
            write!(f, "ws://{}:{}{}", self.host, self.ports, self.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_reads_back_as_it_was_written() {
        for url in [
            "ws://127.0.0.1:10001-10010/ws",
            "ws://[::1]:80/",
            "ws://host:9/a?b=c",
        ] {
            assert_eq!(url.parse::<Target>().unwrap().to_string(), url);
        }
        assert_eq!(
            "ws://host".parse::<Target>().unwrap().to_string(),
            "ws://host:80/"
        );
        assert_eq!("ws://host:1?q".parse::<Target>().unwrap().path, "/?q");
    }

    #[test]
    fn wrong_urls_are_named() {
        for url in [
            "wss://h:1/",
            "http://h/",
            "h:1/ws",
            "ws://:1/",
            "ws://a@h:1/",
            "ws://h:1/\r\nX: y",
        ] {
            let error = url.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(url), "{error}");
        }
        for ports in ["0", "2-1", "65536", "1-", "-1", "1-2-3", ""] {
            assert!(
                format!("ws://h:{ports}/").parse::<Target>().is_err(),
                "{ports}"
            );
        }
    }

    #[test]
    fn a_range_of_ports_counts_both_ends() {
        let range: PortRange = "10001-10010".parse().unwrap();
        assert_eq!((range.count(), range.iter().next()), (10, Some(10001)));
        assert!(range.contains(10010) && !range.contains(10011));
        assert_eq!(PortRange::starting_at(65535, 2), None);
        assert_eq!(PortRange::starting_at(1, 0), None);
    }
}
