//! What blksum allows itself, once it knows which images it is asked for and before it opens one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkimage::{Follow, Format};

use super::PROGRAM;
use super::input;
use super::settings::Settings;
use crate::messages;
use crate::sandbox::Sandbox;

/// Before checksums are printed.
pub fn hashing(settings: &Settings, recursive: bool) {
    let Some(mut sandbox) = prepare(settings) else { return };
    for name in &settings.names {
        if recursive && name != "-" && !input::is_uri(name) && Path::new(name).is_dir() {
            sandbox.allow_listing(Path::new(name));
        } else {
            allow(&mut sandbox, name);
        }
    }
    enforce(settings, sandbox);
}

/// Before checksums are checked: `allow_listed` allows what the check files list, and is false if
/// that is not known yet.
pub fn checking(settings: &Settings, allow_listed: impl FnOnce(&mut Sandbox) -> bool) {
    let Some(mut sandbox) = prepare(settings) else { return };
    if !allow_listed(&mut sandbox) {
        sandbox.allow_reading_everything();
        // It may list standard input, too.
        sandbox.allow_standard_input();
    }
    enforce(settings, sandbox);
}

/// Allows to open what `name` stands for.
pub fn allow(sandbox: &mut Sandbox, name: &OsStr) {
    if name == "-" {
        sandbox.allow_standard_input();
    } else if input::is_uri(name) {
        sandbox.allow_uri(name.as_bytes());
    } else {
        sandbox.allow_image(Path::new(name));
    }
}

/// A sandbox with what the options ask for.
fn prepare(settings: &Settings) -> Option<Sandbox> {
    if !settings.sandbox {
        say(settings, "sandbox: none, as --no-sandbox says");
        return None;
    }
    // What is known to be raw names no other file, and needs no other program.
    let is_raw = settings.open.format == Some(Format::Raw);
    let mut sandbox = Sandbox::new(if is_raw { Follow::None } else { settings.open.follow });
    if !is_raw {
        sandbox.allow_programs();
    }
    if let Some(folder) = &settings.open.nbd.tls_certificates {
        sandbox.allow_listing(folder);
    }
    if let Some(program) = &settings.open.nbd_server {
        allow_program(&mut sandbox, program);
    }
    Some(sandbox)
}

/// Allows to run a program that may be looked up in `PATH`.
fn allow_program(sandbox: &mut Sandbox, program: &Path) {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return sandbox.allow_program(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path).filter(|folder| folder.is_absolute()) {
        sandbox.allow_program(&folder.join(program));
    }
}

fn enforce(settings: &Settings, sandbox: Sandbox) {
    let in_force = sandbox.enforce();
    say(settings, &in_force);
}

fn say(settings: &Settings, text: &str) {
    if settings.verbose {
        messages::message(PROGRAM, text);
    }
}
