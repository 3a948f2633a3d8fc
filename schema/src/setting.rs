//! Names of settings of plans and records that more than one crate asks for.

/// In a record: the subject that its own is compared with, and differs from in
/// nothing but the crates of [`PATCHED`].
pub const PATCH_OF: &str = "patch_of";
/// In a plan, with a crate's name behind it: where that crate is taken from.
pub const PATCH: &str = "patch.";
/// In a record, with a crate's name behind it: its version.
pub const PATCHED: &str = "patched.";
