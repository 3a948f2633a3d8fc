//! The verbs, a file each. `Args` is what the user types, `run` does it.

pub mod build;
pub mod clean;
pub mod client;
pub mod client_process;
pub mod cmp;
pub mod doctor;
pub mod history;
pub mod keeper;
pub mod kill;
pub mod list;
pub mod new;
pub mod origin;
pub mod publish;
pub mod rank;
pub mod report;
pub mod run;
pub mod selftest;
pub mod serve;
pub mod verify;
