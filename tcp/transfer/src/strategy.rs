//! The strategies: what one is, and the list of them.
//!
//! A new one is a file here, a line in the list and a `variants` entry in `Cargo.toml`.

mod heap;
mod per_read;
mod pool;
mod pool_threads;
mod provided;
mod slab;
mod stack;
mod task;
mod thread_local;

use std::net::TcpListener;

use wsbench_server_kit::Result;

use crate::options::Options;

/// A way to echo bytes.
#[derive(Debug, Clone, Copy)]
pub struct Strategy {
    /// As `--strategy` names it.
    pub name: &'static str,
    /// Where the buffer is, and who serves a connection, in one line.
    pub about: &'static str,
    /// Serves all listeners; returns only when that has become impossible.
    pub run: fn(&Options, Vec<TcpListener>) -> Result<()>,
}

/// All of them, in the order of the documentation.
pub const STRATEGIES: &[Strategy] = &[
    stack::STRATEGY,
    pool::STRATEGY,
    task::STRATEGY,
    heap::STRATEGY,
    per_read::STRATEGY,
    thread_local::STRATEGY,
    pool_threads::STRATEGY,
    provided::STRATEGY,
    slab::STRATEGY,
];

/// Calls `$serve::<N>(arguments)` with the run-time length as a constant: an array's length is part of its type.
macro_rules! with_array_of {
    ($bytes:expr, $serve:ident($($argument:expr),*)) => {
        match $bytes {
            4_096 => $serve::<4_096>($($argument),*),
            8_192 => $serve::<8_192>($($argument),*),
            16_384 => $serve::<16_384>($($argument),*),
            32_768 => $serve::<32_768>($($argument),*),
            65_536 => $serve::<65_536>($($argument),*),
            131_072 => $serve::<131_072>($($argument),*),
            262_144 => $serve::<262_144>($($argument),*),
            524_288 => $serve::<524_288>($($argument),*),
            1_048_576 => $serve::<1_048_576>($($argument),*),
            other => Err(format!("no array of {other} bytes was compiled in (give --buffer a power of two)").into()),
        }
    };
}
use with_array_of;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_has_a_variant_a_strategy_and_no_other() {
        let manifest: toml::Table = include_str!("../Cargo.toml").parse().unwrap();
        let variants = manifest["package"]["metadata"]["wsbench"]["variants"]
            .as_array()
            .unwrap();
        let declared: Vec<_> = variants
            .iter()
            .map(|variant| {
                let arguments = variant["args"].as_array().unwrap().iter();
                let words = [&variant["name"], &variant["about"]]
                    .into_iter()
                    .chain(arguments);
                words.map(|word| word.as_str().unwrap()).collect::<Vec<_>>()
            })
            .collect();
        let registered: Vec<_> = STRATEGIES
            .iter()
            .map(|strategy| vec![strategy.name, strategy.about, "--strategy", strategy.name])
            .collect();
        assert_eq!(declared, registered);
    }

    #[test]
    fn every_length_that_the_flag_allows_is_compiled_in() {
        fn length<const BYTES: usize>() -> Result<usize> {
            Ok(BYTES)
        }
        for bytes in (12..=20).map(|power| 1_usize << power) {
            assert_eq!(with_array_of!(bytes, length()).unwrap(), bytes);
        }
    }
}
