//! What blksum allows itself, once it knows which images it is asked for and before it opens one.

use std::path::Path;

use blksandbox::Sandbox;

use super::program::PROGRAM;
use super::settings::Settings;
use super::{in_force, input};
use crate::messages;

/// Before checksums are printed.
pub fn hashing(settings: &Settings, recursive: bool) {
    let Some(mut sandbox) = prepare(settings) else { return };
    for name in &settings.names {
        if recursive && name != "-" && !input::is_uri(name) && Path::new(name).is_dir() {
            sandbox.allow_listing(Path::new(name));
        } else {
            sandbox.allow_name(name);
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

/// A sandbox with what the options ask for.
fn prepare(settings: &Settings) -> Option<Sandbox> {
    if !settings.sandbox {
        say(settings, "sandbox: none, as --no-sandbox says");
        return None;
    }
    Some(Sandbox::for_images(&settings.open))
}

fn enforce(settings: &Settings, sandbox: Sandbox) {
    let in_force = sandbox.enforce();
    say(settings, &in_force::describe(&in_force));
}

fn say(settings: &Settings, text: &str) {
    if settings.verbose {
        messages::remark(PROGRAM, text);
    }
}
