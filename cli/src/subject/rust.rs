//! `[package.metadata.wsbench]` of a Rust subject's `Cargo.toml`.

use super::{Kind, RustBuild, Subject, catalog::check_name, check_role};
use crate::strict;
use crate::verify::Omits;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wsbench_schema::Suite;

/// The parts of a `Cargo.toml` that matter here; Cargo checks the rest.
#[derive(Deserialize)]
struct CargoToml {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    wsbench: Wsbench,
    /// Tables of other tools.
    #[serde(flatten)]
    others: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Wsbench {
    #[serde(default)]
    suite: Suite,
    /// Whether the folder itself is a subject, beside its variants.
    #[serde(default = "yes")]
    base: bool,
    #[serde(default = "one")]
    descriptors: u32,
    #[serde(rename = "crate")]
    crate_name: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    variants: Vec<Variant>,
    role: Option<String>,
    #[serde(default)]
    omits: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Variant {
    name: String,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default = "yes")]
    default_features: bool,
    #[serde(default)]
    args: Vec<String>,
    about: Option<String>,
    descriptors: Option<u32>,
}

impl Default for Wsbench {
    fn default() -> Self {
        Self {
            suite: Suite::default(),
            base: true,
            descriptors: one(),
            crate_name: None,
            args: Vec::new(),
            variants: Vec::new(),
            role: None,
            omits: Vec::new(),
        }
    }
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// The subject of a folder and one for each variant.
///
/// # Errors
/// One line that names the file, what is wrong and what to do.
pub fn read(name: &str, folder: &Path) -> Result<Vec<Subject>, String> {
    let path = folder.join("Cargo.toml");
    let at = |reason: String| format!("{}: {reason}", path.display());
    let text = strict::text_of(&path).map_err(|error| at(error.to_string()))?;
    parse(name, folder, &text).map_err(at)
}

/// The same from the text of the file; the errors do not name it.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn parse(name: &str, folder: &Path, text: &str) -> Result<Vec<Subject>, String> {
    subjects(name, folder, text).map_err(strict::escaped)
}

