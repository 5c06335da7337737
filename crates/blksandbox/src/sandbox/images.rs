//! Permissions for opening images, shared by all commands.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkimage::{Error, ErrorKind, Follow, Format, Location, OpenOptions, Reader};

use super::Sandbox;

impl Sandbox {
    /// Creates a sandbox for images that are opened with these options. No image is allowed yet.
    pub fn for_images(open: &OpenOptions) -> Self {
        // A raw image refers to no other file and needs no other program.
        let is_raw = open.format == Some(Format::Raw);
        let mut sandbox = Self::new(if is_raw { Follow::None } else { open.follow });
        sandbox.uris_name_files = open.nbd.allow_local_files;
        let formats = [open.format, open.backing_format];
        if !is_raw
            && (open.reader == Reader::Qemu
                || open.secret.is_some()
                || formats.into_iter().flatten().any(|format| !format.is_native()))
        {
            sandbox.allow_programs();
        }
        sandbox.programs_by_format = open.format.is_none();
        if let Some(folder) = &open.nbd.tls_certificates {
            sandbox.allow_listing(folder);
        }
        sandbox.http.clone_from(&open.http);
        if let Some(program) = &open.nbd_server {
            sandbox.allow_program_of(program);
        }
        sandbox
    }

    /// Allows opening the image that `name` stands for, and running programs if its format needs that.
    pub fn allow_name(&mut self, name: &OsStr) {
        if name == "-" {
            self.allow_standard_input();
            return self.allow_reader_of(|| {
                let stdin = io::stdin().as_fd().try_clone_to_owned();
                let error = |error| Error::new(ErrorKind::Open, "-", "cannot open").because(error);
                blkimage::detect_file(&File::from(stdin.map_err(error)?), Path::new("-"))
            });
        }
        match Location::new(name) {
            Location::Path(path) => {
                self.allow_image(path);
                self.allow_reader_of(|| blkimage::detect(path));
            }
            Location::Uri(uri) => self.allow_uri(uri.as_bytes()),
            _ => {}
        }
    }

    /// Allows the images beneath a folder. Their formats are not known yet.
    pub fn allow_images_beneath(&mut self, folder: &Path) {
        self.allow_listing(folder);
        self.allow_any_format();
    }

    /// Allows all images, for callers that do not know the names yet.
    pub fn allow_all_images(&mut self) {
        self.allow_reading_everything();
        self.allow_any_format();
    }

    fn allow_any_format(&mut self) {
        if self.programs_by_format {
            self.allow_programs();
        }
    }

    /// Allows running programs if the format of an image needs one. Nothing is read from an image whose
    /// format was given, or if programs are allowed already.
    fn allow_reader_of(&mut self, detect: impl FnOnce() -> blkimage::Result<Format>) {
        if self.programs_by_format
            && !self.runs_programs
            && detect().is_ok_and(|format| !format.is_native())
        {
            self.allow_programs();
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
