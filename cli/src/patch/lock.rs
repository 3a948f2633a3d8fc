//! A lock file as the list of what it locks: what a patch changed in it.

use crate::strict;
use anyhow::Context as _;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Deserialize)]
pub struct Locked {
    #[serde(default, rename = "package")]
    packages: Vec<Package>,
    #[serde(default)]
    patch: Unused,
}

/// A package of a lock file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// None, if it is a folder of this machine.
    pub source: Option<String>,
}

/// Patches that fit nothing.
#[derive(Default, Deserialize)]
struct Unused {
    #[serde(default)]
    unused: Vec<Package>,
}

impl Locked {
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("Cargo.lock");
        let text =
            strict::text_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is no lock file", path.display()))
    }

    pub fn parse(text: &str) -> Option<Self> {
        toml::from_str(text).ok()
    }

    /// Whether it holds a crate of that name that is no folder of this machine.
    pub fn has_from_elsewhere(&self, name: &str) -> bool {
        self.locked(name).next().is_some()
    }

    /// Names of all such.
    pub fn names_elsewhere(&self) -> Vec<String> {
        let packages = self.packages.iter().filter(|p| p.source.is_some());
        packages.map(|package| package.name.clone()).collect()
    }

    /// Those of that name that are no folder of this machine.
    pub fn locked(&self, name: &str) -> impl Iterator<Item = &Package> {
        let packages = self.packages.iter();
        packages.filter(move |p| p.name == name && p.source.is_some())
    }

    /// The patch of that name which fits nothing.
    pub fn unused(&self, name: &str) -> Option<&Package> {
        self.patch
            .unused
            .iter()
            .find(|package| package.name == name)
    }

    /// Packages that `before` has not.
    fn beyond<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Package> {
        let packages = self.packages.iter();
        packages.filter(|package| !before.packages.contains(package))
    }

    /// The package of that name that the patch brought; `before` is the subject's lock file.
    pub fn brought<'a>(&'a self, before: &'a Self, name: &str) -> Option<&'a Package> {
        self.beyond(before).find(|package| {
            let source = package.source.as_deref();
            package.name == name && source.is_none_or(|source| source.starts_with("git+"))
        })
    }

    /// What differs besides these crates, in words.
    pub fn other_changes(&self, before: &Self, patched: &[&str]) -> Vec<String> {
        let is_other = |package: &&Package| !patched.contains(&package.name.as_str());
        let of = |packages: Vec<&Package>| -> BTreeMap<String, BTreeSet<String>> {
            let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
            for package in packages {
                let versions = found.entry(package.name.clone()).or_default();
                versions.insert(package.version.clone());
            }
            found
        };
        let gone = of(before.beyond(self).filter(is_other).collect());
        let come = of(self.beyond(before).filter(is_other).collect());
        let names: BTreeSet<&String> = gone.keys().chain(come.keys()).collect();
        let listed = |versions: &BTreeSet<String>| {
            let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
            versions.join(" and ")
        };
        let said = |name: &String| match (gone.get(name), come.get(name)) {
            (Some(old), Some(new)) if old == new => {
                format!("{name} {} from elsewhere", listed(new))
            }
            (Some(old), Some(new)) => format!("{name} {} instead of {}", listed(new), listed(old)),
            (Some(old), None) => format!("no {name} {}", listed(old)),
            (None, new) => format!("{name} {}", new.map(listed).unwrap_or_default()),
        };
        names.into_iter().map(said).collect()
    }
}
