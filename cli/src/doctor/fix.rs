//! Lifts what root may lift.

use super::{Check, Sysctl};
use anyhow::Context as _;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// As `sysctl` names it.
    pub name: &'static str,
    /// Its value before.
    pub from: String,
    /// Its value now.
    pub to: String,
}

/// Writes the settings that the checks name: what was changed, and what the
/// kernel refused, each with its reason. They hold until the next boot.
pub fn fix(checks: &[Check]) -> (Vec<Changed>, Vec<anyhow::Error>) {
    fix_in(Path::new("/proc/sys"), checks)
}

fn fix_in(root: &Path, checks: &[Check]) -> (Vec<Changed>, Vec<anyhow::Error>) {
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    for setting in checks.iter().flat_map(|check| &check.fix) {
        match write(root, setting) {
            Ok(from) => changed.push(Changed {
                name: setting.name,
                from,
                to: setting.value.clone(),
            }),
            Err(error) => refused.push(error),
        }
    }
    (changed, refused)
}

/// The value before. What the kernel took is read again: some values it takes
/// and does not keep.
fn write(root: &Path, Sysctl { name, value }: &Sysctl) -> anyhow::Result<String> {
    let path: PathBuf = root.join(name.replace('.', "/"));
    let read = || {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        anyhow::Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let before = read()?;
    fs::write(&path, value)
        .with_context(|| format!("cannot set {name} to {value} (only root may)"))?;
    let after = read()?;
    anyhow::ensure!(after == *value, "{name} was set to {value} but is {after}");
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, Side, Status};
    use super::*;

    fn check(settings: &[(&'static str, &str)]) -> Check {
        let fix = settings
            .iter()
            .map(|(name, value)| Sysctl::new(name, *value));
        Check::new("files", Side::Machine, Amount::Count(1), Amount::Count(2))
            .with_sysctls(Status::Short, fix.collect())
    }

    #[test]
    fn what_was_changed_is_told_and_what_was_refused_too() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("net/ipv4")).unwrap();
        fs::write(root.path().join("net/ipv4/tcp_mem"), "1\t2\t3\n").unwrap();
        let checks = [
            check(&[("net.ipv4.tcp_mem", "4 5 6")]),
            check(&[("fs.absent", "7")]),
        ];
        let (changed, refused) = fix_in(root.path(), &checks);
        let expected = Changed {
            name: "net.ipv4.tcp_mem",
            from: "1 2 3".into(),
            to: "4 5 6".into(),
        };
        assert_eq!(changed, [expected]);
        assert_eq!(refused.len(), 1);
        assert!(refused[0].to_string().contains("fs.absent"), "{refused:?}");
        assert_eq!(
            checks[0].remedy.as_deref(),
            Some("sysctl -w net.ipv4.tcp_mem=\"4 5 6\"")
        );
    }
}
