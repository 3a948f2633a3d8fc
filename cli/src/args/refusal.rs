//! What the command line has wrong, told as every other error is: in one line.

use crate::progress::note;
use clap::error::ErrorKind;
use std::process::ExitCode;

/// Exit code of a command line that cannot be understood.
const EXIT_CODE: u8 = 2;

/// Prints what `clap` found wrong, or the help or version that was asked for.
pub fn tell(error: &clap::Error) -> ExitCode {
    let wants_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || wants_help {
        error.exit();
    }
    note(format_args!(
        "wsbench: {}",
        one_line(&error.render().to_string())
    ));
    ExitCode::from(EXIT_CODE)
}

/// `unexpected argument '--x' found (tip: ...; see: wsbench run --help)`, from
/// the paragraphs that `clap` writes.
pub fn one_line(text: &str) -> String {
    let mut said: Vec<&str> = Vec::new();
    let mut remedies: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let is_verb = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
            let verb: Vec<&str> = usage.split(' ').take_while(is_verb).collect();
            remedies.push(format!("see: {} --help", verb.join(" ")));
            break;
        } else if line.starts_with("For more information") {
            break;
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            remedies.push(tip.to_owned());
        } else if let Some(values) = line.strip_prefix('[') {
            remedies.push(values.trim_end_matches(']').to_owned());
        } else {
            said.push(line.strip_prefix("error: ").unwrap_or(line));
        }
    }
    match remedies.is_empty() {
        true => said.join(" "),
        false => format!("{} ({})", said.join(" "), remedies.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn refusal(line: &str) -> String {
        let run = Command::new("run")
            .arg(Arg::new("rounds").long("rounds").value_name("COUNT"))
            .arg(
                Arg::new("number")
                    .long("number")
                    .value_parser(clap::value_parser!(u8)),
            )
            .arg(
                Arg::new("colour")
                    .long("colour")
                    .value_parser(["always", "never"]),
            );
        let new = Command::new("new").arg(Arg::new("name").required(true).value_name("NAME"));
        let wsbench = Command::new("wsbench").subcommand(run).subcommand(new);
        let words = std::iter::once("wsbench").chain(line.split(' '));
        let error = wsbench.try_get_matches_from(words).unwrap_err();
        one_line(&error.render().to_string())
    }

    #[test]
    fn each_mistake_is_one_line_with_its_remedy() {
        for (line, expected) in [
            (
                "run --ruonds 3",
                "unexpected argument '--ruonds' found \
                 (a similar argument exists: '--rounds'; see: wsbench run --help)",
            ),
            (
                "rum",
                "unrecognized subcommand 'rum' \
                 (a similar subcommand exists: 'run'; see: wsbench --help)",
            ),
            (
                "run --number many",
                "invalid value 'many' for '--number <number>': invalid digit found in string",
            ),
            (
                "run --colour nevr",
                "invalid value 'nevr' for '--colour <colour>' \
                 (possible values: always, never; a similar value exists: 'never')",
            ),
            (
                "new",
                "the following required arguments were not provided: <NAME> \
                 (see: wsbench new --help)",
            ),
        ] {
            assert_eq!(refusal(line), expected);
        }
    }
}
