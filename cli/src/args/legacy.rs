//! The flags of go-websocket-benchmark, as its users type them: by Go's rules,
//! `-x=value`, `-x value`, a bare `-x` for a boolean, one dash or two. They
//! become the long flags; what has no meaning here is said so on stderr.

use super::units::boolean;
use crate::progress::note;
use std::collections::VecDeque;
use std::ffi::OsString;

/// What a flag of the original becomes.
#[derive(Clone, Copy)]
enum Becomes {
    /// A long flag with the same value.
    Long(&'static str),
    /// A long flag whose value is a boolean.
    Switch(&'static str),
    /// A long flag with a duration, which the original takes in plain seconds.
    Seconds(&'static str),
    /// A long flag with a duration, which the original takes in plain milliseconds.
    Millis(&'static str),
    /// A name that stands by itself: `build -f=axum` is `build axum`.
    Name,
    /// A long flag without a value, if the boolean is true.
    Bare(&'static str),
    /// Nothing, for this reason. The flag takes a value.
    Nothing(&'static str),
    /// Nothing, for this reason. The flag is a boolean.
    NoSwitch(&'static str),
}
use Becomes::{Bare, Long, Millis, Name, NoSwitch, Nothing, Seconds, Switch};

const NO_PROFILER: &str = "no profiler runs inside a measurement";
const NO_MEMORY_LIMIT: &str = "memory is measured, not limited";
const NO_READ_BUFFER: &str = "each server's own settings are named in its README";
const ALWAYS_PERCENTILES: &str = "the report always has percentiles";
const ON_THIS_HOST: &str = "the servers of a run are on this host";
const AS_MEASURED: &str = "the report shows what was measured";

/// The client's flags.
const CLIENT: [(&str, Becomes); 28] = [
    ("f", Long("framework")),
    ("ip", Long("ip")),
    ("c", Long("connections")),
    ("b", Long("payload")),
    ("check", Switch("check")),
    ("dc", Long("dial-concurrency")),
    ("dt", Long("dial-timeout")),
    ("dr", Long("dial-retries")),
    ("dri", Long("dial-retry-interval")),
    ("n", Long("echoes")),
    ("en", Long("echoes")),
    ("ec", Long("echo-concurrency")),
    ("el", Long("echo-limit")),
    ("rate", Switch("rate")),
    ("rc", Long("rate-connections")),
    ("rd", Seconds("rate-duration")),
    ("rr", Long("rate-per-connection")),
    ("rbs", Long("rate-batch-bytes")),
    ("rl", Long("rate-limit")),
    ("pi", Millis("sample-interval")),
    ("preffix", Long("prefix")),
    ("suffix", Long("suffix")),
    ("r", Bare("report-only")),
    ("tpn", Switch("percentiles")),
    ("ep", NoSwitch(NO_PROFILER)),
    ("epd", Nothing(NO_PROFILER)),
    ("rp", NoSwitch(NO_PROFILER)),
    ("rpd", Nothing(NO_PROFILER)),
];

/// The servers' flags.
const SERVER: [(&str, Becomes); 6] = [
    ("nodelay", Switch("nodelay")),
    ("pi", Long("interval")),
    ("b", Nothing(NO_READ_BUFFER)),
    ("mrb", Nothing(NO_READ_BUFFER)),
    ("mb", Nothing(NO_READ_BUFFER)),
    ("reuseport", NoSwitch(NO_READ_BUFFER)),
];

/// Flags of client and servers alike.
const BOTH: [(&str, Becomes); 1] = [("m", Nothing(NO_MEMORY_LIMIT))];

/// Rewrites the original's flags into the long ones.
pub fn translate(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let Rewritten { args, notices } = rewrite(args.collect());
    for notice in notices {
        note(format_args!("wsbench: {notice}"));
    }
    args
}

/// The line in our flags.
#[derive(Default)]
pub struct Rewritten {
    /// Program and verb included.
    pub args: Vec<OsString>,
    /// What was left out, and why.
    pub notices: Vec<String>,
}

/// What a flag becomes after this verb.
fn lookup(verb: &str, name: &str) -> Option<Becomes> {
    let find = |table: &[(&str, Becomes)]| {
        let mut entries = table.iter();
        entries
            .find(|(flag, _)| *flag == name)
            .map(|(_, becomes)| *becomes)
    };
    match verb {
        "client" => find(&CLIENT).or_else(|| find(&BOTH)),
        "run" if name == "tpn" => Some(NoSwitch(ALWAYS_PERCENTILES)),
        "run" if name == "ip" => Some(Nothing(ON_THIS_HOST)),
        "run" => find(&CLIENT).or_else(|| find(&BOTH)),
        "serve" if name == "f" => Some(Name),
        "serve" => find(&SERVER).or_else(|| find(&BOTH)),
        // The whole line of a client is also that of its report.
        "report" => match find(&CLIENT).or_else(|| find(&BOTH))? {
            long @ Long("prefix" | "suffix") => Some(long),
            Switch(_) | NoSwitch(_) | Bare(_) => Some(NoSwitch(AS_MEASURED)),
            _ => Some(Nothing(AS_MEASURED)),
        },
        _ => (name == "f").then_some(Name),
    }
}

/// A flag as it stands on the command line.
struct Typed<'a> {
    double_dash: bool,
    name: &'a str,
    value: Option<&'a str>,
}

/// Splits `-name`, `--name` and either with `=value`; `None` for anything else.
fn split(arg: &str) -> Option<Typed<'_>> {
    let rest = arg.strip_prefix('-')?;
    let (double_dash, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    is_name.then_some(Typed {
        double_dash,
        name,
        value,
    })
}

/// The same without saying what is left out.
pub fn rewrite(args: Vec<OsString>) -> Rewritten {
    let mut rewritten = Rewritten::default();
    let mut left = VecDeque::from(args);
    rewritten.args.extend(left.pop_front());
    let Some(verb) = left.pop_front() else {
        return rewritten;
    };
    rewritten.args.push(verb.clone());
    let verb = verb.to_string_lossy().into_owned();
    while let Some(arg) = left.pop_front() {
        if arg == "--" {
            rewritten.args.push(arg);
            rewritten.args.extend(left);
            break;
        }
        let Some(typed) = arg.to_str().and_then(split) else {
            rewritten.args.push(arg);
            continue;
        };
        match lookup(&verb, typed.name) {
            Some(becomes) => replace(becomes, &typed, &mut left, &mut rewritten),
            None => rewritten
                .args
                .extend(not_the_originals(&verb, &typed, &arg, &mut left)),
        }
    }
    rewritten
}

/// A boolean's value: behind `=`, or the next argument if that is a boolean in
/// words; a bare flag is true.
fn switch_value(typed: &Typed<'_>, left: &mut VecDeque<OsString>) -> String {
    if let Some(value) = typed.value {
        return value.to_owned();
    }
    let next = left.front().and_then(|next| next.to_str());
    match next.map(str::to_owned) {
        Some(word) if word == "true" || word == "false" => {
            left.pop_front();
            word
        }
        _ => "true".into(),
    }
}

/// `--long=value`, whatever the value begins with; `--long` if there is none.
fn long_with(long: &str, value: Option<OsString>) -> OsString {
    let mut joined = OsString::from(format!("--{long}"));
    if let Some(value) = value {
        joined.push("=");
        joined.push(value);
    }
    joined
}

fn replace(
    becomes: Becomes,
    typed: &Typed<'_>,
    left: &mut VecDeque<OsString>,
    rewritten: &mut Rewritten,
) {
    let mut value = || typed.value.map(OsString::from).or_else(|| left.pop_front());
    let with_unit = |value: Option<OsString>, unit: &str| {
        value.map(|value| match value.to_str() {
            Some(number) if number.parse::<f64>().is_ok() => format!("{number}{unit}").into(),
            _ => value,
        })
    };
    match becomes {
        Long(long) => rewritten.args.push(long_with(long, value())),
        Seconds(long) => rewritten
            .args
            .push(long_with(long, with_unit(value(), "s"))),
        Millis(long) => rewritten
            .args
            .push(long_with(long, with_unit(value(), "ms"))),
        Name => rewritten.args.extend(value()),
        Switch(long) => {
            let value = switch_value(typed, left);
            rewritten.args.push(long_with(long, Some(value.into())));
        }
        Nothing(reason) => {
            value();
            rewritten
                .notices
                .push(format!("-{} is ignored: {reason}", typed.name));
        }
        NoSwitch(reason) => {
            switch_value(typed, left);
            rewritten
                .notices
                .push(format!("-{} is ignored: {reason}", typed.name));
        }
        Bare(long) => match boolean(&switch_value(typed, left)) {
            Ok(true) => rewritten.args.push(long_with(long, None)),
            Ok(false) => {}
            // Told by whoever reads the flags: it takes no value.
            Err(_) => {
                let value = typed.value.map(OsString::from);
                rewritten.args.push(long_with(long, value));
            }
        },
    }
}

/// Flags of our own. One dash is as good as two (a typo is then reported as a
/// whole word, not letter by letter), and a long flag's value may begin with a dash.
fn not_the_originals(
    verb: &str,
    typed: &Typed<'_>,
    arg: &OsString,
    left: &mut VecDeque<OsString>,
) -> Option<OsString> {
    if !typed.double_dash && typed.name.len() == 1 {
        return Some(arg.clone());
    }
    let value = typed.value.map(OsString::from);
    match own(verb, typed.name) {
        Some(Switch(long)) => Some(long_with(long, Some(switch_value(typed, left).into()))),
        Some(_) if value.is_none() => Some(long_with(typed.name, left.pop_front())),
        _ => Some(long_with(typed.name, value)),
    }
}

/// What kind of flag a long name of ours is, as far as it matters here.
fn own(verb: &str, name: &str) -> Option<Becomes> {
    const SWITCHES: [&str; 2] = ["echo", "text"];
    if let Some(switch) = SWITCHES.iter().find(|switch| **switch == name) {
        return matches!(verb, "client" | "run").then_some(Switch(switch));
    }
    let mut all = CLIENT.iter().map(|(_, becomes)| *becomes);
    all.find(
        |becomes| matches!(becomes, Long(long) | Seconds(long) | Millis(long) if *long == name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// The arguments behind the verb, and the notices.
    fn both(line: &str) -> (String, Vec<String>) {
        let Rewritten { args, notices } = rewrite(words(&format!("wsbench {line}")));
        let args: Vec<_> = args
            .iter()
            .skip(1)
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        (args.join(" "), notices)
    }

    #[track_caller]
    fn becomes(line: &str, expected: &str) {
        let (args, notices) = both(line);
        assert_eq!(args, expected);
        assert!(notices.is_empty(), "{notices:?}");
    }

    #[test]
    fn the_originals_lines_work_as_typed() {
        becomes(
            "client -f=axum -c=10000 -n=500000 -b=1024",
            "client --framework=axum --connections=10000 --echoes=500000 --payload=1024",
        );
        becomes(
            "client -f=a -c=1000000 -en=5000000 -b=1024 -rr=1",
            "client --framework=a --connections=1000000 --echoes=5000000 --payload=1024 --rate-per-connection=1",
        );
        becomes(
            "client -dc=1 -dt=5s -dr=2 -dri=100ms -check=false -pi=1000 -ec=3 -el=4",
            "client --dial-concurrency=1 --dial-timeout=5s --dial-retries=2 --dial-retry-interval=100ms \
             --check=false --sample-interval=1000ms --echo-concurrency=3 --echo-limit=4",
        );
        becomes(
            "run -rate=true -rc=1 -rd=10 -rr=2 -rbs=3 -rl=4 -preffix=p_ -suffix=_s",
            "run --rate=true --rate-connections=1 --rate-duration=10s --rate-per-connection=2 \
             --rate-batch-bytes=3 --rate-limit=4 --prefix=p_ --suffix=_s",
        );
    }

    #[test]
    fn a_value_stands_behind_an_equals_sign_or_a_space_with_one_dash_or_two() {
        for line in [
            "-c=5",
            "-c 5",
            "--c=5",
            "--c 5",
            "--connections 5",
            "-connections=5",
            "-connections 5",
        ] {
            becomes(&format!("client {line}"), "client --connections=5");
        }
    }

    #[test]
    fn a_boolean_may_stand_alone_and_takes_no_other_word() {
        for line in ["-rate", "--rate", "-rate=true", "-rate true", "--rate true"] {
            becomes(&format!("run {line} axum"), "run --rate=true axum");
        }
        becomes(
            "client -check false -c 1",
            "client --check=false --connections=1",
        );
        becomes("client -rate=T -check=0", "client --rate=T --check=0");
        becomes(
            "client --echo=false --text",
            "client --echo=false --text=true",
        );
        becomes("client --echo false", "client --echo=false");
    }

    #[test]
    fn plain_numbers_get_the_unit_that_the_original_means() {
        becomes(
            "client -rd=10 -pi=500",
            "client --rate-duration=10s --sample-interval=500ms",
        );
        becomes(
            "client -rd=1m30s -pi=2s",
            "client --rate-duration=1m30s --sample-interval=2s",
        );
    }

    #[test]
    fn a_value_may_begin_with_a_dash() {
        becomes(
            "client -suffix -c -c=1",
            "client --suffix=-c --connections=1",
        );
        becomes("client -suffix=-x", "client --suffix=-x");
        becomes("client --suffix -x", "client --suffix=-x");
        becomes("client --framework -f", "client --framework=-f");
    }

    #[test]
    fn what_has_no_meaning_is_said_and_left_out() {
        for (flags, count) in [
            ("-m=4294967296", 1),
            ("-ep", 1),
            ("-ep=false -epd=5", 2),
            ("-rp true -rpd 5", 2),
        ] {
            let (args, notices) = both(&format!("client {flags} -c=1"));
            assert_eq!(args, "client --connections=1", "{flags}");
            assert_eq!(notices.len(), count, "{flags}");
        }
        let (args, notices) =
            both("serve axum -nodelay=true -b=1024 -mrb=4096 -mb 10000 -reuseport -m=1");
        assert_eq!(args, "serve axum --nodelay=true");
        assert_eq!(notices.len(), 5);
        assert_eq!(
            notices[0],
            "-b is ignored: each server's own settings are named in its README"
        );
    }

    #[test]
    fn the_framework_is_a_name_where_names_stand_alone() {
        becomes("build -f=axum floor", "build axum floor");
        becomes("run -f axum", "run --framework=axum");
        becomes("serve -f=axum -pi=500", "serve axum --interval=500");
    }

    #[test]
    fn the_clients_r_measures_nothing() {
        becomes("client -f=axum -r", "client --framework=axum --report-only");
        becomes("run -r=true -preffix=p", "run --report-only --prefix=p");
        becomes("client -r=false -c=5", "client --connections=5");
        becomes("client -r=maybe", "client --report-only=maybe");
    }

    #[test]
    fn a_clients_line_is_also_that_of_its_report() {
        let (args, notices) =
            both("report -r=true -f=axum -c 5 -rate -preffix=p -suffix=_x 20261130");
        assert_eq!(args, "report --prefix=p --suffix=_x 20261130");
        assert_eq!(notices.len(), 4, "{notices:?}");
    }

    #[test]
    fn what_only_the_client_can_do_is_said_in_a_run() {
        becomes(
            "client -tpn=false -ip=h",
            "client --percentiles=false --ip=h",
        );
        let (args, notices) = both("run -tpn=true -ip=h axum");
        assert_eq!(args, "run axum");
        assert_eq!(notices.len(), 2);
    }

    #[test]
    fn ordinary_flags_pass_untouched() {
        for line in [
            "client -h",
            "client -V",
            "-h",
            "--version",
            "run --rounds 3 --server-cpus 0-3 axum",
            "run --seed=5 --resume",
            "client -c10000",
            "client --url ws://h:1-2/a=b",
            "verify axum --json",
            "client -5",
            "client - -- -f=axum -c 1",
        ] {
            becomes(line, line);
        }
        assert!(rewrite(Vec::new()).args.is_empty());
        assert_eq!(rewrite(words("wsbench")).args, words("wsbench"));
        becomes("client -help", "client --help");
    }

    #[test]
    fn a_typo_is_kept_as_a_whole_word() {
        becomes("client -framwork=axum", "client --framwork=axum");
        becomes("client -cc=5", "client --cc=5");
        becomes("client -c", "client --connections");
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = OsString::from_vec(vec![b'-', b'c', 0xff]);
        let mut args = words("wsbench client -suffix");
        args.push(odd.clone());
        args.push(odd.clone());
        let rewritten = rewrite(args).args;
        let mut joined = OsString::from("--suffix=");
        joined.push(&odd);
        assert_eq!(rewritten[2..], [joined, odd]);
    }
}
