//! A Rust subject: one call of Cargo, and a copy of the binary it names.

use super::{Event, Progress, command, create_log, install, tail, unwritable};
use crate::lines::lines;
use crate::root::Root;
use crate::subject::{Kind, Lock, RustBuild, Subject};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::env;
use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The lines of `--message-format=json` that matter here.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        target: Target,
        executable: Option<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

pub fn build(
    root: &Root,
    subject: &Subject,
    log: &Path,
    progress: Progress<'_>,
) -> anyhow::Result<PathBuf> {
    let Kind::Rust(package) = &subject.kind else {
        bail!("{} is no Cargo package", subject.name);
    };
    let file = create_log(log)?;
    if !Lock::read(&subject.folder).is_some_and(|lock| lock.has_own(&package.package)) {
        renew_lock(root, subject, &file, log, progress)?;
    }
    let started = SystemTime::now();
    let mut command = build_command(root, subject, package);
    command.stdout(Stdio::piped()).stderr(file);
    let read = |output: Option<_>| {
        output.and_then(|output| read_messages(output, &package.package, progress))
    };
    let (status, executable) = command::run(&mut command, read)?;
    if !status.success() {
        let manifest = manifest(subject);
        let lines = tail(log);
        let remedy = if lines.contains("--locked") {
            format!(
                " (Cargo.lock does not fit Cargo.toml; run: cargo update --workspace --manifest-path {})",
                manifest.display()
            )
        } else {
            String::new()
        };
        bail!("cargo build failed{remedy}{lines}");
    }
    let name = &package.package;
    let executable = executable
        .with_context(|| format!("cargo built no program named `{name}`{}", tail(log)))?;
    place(root, subject, &executable, started)
}

/// Builds an example of the harness itself; returns its program, where cargo put it.
pub fn build_example(root: &Root, name: &str, log: &Path) -> anyhow::Result<PathBuf> {
    let mut child = cargo(root)
        .args(["build", "--release", "--locked", "--color=never"])
        .arg("--message-format=json-render-diagnostics")
        .args(["--package", "wsbench", "--example", name])
        .stdout(Stdio::piped())
        .stderr(create_log(log)?)
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let executable = read_messages(output, name, &mut |_| {});
    let status = child.wait().context("cannot wait for cargo")?;
    executable
        .filter(|_| status.success())
        .with_context(|| format!("cargo cannot build the example `{name}`{}", tail(log)))
}

/// `cargo update` of a manifest with these arguments, what it says into `log`.
///
/// # Errors
/// If it cannot be run, or fails: the last lines of the log, and where it is.
pub fn update(
    root: &Root,
    manifest: &Path,
    args: &[&str],
    is_offline: bool,
    log: &Path,
) -> anyhow::Result<()> {
    let file = create_log(log)?;
    let mut command = cargo(root);
    command.args(["update", "--color=never", "--manifest-path"]);
    command.arg(manifest).args(args);
    if is_offline {
        command.arg("--offline");
    }
    command.stdout(file.try_clone()?).stderr(file);
    let (status, ()) = command::run(&mut command, |_| ())?;
    if !status.success() {
        bail!("cargo cannot write Cargo.lock{}", tail(log));
    }
    Ok(())
}

fn manifest(subject: &Subject) -> PathBuf {
    subject.folder.join("Cargo.toml")
}

/// Cargo, run where the project's `.cargo/config.toml` applies.
fn cargo(root: &Root) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root.path()).stdin(Stdio::null());
    // Set when this program itself runs under `cargo run` or `cargo test`: the
    // package they name is not the one that is built here.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

fn build_command(root: &Root, subject: &Subject, package: &RustBuild) -> Command {
    let mut command = cargo(root);
    command
        .args(["build", "--release", "--locked", "--color=never"])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(manifest(subject))
        .args(["--bin", &package.package]);
    if !package.default_features {
        command.arg("--no-default-features");
    }
    if !package.features.is_empty() {
        command.arg("--features").arg(package.features.join(","));
    }
    command
}

/// Tells of each crate; returns the program of that name.
fn read_messages(
    output: impl std::io::Read,
    program: &str,
    progress: Progress<'_>,
) -> Option<PathBuf> {
    let mut executable_found = None;
    let mut done = 0;
    for line in lines(BufReader::new(output)).map_while(Result::ok) {
        let Ok(Message::CompilerArtifact { target, executable }) = serde_json::from_str(&line)
        else {
            continue;
        };
        done += 1;
        let name = &target.name;
        progress(Event::Crate { done, name });
        if target.name == program && executable.is_some() {
            executable_found = executable;
        }
    }
    executable_found
}

/// Copies the binary, and Cargo's list of what went into it, to `output/bin`.
fn place(
    root: &Root,
    subject: &Subject,
    executable: &Path,
    started: SystemTime,
) -> anyhow::Result<PathBuf> {
    let binary = subject.binary(root);
    let same = same_content(executable, &binary);
    if same {
        File::open(&binary)
            .and_then(|file| file.set_modified(started))
            .with_context(|| unwritable(&binary))?;
    } else {
        install(executable, &binary, started).with_context(|| unwritable(&binary))?;
    }
    let list = subject.dependencies(root);
    install(&executable.with_extension("d"), &list, started).with_context(|| unwritable(&list))?;
    Ok(binary)
}

fn same_content(a: &Path, b: &Path) -> bool {
    let size = |path: &Path| path.metadata().map(|file| file.len()).ok();
    size(a).is_some()
        && size(a) == size(b)
        && matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}

/// The folder was copied and renamed, or is new: its lock file does not have the
/// package itself. That entry is added and every version already in it is kept,
/// without the network if what is needed is on this machine.
fn renew_lock(
    root: &Root,
    subject: &Subject,
    mut file: &File,
    log: &Path,
    progress: Progress<'_>,
) -> anyhow::Result<()> {
    let had_one = subject.folder.join("Cargo.lock").exists();
    for offline in [true, false] {
        let mut command = cargo(root);
        command.args(["update", "--workspace", "--color=never", "--manifest-path"]);
        command.arg(manifest(subject));
        if offline {
            command.arg("--offline");
        }
        let how = if offline {
            "without the network"
        } else {
            "with the network"
        };
        writeln!(file, "$ cargo update --workspace ({how})").with_context(|| unwritable(log))?;
        command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        let (status, ()) = command::run(&mut command, |_| ())?;
        if status.success() {
            progress(Event::Notice(match had_one {
                true => "its Cargo.lock was of another package; renewed, other versions kept",
                false => "Cargo.lock written; keep it, it says what is measured",
            }));
            return Ok(());
        }
    }
    bail!("cargo cannot write Cargo.lock{}", tail(log));
}
