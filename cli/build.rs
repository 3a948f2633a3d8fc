//! Tells the program which compiler it was built by, for the description of the machine.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "rustc unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo:rustc-env=WSBENCH_RUSTC={version}");
}
