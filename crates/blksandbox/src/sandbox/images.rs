//! Permissions for opening images, shared by all commands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkimage::{Follow, Format, Location, OpenOptions};

use super::Sandbox;

impl Sandbox {
    /// Creates a sandbox for images that are opened with these options. No image is allowed yet.
    pub fn for_images(open: &OpenOptions) -> Self {
        // A raw image refers to no other file and needs no other program.
        let is_raw = open.format == Some(Format::Raw);
        let mut sandbox = Self::new(if is_raw { Follow::None } else { open.follow });
        sandbox.uris_name_files = open.nbd.allow_local_files;
        if !is_raw {
            sandbox.allow_programs();
        }
        if let Some(folder) = &open.nbd.tls_certificates {
            sandbox.allow_listing(folder);
        }
        if let Some(program) = &open.nbd_server {
            sandbox.allow_program_of(program);
        }
        sandbox
    }

    /// Allows opening the image that `name` stands for.
    pub fn allow_name(&mut self, name: &OsStr) {
        if name == "-" {
            return self.allow_standard_input();
        }
        match Location::new(name) {
            Location::Path(path) => self.allow_image(path),
            Location::Uri(uri) => self.allow_uri(uri.as_bytes()),
            _ => {}
        }
    }

    /// Allows running a program that may be in `PATH`.
    fn allow_program_of(&mut self, program: &Path) {
        if program.as_os_str().as_bytes().contains(&b'/') {
            return self.allow_program(program);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        for folder in std::env::split_paths(&path).filter(|folder| folder.is_absolute()) {
            self.allow_program(&folder.join(program));
        }
    }
}
