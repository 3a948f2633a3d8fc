//! A project in a temporary folder, for tests.

use super::Catalog;
use crate::root::Root;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// Removed when dropped.
pub struct Project {
    pub root: Root,
    folder: TempDir,
}

impl Project {
    /// An empty `frameworks/` and nothing else.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("frameworks")).unwrap();
        let root = Root::at(folder.path()).unwrap();
        Self { root, folder }
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Adds to the end of a file.
    pub fn append(&self, path: &str, text: &str) {
        let old = fs::read_to_string(self.folder.path().join(path)).unwrap();
        self.write(path, &(old + text));
    }

    /// Writes an executable shell script.
    pub fn script(&self, path: &str, body: &str) -> PathBuf {
        let path = self.write(path, &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes a package without dependencies that prints its arguments.
    pub fn rust(&self, name: &str) -> PathBuf {
        let folder = format!("frameworks/{name}");
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        self.write(&format!("{folder}/Cargo.toml"), &manifest);
        let main = "fn main() {\n    println!(\"{:?}\", std::env::args().skip(1).collect::<Vec<_>>());\n}\n";
        self.write(&format!("{folder}/src/main.rs"), main);
        self.folder.path().join(folder)
    }

    /// What is found in it.
    pub fn catalog(&self) -> Catalog {
        Catalog::discover(&self.root).unwrap()
    }
}
