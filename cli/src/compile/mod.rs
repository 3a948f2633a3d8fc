//! Builds subjects. Each is built apart, with its own lock file, so that none
//! can change what another is measured with.

mod cargo;
mod command;

pub use cargo::update;

use crate::lines::lines;
use crate::progress::note;
use crate::root::Root;
use crate::subject::{Kind, State, Subject};
use anyhow::{Context as _, bail};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Lines of the log that a failure shows.
const LOG_LINES: usize = 12;

/// What a build says while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A crate is ready, compiled now or before.
    Crate {
        /// Crates that are ready.
        done: usize,
        /// This one.
        name: &'a str,
    },
    /// The lock file was renewed, or a command of `bench.toml` begins.
    Notice(&'a str),
}

/// Who is told.
pub type Progress<'a> = &'a mut dyn FnMut(Event<'_>);

/// Builds a subject, or finds that nothing changed, and returns its program.
///
/// # Errors
/// If it cannot be built: the last lines of the log, and where it is.
pub fn build(root: &Root, subject: &Subject, progress: Progress<'_>) -> anyhow::Result<PathBuf> {
    let state = subject.state(root);
    if let State::Needs(program) = &state {
        let name = &subject.name;
        bail!("{name} needs `{program}`, which is not there (install it)");
    }
    let bin = root.output("bin");
    for folder in [&bin, &root.output("log")] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let log = root
        .output("log")
        .join(format!("build-{}.log", subject.name));
    match &subject.kind {
        Kind::Rust(_) => cargo::build(root, subject, &log, progress),
        Kind::Foreign(manifest) => {
            if state != State::Built {
                build_foreign(root, subject, &manifest.build, &log, progress)?;
            }
            let command = subject.command(root)?;
            Ok(command.first().map(PathBuf::from).unwrap_or_default())
        }
    }
}

/// Builds a program of `cli/examples/` as subjects are built, optimised; returns it.
///
/// # Errors
/// If it cannot be built: the last lines of the log, and where it is.
pub fn build_example(root: &Root, name: &str) -> anyhow::Result<PathBuf> {
    let folder = root.output("log");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    cargo::build_example(root, name, &folder.join(format!("build-{name}.log")))
}

/// Builds a subject that is not built or stale, and says so on standard error.
///
/// # Errors
/// As [`build`].
pub fn ensure_built(root: &Root, subject: &Subject) -> anyhow::Result<()> {
    let (name, state) = (&subject.name, subject.state(root));
    if state == State::Built {
        return Ok(());
    }
    if matches!(state, State::NotBuilt | State::Stale) {
        note(format_args!("{name}: building"));
    }
    build(root, subject, &mut |event| {
        if let Event::Notice(text) = event {
            note(format_args!("{name}: {text}"));
        }
    })?;
    Ok(())
}

fn build_foreign(
    root: &Root,
    subject: &Subject,
    commands: &[Vec<String>],
    log: &Path,
    progress: Progress<'_>,
) -> anyhow::Result<()> {
    let file = create_log(log)?;
    for line in commands {
        let text = line.join(" ");
        progress(Event::Notice(&text));
        let (program, args) = line
            .split_first()
            .context("a command of `build` is empty")?;
        // With a slash it is a file of the folder, as `run` has it.
        let program = if program.contains('/') {
            subject.folder.join(program).into_os_string()
        } else {
            program.into()
        };
        writeln!(&file, "$ {text}").with_context(|| unwritable(log))?;
        let mut command = Command::new(&program);
        command
            .args(args)
            .current_dir(&subject.folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file.try_clone()?);
        let (status, ()) = command::run(&mut command, |_| ())?;
        if !status.success() {
            bail!("`{text}`: {status}{}", tail(log));
        }
    }
    let stamp = subject.stamp(root);
    fs::write(&stamp, "").with_context(|| unwritable(&stamp))
}

fn create_log(log: &Path) -> anyhow::Result<File> {
    File::create(log).with_context(|| unwritable(log))
}

fn unwritable(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// The last lines of a log and its path, to stand behind an error.
fn tail(log: &Path) -> String {
    let mut last = VecDeque::new();
    if let Ok(file) = File::open(log) {
        for line in lines(io::BufReader::new(file)).map_while(Result::ok) {
            if !line.trim().is_empty() {
                last.push_back(line);
            }
            if last.len() > LOG_LINES {
                last.pop_front();
            }
        }
    }
    let mut text = String::new();
    for line in last {
        text.push_str("\n    ");
        text.push_str(&line);
    }
    format!("{text}\n    (whole log: {})", log.display())
}

/// Puts a copy of a file in its place at once: a program that runs from the old
/// file keeps it, and nobody ever sees half of the new one.
fn install(from: &Path, to: &Path, built: SystemTime) -> io::Result<()> {
    let name = to.file_name().unwrap_or(OsStr::new("file")).to_owned();
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(&name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = to.with_file_name(temporary);
    let copied = fs::copy(from, &temporary)
        .and_then(|_| File::options().write(true).open(&temporary))
        // As old as the sources that went in: one edited meanwhile is newer.
        .and_then(|file| file.set_modified(built))
        .and_then(|()| fs::rename(&temporary, to));
    if copied.is_err() {
        // It may not have been made at all.
        let _ = fs::remove_file(&temporary);
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    fn silent(_: Event<'_>) {}

    fn beta(project: &Project, build: &str) -> anyhow::Result<PathBuf> {
        let text =
            format!("language = \"sh\"\nversion = \"1\"\nbuild = {build}\nrun = [\"./server\"]\n");
        project.write("frameworks/foreign/beta/bench.toml", &text);
        let catalog = project.catalog();
        super::build(&project.root, catalog.find("beta")?, &mut silent)
    }

    #[test]
    fn a_foreign_subject_is_built_in_its_folder_and_once() {
        let project = Project::new();
        project.script(
            "frameworks/foreign/beta/make.sh",
            "echo x >> count; cp /bin/sh server",
        );
        let program = beta(&project, "[[\"./make.sh\"]]").unwrap();
        assert!(program.ends_with("frameworks/foreign/beta/server"));
        let count = program.with_file_name("count");
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\n");
        let catalog = project.catalog();
        let subject = catalog.find("beta").unwrap();
        assert_eq!(subject.state(&project.root), State::Built);
        super::build(&project.root, subject, &mut silent).unwrap();
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\n", "built again");
        let later = SystemTime::now() + std::time::Duration::from_secs(2);
        let source = subject.folder.join("make.sh");
        File::open(source).unwrap().set_modified(later).unwrap();
        super::build(&project.root, subject, &mut silent).unwrap();
        assert_eq!(
            fs::read_to_string(&count).unwrap(),
            "x\nx\n",
            "not built again"
        );
    }

    #[test]
    fn a_failed_build_shows_the_end_of_its_log() {
        let project = Project::new();
        let error = beta(
            &project,
            "[[\"sh\", \"-c\", \"seq 100; echo no compiler >&2; exit 7\"]]",
        )
        .unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("exit status: 7"), "{error}");
        assert!(error.contains("\n    100\n    no compiler\n"), "{error}");
        assert!(!error.contains("\n    80\n"), "{error}");
        assert!(error.contains("output/log/build-beta.log"), "{error}");
        let error = beta(&project, "[[\"no-such-compiler\"]]").unwrap_err();
        assert!(format!("{error:#}").contains("cannot run `no-such-compiler`"));
    }

    #[test]
    fn a_running_program_survives_its_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sleep");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let sleep = Path::new(sleep.unwrap());
        install(sleep, &program, SystemTime::now()).unwrap();
        let mut running = Command::new(&program).arg("30").spawn().unwrap();
        let built = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        install(Path::new("/bin/sh"), &program, built).unwrap();
        assert!(running.try_wait().unwrap().is_none(), "it died");
        running.kill().unwrap();
        running.wait().unwrap();
        assert_eq!(fs::read(&program).unwrap(), fs::read("/bin/sh").unwrap());
        assert_eq!(program.metadata().unwrap().modified().unwrap(), built);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
