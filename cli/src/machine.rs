//! The machine that a trial runs on, and the revision of the harness that runs it.

use crate::cpus;
use crate::git;
use crate::root::Root;
use rustix::process::{Resource, getrlimit};
use std::fs;
use wsbench_schema::Machine;

/// Where the kernel does not say.
const UNKNOWN: &str = "unknown";

/// What a reader needs to know to judge the numbers; `unknown` where the kernel does not say.
pub fn describe() -> Machine {
    let system = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let ephemeral = sysctl("net/ipv4/ip_local_port_range");
    Machine {
        host: part(system.nodename()),
        kernel: format!("{} {}", part(system.sysname()), part(system.release())),
        cpu_model: cpu_model(&cpuinfo),
        cpus_count: cpus::allowed().map_or(0, |cpus| u32::try_from(cpus.len()).unwrap_or(0)),
        memory_bytes: memory_bytes(&meminfo),
        governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .unwrap_or_else(|| "none".into()),
        congestion_control: sysctl("net/ipv4/tcp_congestion_control"),
        ephemeral_ports: ephemeral.split_whitespace().collect::<Vec<_>>().join("-"),
        // None means unlimited.
        nofile_hard_count: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
        rustc: env!("WSBENCH_RUSTC").to_owned(),
    }
}

/// Short revision of the harness, with `-dirty` behind it if a tracked file
/// differs; `unknown` outside of a repository.
pub fn harness_revision(root: &Root) -> String {
    let git = |args: &[&str]| git::ask(root.path(), args);
    let Some(revision) = git(&["rev-parse", git::SHORT, "HEAD"]) else {
        return UNKNOWN.into();
    };
    match git(&["status", "--porcelain", "--untracked-files=no"]).as_deref() {
        Some("") => revision,
        _ => format!("{revision}-dirty"),
    }
}

fn sysctl(name: &str) -> String {
    first_line(&format!("/proc/sys/{name}")).unwrap_or_else(|| UNKNOWN.into())
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// x86 says `model name`; ARM says only numbers, of which the part names the core.
fn cpu_model(cpuinfo: &str) -> String {
    ["model name", "Hardware", "CPU part"]
        .iter()
        .find_map(|name| field(cpuinfo, name))
        .unwrap_or(UNKNOWN)
        .to_owned()
}

fn memory_bytes(meminfo: &str) -> u64 {
    bytes(meminfo, "MemTotal").unwrap_or(0)
}

/// Memory that can be had without swapping.
pub fn available_bytes() -> Option<u64> {
    bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// A line of `/proc/meminfo`.
fn bytes(meminfo: &str, name: &str) -> Option<u64> {
    let kilobytes = field(meminfo, name)?.strip_suffix("kB")?;
    Some(kilobytes.trim().parse::<u64>().ok()? * 1024)
}

/// The value of a `name: value` line, as /proc writes them.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_every_linux_says_is_there() {
        let machine = describe();
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
        assert!(machine.cpus_count >= 1);
        assert!(machine.memory_bytes > 64 << 20, "{}", machine.memory_bytes);
        assert!(machine.rustc.starts_with("rustc "), "{}", machine.rustc);
        assert!(
            machine.ephemeral_ports.contains('-'),
            "{}",
            machine.ephemeral_ports
        );
    }

    #[test]
    fn fields_are_read_by_name() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: B\n";
        assert_eq!(cpu_model(cpuinfo), "AMD EPYC");
        assert_eq!(cpu_model("CPU part\t: 0xd0c\n"), "0xd0c");
        assert_eq!(cpu_model(""), UNKNOWN);
        assert_eq!(
            memory_bytes("MemTotal:       24 kB\nMemFree: 1 kB\n"),
            24 * 1024
        );
        assert_eq!(bytes("MemFree: 24\n", "MemFree"), None);
    }

    #[test]
    fn a_revision_is_dirty_only_if_a_tracked_file_differs() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("frameworks")).unwrap();
        let root = Root::at(folder.path()).unwrap();
        assert_eq!(harness_revision(&root), UNKNOWN);
        let git = |args: &[&str]| {
            let done = Command::new("git")
                .arg("-C")
                .arg(folder.path())
                .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
                .args(args)
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        fs::write(folder.path().join("a"), "1").unwrap();
        git(&["init", "-q"]);
        git(&["add", "a"]);
        git(&["commit", "-qm", "first"]);
        fs::write(folder.path().join("untracked"), "1").unwrap();
        let clean = harness_revision(&root);
        assert!(
            clean.len() >= 12 && clean.bytes().all(|b| b.is_ascii_hexdigit()),
            "{clean}"
        );
        fs::write(folder.path().join("a"), "2").unwrap();
        assert_eq!(harness_revision(&root), format!("{clean}-dirty"));
    }
}
