//! Where the project is, and the folders that everything else is found in.

use anyhow::{Context as _, bail};
use std::env;
use std::path::{Path, PathBuf};

/// The project's folder.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// `WSBENCH_ROOT` if set; else the nearest folder above the current one, or
    /// above this program, that holds `frameworks/`.
    pub fn find() -> anyhow::Result<Self> {
        if let Some(path) = env::var_os("WSBENCH_ROOT") {
            return Self::at(Path::new(&path)).context("WSBENCH_ROOT");
        }
        let here = env::current_dir().context("cannot find the current folder")?;
        let program = env::current_exe().context("cannot find this program's file")?;
        let is_root = |path: &&Path| path.join("frameworks").is_dir();
        match here
            .ancestors()
            .find(is_root)
            .or_else(|| program.ancestors().find(is_root))
        {
            Some(path) => Ok(Self(path.to_owned())),
            None => bail!(
                "no folder `frameworks` above {} (run inside the project, or set WSBENCH_ROOT)",
                here.display()
            ),
        }
    }

    /// The folder of that name, which must hold `frameworks/`.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        if !path.join("frameworks").is_dir() {
            bail!("{} has no folder `frameworks`", path.display());
        }
        Ok(Self(path.canonicalize()?))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// One folder a server.
    pub fn frameworks(&self) -> PathBuf {
        self.0.join("frameworks")
    }

    /// Relays and transfer servers, a folder each.
    pub fn tcp(&self) -> PathBuf {
        self.0.join("tcp")
    }

    /// Named loads.
    pub fn profiles(&self) -> PathBuf {
        self.0.join("profiles")
    }

    /// What `clean` removes: `bin`, `log`, `report`, `run`.
    pub fn output(&self, kind: &str) -> PathBuf {
        self.0.join("output").join(kind)
    }

    /// What nothing removes unasked: a folder a run.
    pub fn results(&self) -> PathBuf {
        self.0.join("results")
    }
}
