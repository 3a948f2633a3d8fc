//! `wsbench new`.

use crate::root::Root;
use crate::subject::check_name;
use crate::table;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The server that the new one begins as, with the versions it was tried with.
/// It is read when it is asked for: the harness itself needs no subject.
const BEGINNING: &str = "tokio_tungstenite";
/// Where this program was built, for a project folder without that server.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../frameworks");

/// Writes the folder of a new server: a complete echo server to change.
///
/// It begins as a copy of tokio_tungstenite. Nothing else has to be edited: the
/// folder is found by its name.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the folder and the package: a-z, 0-9, _ and -
    name: String,
}

pub fn run(Args { name }: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let folder = write(&root, &name)?;
    table::print(&format!(
        "{} is a complete echo server on tokio-tungstenite. Next:\n\
         \x20 wsbench build {name}\n\
         \x20 wsbench verify {name}\n\
         \x20 change src/main.rs and Cargo.toml to your framework, and say in README.md what was chosen\n\
         \x20 wsbench run {name} floor",
        folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn write(root: &Root, name: &str) -> anyhow::Result<PathBuf> {
    check_name(name)
        .map_err(|reason| anyhow::anyhow!("{reason} (as in: wsbench new my_server)"))?;
    if name == "foreign" || name == "target" {
        bail!("name `{name}` has a meaning of its own in frameworks/ (choose another)");
    }
    let folder = root.frameworks().join(name);
    if folder.symlink_metadata().is_ok() {
        bail!("{} exists already (choose another name)", folder.display());
    }
    let beginning = [root.frameworks(), BUILT_IN.into()]
        .into_iter()
        .map(|frameworks| frameworks.join(BEGINNING))
        .find(|folder| folder.is_dir())
        .with_context(|| {
            format!(
                "no folder frameworks/{BEGINNING}, which new servers are made from (restore it)"
            )
        })?;
    let read = |path: &str| {
        let path = beginning.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    for (path, text) in [
        ("Cargo.toml", renamed(&read("Cargo.toml")?, name)),
        ("Cargo.lock", sorted(&renamed(&read("Cargo.lock")?, name))),
        ("src/main.rs", read("src/main.rs")?),
        ("README.md", readme(name)),
    ] {
        write_file(&folder.join(path), &text)?;
    }
    Ok(folder)
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The package's own name; that of the crate it measures is spelled otherwise.
fn renamed(text: &str, name: &str) -> String {
    text.replace(
        &format!("name = \"{BEGINNING}\""),
        &format!("name = \"{name}\""),
    )
}

/// A lock file's packages stand in the order of their names; Cargo takes any
/// other order for a file that must be written again.
fn sorted(lock: &str) -> String {
    let mut parts = lock.split("[[package]]\n");
    let head = parts.next().unwrap_or_default();
    let mut packages: Vec<&str> = parts.map(str::trim_end).collect();
    let key = |package: &&str| {
        let line = |at: usize| package.lines().nth(at).unwrap_or_default().to_owned();
        (line(0), line(1))
    };
    packages.sort_by_key(key);
    let packages = packages.join("\n\n[[package]]\n");
    format!("{head}[[package]]\n{packages}\n")
}

fn readme(name: &str) -> String {
    format!(
        "# {name}\n\n\
         An echo server under test. `wsbench new` wrote it as a copy of `{BEGINNING}`.\n\n\
         What the harness asks of it (the flags are `wsbench-server-kit`'s):\n\n\
         \x20   {name} --host 127.0.0.1 --ports 10001-10010 [--nodelay true|false] [--max-message BYTES] [--threads N]\n\
         \x20   {name} --version\n\n\
         - WebSocket upgrade at `/ws` on every port; each message comes back with its own type.\n\
         - Pings are answered, the closing handshake is completed, SIGTERM ends it within a second.\n\
         - As many threads as its CPU affinity allows, unless `--threads` says otherwise.\n\
         - The fastest honest program that the framework's documentation leads to: production\n\
         \x20 settings, no shortcuts in the protocol, no knowledge of the load.\n\n\
         `crate` in Cargo.toml names the crate whose version in Cargo.lock is reported.\n\n\
         ## Settings that matter\n\n\
         Buffer sizes, write policy, compression, allocator: what was chosen, and why.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    #[test]
    fn the_folder_is_a_subject_at_once() {
        let project = Project::new();
        let folder = write(&project.root, "zebra").unwrap();
        let catalog = project.catalog();
        assert_eq!(catalog.broken, []);
        let version = catalog.find("zebra").unwrap().version();
        assert!(version.starts_with("tokio-tungstenite 0."), "{version}");
        let lock = fs::read_to_string(folder.join("Cargo.lock")).unwrap();
        assert!(lock.contains("name = \"zebra\""));
        assert!(!lock.contains("name = \"tokio_tungstenite\""));
        assert!(
            fs::read_to_string(folder.join("README.md"))
                .unwrap()
                .starts_with("# zebra\n")
        );
    }

    #[test]
    fn sorting_changes_nothing_but_the_order() {
        let shipped = Path::new(BUILT_IN).join(BEGINNING).join("Cargo.lock");
        let shipped = fs::read_to_string(shipped).unwrap();
        assert_eq!(sorted(&shipped), shipped);
        let lock = "# head\nversion = 4\n\n[[package]]\nname = \"b\"\nversion = \"1\"\n\n[[package]]\nname = \"a\"\nversion = \"2\"\n";
        let expected = "# head\nversion = 4\n\n[[package]]\nname = \"a\"\nversion = \"2\"\n\n[[package]]\nname = \"b\"\nversion = \"1\"\n";
        assert_eq!(sorted(lock), expected);
    }

    #[test]
    fn what_exists_is_left_alone_and_bad_names_are_refused() {
        let project = Project::new();
        let main = project.rust("alpha").join("src/main.rs");
        let before = fs::read_to_string(&main).unwrap();
        let error = write(&project.root, "alpha").unwrap_err().to_string();
        assert!(
            error.ends_with("alpha exists already (choose another name)"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&main).unwrap(), before);
        for bad in ["", "Upper", "a/b", "..", "-x", "foreign", "target"] {
            assert!(write(&project.root, bad).is_err(), "{bad}");
        }
    }
}
