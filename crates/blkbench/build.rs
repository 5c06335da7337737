//! Passes the compiler's version to the crate, which prints it with the figures.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok();
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().map_or("rustc of unknown version", str::trim);
    println!("cargo::rustc-env=BLKBENCH_COMPILER={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
