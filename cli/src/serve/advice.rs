//! What to type next, here and on another host.

use crate::runfile::RunFile;
use std::fmt::Write as _;
use std::net::IpAddr;
use wsbench_schema::Target;

/// For one server.
pub fn of(file: &RunFile, url_host: Option<&str>) -> anyhow::Result<String> {
    let name = &file.name;
    let target = Target {
        host: file.host.clone(),
        ports: file.ports,
        path: Target::DEFAULT_PATH.into(),
    };
    let mut text = format!("{name} (pid {}) listens on {target}\n", file.server.pid);
    writeln!(text, "  on this host:    wsbench client -f {name}")?;
    let is_local = |address: &str| {
        address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    };
    let obstacle = match (is_local(&file.host), file.control.ip().is_loopback()) {
        (true, _) => Some("start it with --host 0.0.0.0"),
        (false, true) => Some("start it with --control 0.0.0.0:PORT"),
        (false, false) => None,
    };
    if let Some(remedy) = obstacle {
        writeln!(text, "  on another host: not reachable ({remedy})")?;
        return Ok(text);
    }
    let own_name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let host = match url_host {
        Some(host) => host.to_owned(),
        None if file.client_host() == file.host => file.host.clone(),
        None => own_name,
    };
    write!(
        text,
        "  on another host: wsbench client -f {name} --ip {host} --control-port {}",
        file.control.port()
    )?;
    if let Some(token) = file.token()? {
        write!(text, " --token {token}")?;
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Identity;

    fn file(host: &str, control: &str) -> RunFile {
        let identity = Identity {
            pid: 7,
            start_ticks: 1,
        };
        RunFile {
            schema: 1,
            name: "axum".into(),
            server: identity,
            supervisor: identity,
            host: host.into(),
            ports: "10001-10010".parse().unwrap(),
            control: control.parse().unwrap(),
            token_file: None,
        }
    }

    #[test]
    fn a_server_of_this_host_only_says_so() {
        let text = of(&file("127.0.0.1", "127.0.0.1:9000"), None).unwrap();
        assert!(
            text.starts_with("axum (pid 7) listens on ws://127.0.0.1:10001-10010/ws\n"),
            "{text}"
        );
        assert!(text.contains("wsbench client -f axum\n"), "{text}");
        assert!(text.contains("--host 0.0.0.0"), "{text}");
        let text = of(&file("0.0.0.0", "127.0.0.1:9000"), None).unwrap();
        assert!(text.contains("--control 0.0.0.0:PORT"), "{text}");
    }

    #[test]
    fn another_host_gets_the_whole_command() {
        let mut file = file("0.0.0.0", "0.0.0.0:9000");
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "secret\n").unwrap();
        file.token_file = Some(token);
        let text = of(&file, Some("bench1")).unwrap();
        let command = "wsbench client -f axum --ip bench1 --control-port 9000 --token secret\n";
        assert!(text.ends_with(command), "{text}");
        file.host = "10.0.0.5".into();
        let text = of(&file, None).unwrap();
        assert!(text.contains("--ip 10.0.0.5 "), "{text}");
    }
}
