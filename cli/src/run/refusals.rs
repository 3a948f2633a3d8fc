//! Which ports of a target refuse, found by asking each once more: the client
//! counts refused dials by cause, and one dead port among many is what to look for.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};
use wsbench_schema::Target;

/// More ports are counted and not named.
const NAMED_MAX: usize = 8;
/// For a port that does not answer at all, ...
const EACH: Duration = Duration::from_millis(200);
/// ... and for all ports.
const ALL: Duration = Duration::from_secs(1);

/// One line, after dials were refused.
pub fn told(target: &Target) -> String {
    let (ports, refusing) = (target.ports, refusing(target));
    let when = "asked once more after dialling";
    if refusing.is_empty() {
        return format!(
            "dials were refused, but no port of {ports} was found that refuses now ({when})"
        );
    }
    let named: Vec<String> = refusing
        .iter()
        .take(NAMED_MAX)
        .map(u16::to_string)
        .collect();
    let others = match refusing.len() - named.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let named = named.join(", ");
    format!("dials were refused: of the ports {ports}, these refuse: {named}{others} ({when})")
}

fn refusing(target: &Target) -> Vec<u16> {
    let until = Instant::now() + ALL;
    let in_time = target.ports.iter().take_while(|_| Instant::now() < until);
    in_time
        .filter(|port| {
            let addresses = (target.host.as_str(), *port).to_socket_addrs();
            // The client dials the first one.
            let address = addresses.ok().and_then(|mut addresses| addresses.next());
            let dialled = address.map(|address| TcpStream::connect_timeout(&address, EACH));
            matches!(dialled, Some(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn ports_that_refuse_are_named_and_those_that_accept_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap().port();
        let target =
            |ports: &str| -> Target { format!("ws://127.0.0.1:{ports}/ws").parse().unwrap() };
        let accepts = told(&target(&open.to_string()));
        assert!(accepts.contains("no port of "), "{accepts}");
        drop(listener);
        let refuses = told(&target(&open.to_string()));
        assert!(
            refuses.contains(&format!("these refuse: {open} (")),
            "{refuses}"
        );
        // Privileged ports, of which hardly one is used: more than are named.
        let many = told(&target("701-1000"));
        assert!(many.contains(" more ("), "{many}");
        assert!(many.len() < 200, "{many}");
    }
}
