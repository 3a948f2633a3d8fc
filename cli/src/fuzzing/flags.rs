//! Command lines.

use super::assert_one_line;
use super::words::written;
use crate::Cli;
use crate::args::load::LoadArgs;
use crate::args::{legacy, refusal, units};
use crate::profile::Profile;
use clap::Parser;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// Arguments end with a zero byte.
const WORDS: [&str; 48] = [
    "\0",
    "client\0",
    "run\0",
    "serve\0",
    "report\0",
    "build\0",
    "verify\0",
    "list\0",
    "kill\0",
    "-",
    "--",
    "=",
    ",",
    "axum\0",
    "-f=",
    "-c",
    "-b=1024\0",
    "-n=",
    "-en=",
    "-rate",
    "-check=",
    "-rr=100\0",
    "-dc=1000\0",
    "-dt=5s\0",
    "-rd=",
    "-pi=",
    "-preffix=a_\0",
    "-m=4294967296\0",
    "-ep\0",
    "-r\0",
    "-tpn=",
    "--echo",
    "--text\0",
    "--connections=",
    "--payload=1,",
    "--rounds=3\0",
    "--sample-interval=",
    "--rate-duration\0",
    "--profile\0",
    "--",
    "true\0",
    "false\0",
    "5s\0",
    "1m30s\0",
    "100ms\0",
    "-1\0",
    "18446744073709551616\0",
    "--help\0",
];

#[derive(Parser)]
struct Loads {
    #[command(flatten)]
    load: LoadArgs,
    names: Vec<String>,
}

/// Words of a command line that the program writes, and the same as a duration.
pub fn check(program: &[u8]) {
    let line = written(&WORDS, program);
    let mut args = vec![OsString::from("wsbench")];
    let typed = line
        .strip_suffix(b"\0")
        .unwrap_or(&line)
        .split(|byte| *byte == 0);
    args.extend(typed.map(|arg| OsString::from_vec(arg.to_vec())));
    let count = args.len();
    let rewritten = legacy::rewrite(args);
    assert!(rewritten.args.len() <= count);
    for notice in &rewritten.notices {
        assert_one_line(notice);
    }
    if let Err(error) = Cli::try_parse_from(&rewritten.args)
        && error.use_stderr()
    {
        assert!(!refusal::one_line(&error.render().to_string()).contains('\n'));
    }
    if let Ok(Loads { load, names }) = Loads::try_parse_from(rewritten.args.iter().skip(1)) {
        drop(names);
        loads(&load);
    }
    let text = String::from_utf8_lossy(&line);
    for text in text.split('\0') {
        if let Err(error) = units::whole_millis(text) {
            assert_one_line(error.replace(text, "").as_str());
        }
    }
}

fn loads(args: &LoadArgs) {
    let client = Profile::client();
    match args.loads(&client) {
        Err(error) => assert_one_line(&error.to_string()),
        Ok(loads) => {
            assert!((1..=Profile::LOADS_MAX).contains(&loads.len()));
            assert!(loads.iter().all(|load| load.validate().is_ok()));
        }
    }
    if let Ok(notes) = args.notes(None) {
        notes.iter().for_each(|note| assert_one_line(note));
    }
    assert!(args.interval(None) >= Profile::SAMPLE_INTERVAL_MIN);
}