fn subjects(name: &str, folder: &Path, text: &str) -> Result<Vec<Subject>, String> {
    let CargoToml { package } = strict::from_toml(text)?;
    if package.name != name {
        let has = &package.name;
        return Err(format!(
            "the package's name is `{has}`, the folder's is `{name}` (set name = \"{name}\")"
        ));
    }
    let others = package.metadata.others.keys().map(String::as_str);
    if let Some(typo) = others
        .into_iter()
        .find(|key| strsim::levenshtein(key, "wsbench") <= 2)
    {
        return Err(format!(
            "unknown table `package.metadata.{typo}` (did you mean `wsbench`?)"
        ));
    }
    let manifest = package.metadata.wsbench;
    for (key, value) in [("crate", &manifest.crate_name), ("role", &manifest.role)] {
        value
            .iter()
            .try_for_each(|value| strict::one_line(key, value))?;
    }
    if let Some(role) = &manifest.role {
        check_role(role)?;
    }
    strict::arguments("args", &manifest.args)?;
    for variant in &manifest.variants {
        strict::arguments("args", &variant.args)?;
        strict::arguments("features", &variant.features)?;
        let mut about = variant.about.iter();
        about.try_for_each(|about| strict::one_line("about", about))?;
    }
    let omits = Omits::read(manifest.suite, &manifest.omits)?;
    let base = RustBuild {
        package: name.to_owned(),
        binary: name.to_owned(),
        crate_name: manifest.crate_name,
        features: Vec::new(),
        default_features: true,
        args: manifest.args,
        patched: None,
    };
    let descriptors = strict::positive("descriptors", manifest.descriptors)?;
    let own = Subject {
        name: name.to_owned(),
        variant: None,
        folder: folder.to_owned(),
        language: "Rust".into(),
        kind: Kind::Rust(base.clone()),
        suite: manifest.suite,
        about: None,
        role: manifest.role,
        descriptors,
        omits,
    };
    let mut subjects = Vec::new();
    if manifest.base {
        subjects.push(own.clone());
    } else if manifest.variants.is_empty() {
        return Err("`base` is false and there are no `variants`: nothing is a subject".into());
    }
    let mut seen = BTreeSet::new();
    for variant in manifest.variants {
        check_name(&variant.name).map_err(|reason| format!("variant {reason}"))?;
        if !seen.insert(variant.name.clone()) {
            return Err(format!("two variants are named `{}`", variant.name));
        }
        let name = match manifest.base {
            true => format!("{name}-{}", variant.name),
            false => variant.name.clone(),
        };
        let is_built_alike = variant.features.is_empty() && variant.default_features;
        let build = RustBuild {
            binary: match is_built_alike {
                true => base.binary.clone(),
                false => name.clone(),
            },
            features: variant.features,
            default_features: variant.default_features,
            args: [base.args.clone(), variant.args].concat(),
            ..base.clone()
        };
        let descriptors = variant.descriptors.unwrap_or(own.descriptors);
        subjects.push(Subject {
            name,
            variant: Some(variant.name),
            kind: Kind::Rust(build),
            about: variant.about,
            descriptors: strict::positive("descriptors", descriptors)?,
            ..own.clone()
        });
    }
    Ok(subjects)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    fn read_manifest(text: &str) -> Result<Vec<Subject>, String> {
        let project = Project::new();
        project.write("frameworks/alpha/Cargo.toml", text);
        let folder = project.root.frameworks().join("alpha");
        let stem = format!("{}/", folder.display());
        read("alpha", &folder).map_err(|error| error.replace(&stem, ""))
    }

    fn error(metadata: &str) -> String {
        let text = format!("[package]\nname = \"alpha\"\n{metadata}");
        read_manifest(&text).unwrap_err()
    }

    #[test]
    fn a_plain_package_is_one_subject() {
        let subjects = read_manifest("[package]\nname = \"alpha\"\n[dependencies]\n").unwrap();
        assert_eq!(subjects.len(), 1);
        assert_eq!(
            (subjects[0].name.as_str(), &subjects[0].variant),
            ("alpha", &None)
        );
    }

    #[test]
    fn variants_are_subjects_with_the_common_arguments_first() {
        let subjects = read_manifest(
            "[package]\nname = \"alpha\"\n[package.metadata.docs]\nx = 1\n[package.metadata.wsbench]\n\
             crate = \"a\"\nargs = [\"-a\"]\n\
             variants = [{ name = \"b\", args = [\"-b\"], features = [\"f\"], default-features = false }]\n",
        )
        .unwrap();
        let names: Vec<_> = subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect();
        assert_eq!(names, ["alpha", "alpha-b"]);
        let Kind::Rust(build) = &subjects[1].kind else {
            panic!("not Rust")
        };
        assert_eq!(build.args, ["-a", "-b"]);
        assert_eq!(build.features, ["f"]);
        assert!(!build.default_features);
        assert_eq!(build.crate_name.as_deref(), Some("a"));
    }

    #[test]
    fn mistakes_name_the_remedy() {
        assert_eq!(
            read_manifest("[package]\nname = \"axum\"\n").unwrap_err(),
            "Cargo.toml: the package's name is `axum`, the folder's is `alpha` (set name = \"alpha\")"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\nvariant = []\n"),
            "Cargo.toml: line 4: unknown key `variant` (did you mean `variants`?)"
        );
        assert_eq!(
            error("[[package.metadata.wsbench.variants]]\nname = \"x\"\nfeature = []\n"),
            "Cargo.toml: line 5: unknown key `feature` (did you mean `features`?)"
        );
        assert_eq!(
            error("[package.metadata.wsbnch]\ncrate = \"a\"\n"),
            "Cargo.toml: unknown table `package.metadata.wsbnch` (did you mean `wsbench`?)"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\ncrate = \"a\\nb\"\n"),
            "Cargo.toml: `crate` is \"a\\nb\" (write one line of text without control characters)"
        );
        assert_eq!(
            error(
                "[package.metadata.wsbench]\nvariants = [{ name = \"b\", args = [\"\\u0000\"] }]\n"
            ),
            "Cargo.toml: `args` has a zero byte (take it out)"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\nvariants = [{ name = \"B c\" }]\n"),
            "Cargo.toml: variant name `B c` has characters other than a-z, 0-9, _ and -"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\nvariants = [{ name = \"b\" }, { name = \"b\" }]\n"),
            "Cargo.toml: two variants are named `b`"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\nvariants = [{ name = \"b\\n\\u001bc\" }]\n"),
            "Cargo.toml: variant name `b\\n\\u{1b}c` has characters other than a-z, 0-9, _ and -"
        );
        assert_eq!(
            error("[package.metadata.wsbench]\nomits = [\"echo/text of 1 bytes\"]\n"),
            "Cargo.toml: `omits` has `echo/text of 1 bytes`, and it is a must (only should and note can be left out)"
        );
    }
}
