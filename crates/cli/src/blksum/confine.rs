//! Restricts the process to the requested images before it opens the first of them.

use std::path::Path;

use blksandbox::Sandbox;

use super::in_force;
use super::settings::Settings;
use crate::image::input;
use crate::messages;

/// Restricts the process to the images on the command line, for printing checksums.
pub fn hashing(settings: &Settings, recursive: bool) {
    let Some(mut sandbox) = prepare(settings) else { return };
    for name in &settings.names {
        if recursive && name != "-" && !input::is_uri(name) && Path::new(name).is_dir() {
            sandbox.allow_images_beneath(Path::new(name));
        } else {
            sandbox.allow_name(name);
        }
    }
    enforce(settings, sandbox);
}

/// Restricts the process to the listed images, for checking checksums. `allow_listed` allows the images
/// in the check files, and returns false if not all of them are known yet.
pub fn checking(settings: &Settings, allow_listed: impl FnOnce(&mut Sandbox) -> bool) {
    let Some(mut sandbox) = prepare(settings) else { return };
    if !allow_listed(&mut sandbox) {
        sandbox.allow_all_images();
        // The unknown rest of a check file may list standard input.
        sandbox.allow_standard_input();
    }
    enforce(settings, sandbox);
}

/// Restricts the process to the files that are open, where the system can do nothing else.
pub fn opened(settings: &Settings) {
    if !settings.sandbox {
        return;
    }
    let text = match Sandbox::keep_open_files() {
        None => return,
        Some(Ok(())) => "sandbox: capability mode, nothing but the files that are open".into(),
        Some(Err(error)) => format!("sandbox: no capability mode: {}", messages::reason(&error)),
    };
    say(settings, &text);
}

/// Creates a sandbox for the options. Returns `None` if the sandbox is switched off.
fn prepare(settings: &Settings) -> Option<Sandbox> {
    if !settings.sandbox {
        say(settings, "sandbox: none, as --no-sandbox says");
        return None;
    }
    if !Sandbox::IS_SUPPORTED {
        say(settings, &format!("sandbox: none, as {} has no rules for files", blksys::NAME));
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
        messages::remark(text);
    }
}
