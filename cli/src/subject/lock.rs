//! The version of what is measured, from the subject's `Cargo.lock`.

use super::RustBuild;
use crate::strict;
use serde::Deserialize;
use std::path::Path;

/// A `Cargo.lock`, as far as it matters here.
#[derive(Deserialize)]
pub struct Lock {
    #[serde(default, rename = "package")]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Lock {
    /// Reads the folder's lock file; `None` if there is none that can be read.
    pub fn read(folder: &Path) -> Option<Self> {
        Self::parse(&strict::text_of(&folder.join("Cargo.lock")).ok()?)
    }

    /// From the text of a lock file.
    pub fn parse(text: &str) -> Option<Self> {
        // As a whole first: what is skipped must be TOML, too.
        let lock: Self = text.parse::<toml::Table>().ok()?.try_into().ok()?;
        // They stand in tables; cargo writes no others.
        let shown = |entry: &Package| {
            strict::one_line("name", &entry.name).is_ok()
                && strict::one_line("version", &entry.version).is_ok()
        };
        lock.packages.iter().all(shown).then_some(lock)
    }

    /// Whether the package of the folder itself is in it.
    pub fn has_own(&self, package: &str) -> bool {
        self.own(package).is_some()
    }

    fn has(&self, name: &str, version: &str) -> bool {
        let mut packages = self.packages.iter();
        packages.any(|entry| entry.name == name && entry.version == version)
    }

    fn own(&self, package: &str) -> Option<&Package> {
        let mut packages = self.packages.iter();
        packages.find(|entry| entry.name == package && entry.source.is_none())
    }

    /// See [`super::Subject::version`].
    pub fn version(&self, build: &RustBuild) -> String {
        let package = &build.package;
        let named = named(build);
        // A crate is written with `-` or `_`, and a folder after it with either.
        let spellings = [
            named.clone(),
            named.replace('_', "-"),
            named.replace('-', "_"),
        ];
        for name in spellings {
            if let Some(version) = self.version_of(&name, package) {
                return format!("{name} {version}");
            }
        }
        if build.crate_name.is_some() {
            return format!("{named} (not in Cargo.lock)");
        }
        match self.own(package) {
            Some(own) => format!("{package} {}", own.version),
            None => format!("{package} (not in Cargo.lock)"),
        }
    }

    /// The crate's version: the one that the package itself depends on, if the
    /// lock file holds several.
    fn version_of(&self, crate_name: &str, package: &str) -> Option<String> {
        let versions: Vec<&Package> = self
            .packages
            .iter()
            .filter(|entry| entry.name == crate_name && entry.source.is_some())
            .collect();
        if let [only] = versions[..] {
            return Some(only.version.clone());
        }
        // Cargo writes "name version" where the name alone would be ambiguous.
        let own = self.own(package)?.dependencies.iter();
        own.filter_map(|text| text.strip_prefix(crate_name)?.strip_prefix(' '))
            .map(|rest| rest.split(' ').next().unwrap_or(rest))
            .find(|version| self.has(crate_name, version))
            .map(str::to_owned)
            .or_else(|| {
                let all: Vec<_> = versions
                    .iter()
                    .map(|entry| entry.version.as_str())
                    .collect();
                (!all.is_empty()).then(|| all.join("+"))
            })
    }
}

/// See [`super::Subject::version`].
pub fn version(folder: &Path, build: &RustBuild) -> String {
    match Lock::read(folder) {
        Some(lock) => lock.version(build),
        None => format!("{} (no Cargo.lock)", named(build)),
    }
}

fn named(build: &RustBuild) -> &String {
    build.crate_name.as_ref().unwrap_or(&build.package)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    const SOURCE: &str = "source = \"registry\"";

    fn version_in(lock: &str, crate_name: Option<&str>) -> String {
        let project = Project::new();
        project.write("frameworks/my_crate/Cargo.lock", lock);
        let build = RustBuild {
            package: "my_crate".into(),
            crate_name: crate_name.map(str::to_owned),
            ..RustBuild::default()
        };
        version(&project.root.frameworks().join("my_crate"), &build)
    }

    fn entry(name: &str, version: &str, rest: &str) -> String {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{rest}\n")
    }

    #[test]
    fn the_crate_is_the_folders_name_in_either_spelling() {
        let own = entry("my_crate", "0.1.0", "");
        let lock = format!("{own}{}", entry("my-crate", "3.2.1", SOURCE));
        assert_eq!(version_in(&lock, None), "my-crate 3.2.1");
        assert_eq!(version_in(&own, None), "my_crate 0.1.0");
    }

    #[test]
    fn the_named_crate_is_looked_up_and_its_absence_is_told() {
        let lock = entry("my_crate", "0.1.0", "") + &entry("axum", "0.8.9", SOURCE);
        assert_eq!(version_in(&lock, Some("axum")), "axum 0.8.9");
        assert_eq!(version_in(&lock, Some("axom")), "axom (not in Cargo.lock)");
        assert_eq!(version_in("", None), "my_crate (not in Cargo.lock)");
        let missing = version(Path::new("/nowhere"), &RustBuild::default());
        assert_eq!(missing, " (no Cargo.lock)");
    }

    #[test]
    fn a_version_is_one_of_the_packages_and_one_line() {
        let both = entry("axum", "0.7.9", SOURCE) + &entry("axum", "0.8.9", SOURCE);
        let direct = entry("my_crate", "0.1.0", "dependencies = [\"axum 0.1.1\"]");
        assert_eq!(
            version_in(&(direct + &both), Some("axum")),
            "axum 0.7.9+0.8.9"
        );
        let broken = entry("axum", "1\\n2", SOURCE);
        assert_eq!(version_in(&broken, Some("axum")), "axum (no Cargo.lock)");
    }

    #[test]
    fn of_several_versions_the_direct_dependency_counts() {
        let both = entry("tungstenite", "0.29.0", SOURCE) + &entry("tungstenite", "0.30.0", SOURCE);
        let direct = entry(
            "my_crate",
            "0.1.0",
            "dependencies = [\"tungstenite 0.29.0\"]",
        );
        let crate_name = Some("tungstenite");
        assert_eq!(
            version_in(&(direct + &both), crate_name),
            "tungstenite 0.29.0"
        );
        let indirect = entry("my_crate", "0.1.0", "");
        assert_eq!(
            version_in(&(indirect + &both), crate_name),
            "tungstenite 0.29.0+0.30.0"
        );
    }
}
