//! The methods there are. To add one: its file, its `mod` line and its entry here,
//! and its entry of `variants` in Cargo.toml.

mod adaptive;
mod bufio;
mod io_copy;
mod io_copy_buffer;
mod io_copy_direct;
mod io_pipe;
mod io_uring;
mod io_uring_splice;
mod readv_writev;
mod realm_io;
mod sendfile;
mod splice;
mod syscall;
mod tokio_splice;
pub mod unix_syscall;
mod zerocopy;

use std::io;

use crate::relay::Relay;

/// One way to copy bytes between two sockets.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What `--method` calls it, and the name of its file.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What files it opens for connections.
    pub files: Files,
    /// Relays until the process ends; what it returns is why it could not.
    pub run: fn(&'static Relay) -> io::Result<()>,
}

/// What files a method opens for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Two sockets each.
    Sockets,
    /// Two sockets each, and a pipe each way as long as the connection.
    SocketsAndPipes,
    /// Two sockets each, and pipes or files of a pool while there are bytes in them.
    SocketsAndPool,
}

impl Files {
    /// How many a connection has by itself.
    pub fn of_connection(self) -> usize {
        match self {
            Self::Sockets | Self::SocketsAndPool => 2,
            Self::SocketsAndPipes => 6,
        }
    }
}

pub const METHODS: &[Method] = &[
    io_pipe::METHOD,
    io_copy::METHOD,
    io_copy_buffer::METHOD,
    syscall::METHOD,
    io_copy_direct::METHOD,
    unix_syscall::METHOD,
    bufio::METHOD,
    splice::METHOD,
    sendfile::METHOD,
    readv_writev::METHOD,
    io_uring::METHOD,
    io_uring_splice::METHOD,
    zerocopy::METHOD,
    adaptive::METHOD,
    tokio_splice::METHOD,
    realm_io::METHOD,
];

pub fn find(name: &str) -> Option<Method> {
    METHODS.iter().find(|method| method.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_has_a_variant_for_every_method_and_no_other() {
        let manifest = include_str!("../Cargo.toml");
        let mut variants: Vec<&str> = manifest
            .lines()
            .filter(|line| line.trim_start().starts_with("{ name = "))
            .collect();
        for method in METHODS {
            let Method { name, about, .. } = method;
            let start = format!(
                "{{ name = \"{name}\", args = [\"--method\", \"{name}\"], about = \"{about}\""
            );
            let before = variants.len();
            variants.retain(|line| !line.trim_start().starts_with(&start));
            assert_eq!(
                before - variants.len(),
                1,
                "no variant in Cargo.toml starts {start}"
            );
        }
        assert!(variants.is_empty(), "no method for {variants:?}");
    }
}
