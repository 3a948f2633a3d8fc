//! TOML that people write: an unknown key is an error that names the nearest
//! valid one, and every error names the line.

use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// What people write, and what cargo writes about it, is far shorter.
const TEXT_MOST_BYTES: u64 = 16 << 20;

/// The text of a file: of a pipe or a device there might be no end.
///
/// # Errors
/// If it cannot be read, is no text, or is longer than 16 MiB.
pub fn text_of(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?
        .take(TEXT_MOST_BYTES + 1)
        .read_to_string(&mut text)?;
    match text.len() as u64 > TEXT_MOST_BYTES {
        true => Err(io::Error::other("longer than 16 MiB")),
        false => Ok(text),
    }
}

/// Reads a whole file's text. `T` and the tables in it reject unknown fields.
///
/// # Errors
/// One line: where, what is wrong, and the nearest valid key if a key is unknown.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(String::new(), |span| {
            let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
            format!("line {line}: ")
        });
        format!("{at}{}", explain(error.message()))
    })
}

/// What stands in a table or in a line of a report.
///
/// # Errors
/// If it is empty, or has line breaks or other control characters.
pub fn one_line(key: &str, value: &str) -> Result<(), String> {
    match value.trim().is_empty() || value.contains(char::is_control) {
        true => Err(format!(
            "`{key}` is {value:?} (write one line of text without control characters)"
        )),
        false => Ok(()),
    }
}

/// A count that means something only from one on.
///
/// # Errors
/// If it is zero.
pub fn positive(key: &str, count: u32) -> Result<u32, String> {
    match count {
        0 => Err(format!("`{key}` is 0 (write a number from 1 on)")),
        count => Ok(count),
    }
}

/// An error that quotes what somebody wrote: in one line, and nothing in it that a
/// terminal obeys.
pub fn escaped(error: String) -> String {
    if !error.contains(char::is_control) {
        return error;
    }
    let mut line = String::new();
    for c in error.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// A command that the manifest names.
///
/// # Errors
/// If there is no program, or something that no program can be given.
pub fn command(key: &str, words: &[String]) -> Result<(), String> {
    match words.first() {
        None => Err(format!("`{key}` is empty (write the program first)")),
        Some(program) if program.is_empty() => {
            Err(format!("the program of `{key}` is empty (write its name)"))
        }
        Some(_) => arguments(key, words),
    }
}

/// Arguments that a manifest names.
///
/// # Errors
/// If one has a zero byte: it cannot be given to a program.
pub fn arguments(key: &str, words: &[String]) -> Result<(), String> {
    match words.iter().any(|word| word.contains('\0')) {
        true => Err(format!("`{key}` has a zero byte (take it out)")),
        false => Ok(()),
    }
}

/// Shortens serde's list of valid fields to the nearest one.
///
/// The names come from serde's own message, so that no second list of the keys
/// exists: "unknown field `a`, expected one of `b`, `c`".
fn explain(message: &str) -> String {
    let message = message.lines().collect::<Vec<_>>().join(" ");
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return message;
    };
    let mut quoted = rest.split('`').step_by(2);
    let Some(unknown) = quoted.next() else {
        return message;
    };
    let valid: Vec<&str> = quoted.filter(|name| !name.is_empty()).collect();
    match nearest(unknown, valid.iter().copied()) {
        Some(near) => format!("unknown key `{unknown}` (did you mean `{near}`?)"),
        None if valid.is_empty() => format!("unknown key `{unknown}`"),
        None => format!("unknown key `{unknown}` (valid: {})", valid.join(", ")),
    }
}

/// The name that was probably meant, if one is near enough.
pub fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    valid
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean `x`?)`, or nothing.
pub fn suggestion<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> String {
    nearest(name, valid).map_or(String::new(), |near| format!(" (did you mean `{near}`?)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    #[allow(dead_code, reason = "only its fields' names matter")]
    struct Many {
        language: Option<String>,
        version_command: Option<String>,
        one: Option<One>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its fields' names matter")]
    struct One {
        echoes: Option<u32>,
    }

    fn error(text: &str) -> String {
        from_toml::<Many>(text).unwrap_err()
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_key() {
        assert_eq!(
            error("language = \"go\"\nversion-comand = \"x\"\n"),
            "line 2: unknown key `version-comand` (did you mean `version-command`?)"
        );
        assert_eq!(
            error("[one]\nechos = 1\n"),
            "line 2: unknown key `echos` (did you mean `echoes`?)"
        );
    }

    #[test]
    fn an_unknown_key_like_no_other_lists_the_valid_ones() {
        assert_eq!(
            error("zzz = 1\n"),
            "line 1: unknown key `zzz` (valid: language, version-command, one)"
        );
    }

    #[test]
    fn a_wrong_type_and_broken_syntax_are_one_line() {
        let wrong = error("\nlanguage = 3\n");
        assert!(
            wrong.starts_with("line 2: invalid type: integer"),
            "{wrong}"
        );
        let broken = error("language = \n");
        assert!(broken.starts_with("line 1: "), "{broken}");
        assert!(!broken.contains('\n'), "{broken}");
    }

    #[test]
    fn only_files_of_bounded_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("long.toml");
        File::create(&file)
            .and_then(|file| file.set_len(TEXT_MOST_BYTES))
            .unwrap();
        assert_eq!(text_of(&file).unwrap().len() as u64, TEXT_MOST_BYTES);
        File::create(&file)
            .and_then(|file| file.set_len(TEXT_MOST_BYTES + 1))
            .unwrap();
        assert_eq!(
            text_of(&file).unwrap_err().to_string(),
            "longer than 16 MiB"
        );
        let pipe = text_of(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(pipe.to_string(), "not a regular file");
    }

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["axum", "actix_web", "floor"];
        assert_eq!(nearest("axom", names.into_iter()), Some("axum"));
        assert_eq!(nearest("actix-web", names.into_iter()), Some("actix_web"));
        assert_eq!(nearest("qqq", names.into_iter()), None);
    }
}
