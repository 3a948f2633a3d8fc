//! The version of the crate that is measured, read from the subject's own lock file.
//!
//! The lock file is compiled in: what `--version` prints is what was built, and
//! not what a manifest asked for.

/// A server under test: what is measured, and in which version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The measured crate as its registry names it, or the package itself.
    pub name: &'static str,
    /// Its version in the lock file.
    pub version: &'static str,
}

/// Names the subject: `subject!("actix-web")` takes the version of that
/// dependency from the `Cargo.lock` beside the caller's `Cargo.toml`;
/// `subject!()` is a server that measures no crate, with its own version.
#[macro_export]
macro_rules! subject {
    () => {
        $crate::Subject {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
        }
    };
    ($crate_name:literal) => {
        $crate::Subject {
            name: $crate_name,
            version: $crate::locked_version(
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")),
                env!("CARGO_PKG_NAME"),
                $crate_name,
            )
            .unwrap_or("unknown"),
        }
    };
}

/// The version of `crate_name` that the package `root` depends on, in the text
/// of a `Cargo.lock`; `None` when the lock file has no such dependency.
///
/// `root` may have the same name as the crate (a folder `axum` that measures
/// axum), and the lock file may hold several versions of it: only an entry with
/// a `source` counts, and the one that `root` itself depends on goes first.
pub fn locked_version<'a>(lock: &'a str, root: &str, crate_name: &str) -> Option<&'a str> {
    let packages = || lock.split("[[package]]").skip(1).map(Package);
    // A dependency is written "name", or "name version" where several versions are locked.
    let chosen = packages()
        .find(|package| package.value("name") == Some(root) && package.value("source").is_none())
        .and_then(|package| {
            package.dependencies().find_map(|dependency| {
                let mut words = dependency.split(' ');
                (words.next() == Some(crate_name))
                    .then(|| words.next())
                    .flatten()
            })
        });
    chosen.or_else(|| {
        packages()
            .find(|package| {
                package.value("name") == Some(crate_name) && package.value("source").is_some()
            })
            .and_then(|package| package.value("version"))
    })
}

/// The lines of one `[[package]]` table.
#[derive(Clone, Copy)]
struct Package<'a>(&'a str);

impl<'a> Package<'a> {
    fn value(self, key: &str) -> Option<&'a str> {
        self.0.lines().find_map(|line| {
            line.strip_prefix(key)?
                .trim_start()
                .strip_prefix('=')?
                .trim()
                .strip_prefix('"')?
                .strip_suffix('"')
        })
    }

    fn dependencies(self) -> impl Iterator<Item = &'a str> {
        let list = self
            .0
            .split_once("dependencies = [")
            .map_or("", |(_, rest)| rest);
        let list = list.split_once(']').map_or("", |(list, _)| list);
        list.lines().filter_map(|line| {
            line.trim()
                .trim_end_matches(',')
                .strip_prefix('"')?
                .strip_suffix('"')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
version = 4

[[package]]
name = "axum"
version = "0.1.0"
dependencies = [
 "axum 0.8.9",
 "tokio",
]

[[package]]
name = "axum"
version = "0.8.9"
source = "registry+https://example.invalid/index"
checksum = "00"
dependencies = [
 "tokio-tungstenite",
 "tungstenite 0.29.0",
]

[[package]]
name = "tokio"
version = "1.54.1"
source = "registry+https://example.invalid/index"

[[package]]
name = "tungstenite"
version = "0.29.0"
source = "registry+https://example.invalid/index"

[[package]]
name = "tungstenite"
version = "0.30.0"
source = "registry+https://example.invalid/index"
"#;

    #[test]
    fn a_package_named_like_its_crate_reports_the_crate() {
        assert_eq!(locked_version(LOCK, "axum", "axum"), Some("0.8.9"));
    }

    #[test]
    fn a_dependency_locked_once_is_found_by_name() {
        assert_eq!(locked_version(LOCK, "axum", "tokio"), Some("1.54.1"));
    }

    #[test]
    fn of_several_versions_the_roots_own_goes_first() {
        let lock = LOCK.replace(" \"tokio\",\n]", " \"tokio\",\n \"tungstenite 0.30.0\",\n]");
        assert_eq!(locked_version(&lock, "axum", "tungstenite"), Some("0.30.0"));
    }

    #[test]
    fn a_copy_whose_lock_was_not_renamed_still_finds_the_crate() {
        assert_eq!(locked_version(LOCK, "mine", "axum"), Some("0.8.9"));
    }

    #[test]
    fn an_absent_crate_is_no_version() {
        assert_eq!(locked_version(LOCK, "axum", "axu"), None);
        assert_eq!(locked_version("", "axum", "axum"), None);
    }

    #[test]
    fn a_server_without_a_crate_is_its_own_subject() {
        assert_eq!(
            crate::subject!(),
            Subject {
                name: "wsbench-server-kit",
                version: env!("CARGO_PKG_VERSION")
            }
        );
    }
}
