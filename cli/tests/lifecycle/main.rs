//! The life of a server as real processes: keeper, `serve`, its control API, `kill`.

mod control;
mod keeper;
mod kill;
mod origin;
mod project;
mod serve;
