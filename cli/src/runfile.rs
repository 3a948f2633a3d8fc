//! `output/run/NAME.json`: what `wsbench serve` leaves while it runs. Whoever
//! reads it checks that the processes are still the ones that it names.

use crate::observe::{RemoteObserver, request_stop};
use crate::process::Identity;
use crate::progress::note;
use crate::root::Root;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use wsbench_schema::record::{read_json, write_json};
use wsbench_schema::{PortRange, SCHEMA_VERSION};

/// A server that `wsbench serve` runs on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// [`wsbench_schema::SCHEMA_VERSION`].
    pub schema: u32,
    /// Subject, variant included.
    pub name: String,
    /// The server's process.
    pub server: Identity,
    /// The process of `wsbench serve`.
    pub supervisor: Identity,
    /// Address that it listens on.
    pub host: String,
    /// Ports that it listens on.
    pub ports: PortRange,
    /// Where the control API answers.
    pub control: SocketAddr,
    /// File that holds the token of the control API, if it asks for one.
    pub token_file: Option<PathBuf>,
}

impl RunFile {
    /// Where the files are.
    fn folder(root: &Root) -> PathBuf {
        root.output("run")
    }

    /// Where the file of that server is.
    pub fn path(root: &Root, name: &str) -> PathBuf {
        Self::folder(root).join(format!("{name}.json"))
    }

    /// The running server of that name.
    ///
    /// # Errors
    /// If there is none (with the remedy), or its file cannot be read. A stale file is removed.
    pub fn find(root: &Root, name: &str) -> anyhow::Result<Self> {
        match Self::running(root, name)? {
            Some(file) => Ok(file),
            None => bail!("{name} is not served on this host (run: wsbench serve {name})"),
        }
    }

    /// The running server of that name, if there is one. A stale file is removed.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn running(root: &Root, name: &str) -> anyhow::Result<Option<Self>> {
        let path = Self::path(root, name);
        if !path.exists() {
            return Ok(None);
        }
        let file = Self::read(&path)?;
        if file.is_stale() {
            file.remove(root)?;
            note(format_args!(
                "{}: removed, its server is no more",
                path.display()
            ));
            return Ok(None);
        }
        Ok(Some(file))
    }

    /// Every file there is, stale ones included, by name.
    ///
    /// # Errors
    /// If the folder or a file cannot be read.
    pub fn all(root: &Root) -> anyhow::Result<Vec<Self>> {
        let folder = Self::folder(root);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context(format!("cannot read {}", folder.display())),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry
                .with_context(|| format!("cannot read {}", folder.display()))?
                .path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                files.push(Self::read(&path)?);
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        read_json(path).context("remove the file if no server runs")
    }

    /// Neither the server nor its supervisor runs any more.
    pub fn is_stale(&self) -> bool {
        !self.server.is_running() && !self.supervisor.is_running()
    }

    /// Writes it, and the token beside it, for this user only.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(mut self, root: &Root, token: Option<&str>) -> anyhow::Result<Self> {
        let folder = Self::folder(root);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        self.schema = SCHEMA_VERSION;
        if let Some(token) = token {
            let path = folder.join(format!("{}.token", self.name));
            write_secret(&path, token)
                .with_context(|| format!("cannot write {}", path.display()))?;
            self.token_file = Some(path);
        }
        write_json(&Self::path(root, &self.name), &self)?;
        Ok(self)
    }

    /// Removes it and its token, unless another server of that name has come since.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn remove(&self, root: &Root) -> anyhow::Result<()> {
        let path = Self::path(root, &self.name);
        if read_json::<Self>(&path).is_ok_and(|now| now.server != self.server) {
            return Ok(());
        }
        for path in self.token_file.iter().chain([&path]) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).context(format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An address of this host at which a client reaches the server.
    pub fn client_host(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(address) => reachable(address).to_string(),
            Err(_) => self.host.clone(),
        }
    }

    /// The token of the control API, if it asks for one.
    ///
    /// # Errors
    /// If its file cannot be read, as by another user.
    pub fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        read_token(path).map(Some)
    }

    /// Watches it through its control API.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn observe(&self) -> anyhow::Result<RemoteObserver> {
        let host = reachable(self.control.ip()).to_string();
        RemoteObserver::connect(&host, self.control.port(), self.token()?.as_deref())
    }

    /// Asks its supervisor to stop it.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn request_stop(&self) -> anyhow::Result<()> {
        let host = reachable(self.control.ip()).to_string();
        request_stop(&host, self.control.port(), self.token()?.as_deref())
    }
}

/// A token as it stands in a file.
///
/// # Errors
/// If the file cannot be read or holds none.
pub fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the token in {}", path.display()))?;
    let token = text.trim();
    if token.is_empty() {
        bail!("{} holds no token", path.display());
    }
    Ok(token.to_owned())
}

/// From this host: who listens on all addresses listens on loopback.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Nobody else can read it at any moment.
fn write_secret(path: &Path, secret: &str) -> std::io::Result<()> {
    // An old one may have other rights, which opening would keep.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn project() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("frameworks")).unwrap();
        let root = Root::at(folder.path()).unwrap();
        (folder, root)
    }

    fn file(identity: Identity) -> RunFile {
        RunFile {
            schema: SCHEMA_VERSION,
            name: "echo".into(),
            server: identity,
            supervisor: identity,
            host: "0.0.0.0".into(),
            ports: "10001-10010".parse().unwrap(),
            control: "127.0.0.1:9".parse().unwrap(),
            token_file: None,
        }
    }

    #[test]
    fn a_running_server_is_found_and_its_token_is_for_this_user_only() {
        let (_folder, root) = project();
        let error = RunFile::find(&root, "echo").unwrap_err().to_string();
        assert!(error.contains("(run: wsbench serve echo)"), "{error}");
        let own = Identity::of(std::process::id()).unwrap();
        let written = file(own).write(&root, Some("secret")).unwrap();
        let found = RunFile::find(&root, "echo").unwrap();
        assert_eq!(found, written);
        assert_eq!(found.token().unwrap().as_deref(), Some("secret"));
        let mode = fs::metadata(found.token_file.as_ref().unwrap())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(found.client_host(), "127.0.0.1");
        found.remove(&root).unwrap();
        assert_eq!(RunFile::all(&root).unwrap(), []);
        assert!(!found.token_file.unwrap().exists());
    }

    #[test]
    fn a_stale_file_is_recognised_though_its_number_is_used_again() {
        let (_folder, root) = project();
        let own = Identity::of(std::process::id()).unwrap();
        let earlier = Identity {
            start_ticks: own.start_ticks - 1,
            ..own
        };
        file(earlier).write(&root, None).unwrap();
        assert_eq!(RunFile::all(&root).unwrap().len(), 1);
        assert_eq!(RunFile::running(&root, "echo").unwrap(), None);
        assert_eq!(RunFile::all(&root).unwrap(), []);
    }

    #[test]
    fn the_file_of_a_later_server_is_left_alone() {
        let (_folder, root) = project();
        let own = Identity::of(std::process::id()).unwrap();
        let earlier = Identity {
            start_ticks: own.start_ticks - 1,
            ..own
        };
        let old = file(earlier).write(&root, None).unwrap();
        file(own).write(&root, None).unwrap();
        old.remove(&root).unwrap();
        assert!(RunFile::find(&root, "echo").is_ok());
    }
}
