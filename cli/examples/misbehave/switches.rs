//! The flags of the contract, and what to do wrong.

use clap::{ArgAction, Parser};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Echoes are numbered from 1 over all connections in the order in which the messages were read.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub struct Switches {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// One port or FIRST-LAST.
    #[arg(long, value_parser = ports)]
    pub ports: RangeInclusive<u16>,
    /// TCP_NODELAY.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    pub nodelay: bool,
    /// Larger messages are refused with 1009.
    #[arg(long, default_value_t = 16 << 20)]
    pub max_message: usize,
    /// Ignored: a thread a connection.
    #[arg(long)]
    pub threads: Option<u32>,

    /// Go wrong with messages of that many bytes alone. The others are echoed
    /// rightly and not numbered, so that who examines the server first finds nothing.
    #[arg(long)]
    pub only_bytes: Option<usize>,
    /// Sleep before each echo.
    #[arg(long, default_value_t = 0)]
    pub sleep_us: u64,
    /// With --sleep-us: a line an echo, the nanoseconds from the end of reading
    /// the message to the begin of writing the answer. With --burn-ns: a line
    /// with what was burnt. With --work-each-steps: a line for each 64th echo, the
    /// nanoseconds that the work took. Appended at exit, on SIGTERM and after the
    /// burning.
    #[arg(long)]
    pub log: Option<PathBuf>,
    /// Touch and keep that much memory from the start.
    #[arg(long, default_value_t = 0)]
    pub hold_bytes: usize,
    /// Once: one thread spins until the CPU clock of the process, the other
    /// threads' part included, is that much further.
    #[arg(long, default_value_t = 0)]
    pub burn_ns: u64,
    /// How many echoes to serve before --burn-ns begins; 0 = at the start.
    #[arg(long, default_value_t = 0)]
    pub burn_after_echoes: u64,
    /// Spin that much CPU time of the connection's thread before each echo.
    #[arg(long, default_value_t = 0)]
    pub burn_each_ns: u64,
    /// Do that many steps of arithmetic before each echo: unlike CPU time that is
    /// burnt by the clock, it takes longer where everything takes longer, and no
    /// reading of a clock is added to it.
    #[arg(long, default_value_t = 0)]
    pub work_each_steps: u64,
    /// Once: no connection answers for that long.
    #[arg(long, default_value_t = 0)]
    pub stall_once_ms: u64,
    /// How long after the first echo --stall-once-ms begins.
    #[arg(long, default_value_t = 0)]
    pub stall_after_ms: u64,
    /// Flip one bit of each Nth echo.
    #[arg(long)]
    pub corrupt_every: Option<u64>,
    /// Exit with code 1 once the Nth echo is written.
    #[arg(long)]
    pub die_after: Option<u64>,
    /// Read but never answer after N echoes; 0 = from the start.
    #[arg(long)]
    pub mute_after: Option<u64>,
    /// Connections that may wait to be accepted, and one more.
    #[arg(long)]
    pub backlog: Option<i32>,
    /// Once, after the first connection: accept no other for that long.
    #[arg(long, default_value_t = 0)]
    pub accept_stall_ms: u64,
    /// Run without listening.
    #[arg(long)]
    pub no_listen: bool,
    /// Exit with code 1 before listening.
    #[arg(long)]
    pub exit_at_start: bool,
    /// Do not leave on SIGTERM (the log is written all the same).
    #[arg(long)]
    pub ignore_sigterm: bool,
    /// Run the server in a grandchild. Only it handles SIGTERM.
    #[arg(long)]
    pub fork: bool,
    /// Each Nth echo is text instead of binary or the other way round.
    #[arg(long)]
    pub wrong_opcode_every: Option<u64>,
    /// Each Nth echo lacks its last byte (or has one, if the message was empty).
    #[arg(long)]
    pub wrong_length_every: Option<u64>,
    /// A close frame instead of each Nth echo.
    #[arg(long)]
    pub close_every: Option<u64>,
    /// Copy the connection's descriptor after each echo and never close it.
    #[arg(long)]
    pub leak: bool,
    /// A wrong Sec-WebSocket-Accept.
    #[arg(long)]
    pub bad_accept: bool,
    /// Answer the upgrade with this status instead of 101.
    #[arg(long)]
    pub status: Option<u16>,

    /// How many processes below the first this one is.
    #[arg(long, hide = true, default_value_t = 0, overrides_with = "generation")]
    pub generation: u32,
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| {
        text.parse::<u16>()
            .map_err(|error| format!("`{text}` is no port: {error}"))
    };
    let range = port(first)?..=port(last)?;
    if range.is_empty() {
        return Err(format!("`{text}` is an empty range"));
    }
    Ok(range)
}
