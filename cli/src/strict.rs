//! TOML that people write: an unknown key is an error that names the nearest
//! valid one, and every error names the line.

use serde::de::DeserializeOwned;

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
    fn the_nearest_name_is_near() {
        let names = ["axum", "actix_web", "floor"];
        assert_eq!(nearest("axom", names.into_iter()), Some("axum"));
        assert_eq!(nearest("actix-web", names.into_iter()), Some("actix_web"));
        assert_eq!(nearest("qqq", names.into_iter()), None);
    }
}
