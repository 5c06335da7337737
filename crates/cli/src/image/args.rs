//! The options of all commands that open images.
//!
//! The headings are those of the help of blksum. The help of blkhash has none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use blkimage::{
    Cache, Follow, Format, FormatName, Holes, NbdOptions, OpenOptions, Reader, VpcSize,
};
use blksandbox::Sandbox;
use clap::ValueHint;

use crate::outputs;
use crate::problem::Failure;
use crate::values::{
    Named, file_format_names, format_names, parse_large_size, parse_seconds, read_secret, timeout,
};

/// Options for opening images.
#[derive(Debug, clap::Args)]
pub struct Opening {
    /// Format or compression [default: as detected]
    #[arg(
        help_heading = IMAGES, short, long, value_name = "FORMAT",
        value_parser = Named::<FormatName>::of(file_format_names), hide_possible_values = true
    )]
    pub format: Option<FormatName>,

    /// Read the internal snapshot with this name or id
    #[arg(help_heading = IMAGES, long, value_name = "NAME")]
    pub snapshot: Option<String>,

    /// Size of vpc (vhd) images: auto (as in QEMU 10.0), geometry (cylinders x heads x sectors) or current
    /// (the size that the image states) [default: auto]
    #[arg(
        help_heading = IMAGES, long, value_name = "WHICH",
        value_parser = Named::<VpcSize>::of(VpcSize::names), hide_possible_values = true, hide_short_help = true
    )]
    pub vpc_size: Option<VpcSize>,

    /// Unlock encrypted (luks) images with the content of FILE
    #[arg(help_heading = IMAGES, long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub secret_file: Option<PathBuf>,

    /// For images from unknown sources: --follow=none
    #[arg(help_heading = SAFETY, long, conflicts_with = "follow")]
    pub untrusted: bool,

    /// Files that an image may refer to: beneath (its own folder), any or none [default: beneath]
    #[arg(
        help_heading = SAFETY, long, value_name = "WHICH",
        value_parser = Named::<Follow>::of(Follow::names), hide_possible_values = true, hide_short_help = true
    )]
    pub follow: Option<Follow>,

    /// Format of backing files whose format is not recorded
    #[arg(
        help_heading = SAFETY, long, value_name = "FORMAT",
        value_parser = Named::<Format>::of(format_names), hide_possible_values = true, hide_short_help = true
    )]
    pub backing_format: Option<Format>,

    /// Read images that are in use
    #[arg(help_heading = SAFETY, short = 'U', long, hide_short_help = true)]
    pub force_share: bool,

    /// Folder of the certificates for nbds:// URIs [default: that of libnbd]
    #[arg(help_heading = SAFETY, long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub tls_certificates: Option<PathBuf>,

    /// Disable the sandbox
    #[arg(help_heading = SAFETY, long, hide_short_help = true)]
    pub no_sandbox: bool,

    /// Refuse images with more than SIZE of zeros that are not stored [default: 1T for formats that hide what is
    /// stored, otherwise no limit]
    #[arg(help_heading = SAFETY, long, value_name = "SIZE", value_parser = parse_large_size, hide_short_help = true)]
    pub max_zeros: Option<u64>,

    /// Refuse compressed files whose dictionary or window is larger than SIZE [default: 256M]
    #[arg(help_heading = SAFETY, long, value_name = "SIZE", value_parser = parse_large_size, hide_short_help = true)]
    pub max_memory: Option<u64>,

    /// Read through the page cache: auto, yes or no [default: auto; without a value: yes]
    #[arg(
        help_heading = SPEED, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "yes",
        value_parser = Named::<Cache>::of(Cache::names), hide_possible_values = true, hide_short_help = true
    )]
    pub cache: Option<Cache>,

    /// How to treat holes in files: trust, verify or ignore [default: trust]
    #[arg(
        help_heading = SPEED, long, value_name = "MODE",
        value_parser = Named::<Holes>::of(Holes::names), hide_possible_values = true, hide_short_help = true
    )]
    pub holes: Option<Holes>,

    /// How formats are read: auto (by this program if it can) or qemu (by qemu-nbd, to compare the two)
    /// [default: auto]
    #[arg(
        help_heading = SPEED, long, value_name = "HOW",
        value_parser = Named::<Reader>::of(Reader::names), hide_possible_values = true, hide_short_help = true
    )]
    pub reader: Option<Reader>,

    /// Program that reads formats that this one does not read [default: qemu-nbd]
    #[arg(help_heading = SPEED, long, value_name = "PROGRAM", value_hint = ValueHint::CommandName, hide_short_help = true)]
    pub nbd_server: Option<PathBuf>,

    /// Fail if a server is silent for SECONDS; 0 waits forever [default: 60]
    #[arg(help_heading = SPEED, long, value_name = "SECONDS", value_parser = parse_seconds, hide_short_help = true)]
    pub timeout: Option<Duration>,
}

impl Opening {
    /// Restricts the process to reading the images of these names, unless the sandbox is switched off. Returns
    /// the options for opening them. Files to write are opened before.
    pub fn confine<'a>(
        &self,
        names: impl IntoIterator<Item = &'a OsString>,
    ) -> Result<OpenOptions, Failure> {
        let options = self.options().map_err(Failure::usage)?;
        outputs::guard();
        if !self.no_sandbox {
            let mut sandbox = Sandbox::for_images(&options);
            for name in names {
                sandbox.allow_name(name);
            }
            sandbox.enforce();
        }
        Ok(options)
    }

    /// Returns the first given option that says what of an image is read.
    pub fn of_content(&self) -> Option<&'static str> {
        let options = [
            ("--snapshot", self.snapshot.is_some()),
            ("--format", self.format.is_some()),
            ("--backing-format", self.backing_format.is_some()),
            ("--vpc-size", self.vpc_size.is_some()),
            ("--secret-file", self.secret_file.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// Returns the format of images, without their compression.
    pub fn format(&self) -> Option<Format> {
        self.format.and_then(|it| it.format)
    }

    /// Returns the options for opening images. The error is what is wrong with the secret.
    pub fn options(&self) -> Result<OpenOptions, String> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let nbd = NbdOptions::new()
            .timeout(timeout(self.timeout))
            .tls_certificates(self.tls_certificates.clone())
            .allow_local_files(true);
        let follow = if self.untrusted { Follow::None } else { self.follow.unwrap_or_default() };
        Ok(OpenOptions::new()
            .format(self.format())
            .compression(self.format.and_then(|it| it.compression))
            .snapshot(self.snapshot.clone())
            .follow(follow)
            .backing_format(self.backing_format)
            .vpc_size(self.vpc_size.unwrap_or_default())
            .holes(self.holes.unwrap_or_default())
            .cache(self.cache.unwrap_or_default())
            .force_share(self.force_share)
            .reader(self.reader.unwrap_or_default())
            .nbd_server(self.nbd_server.clone())
            .secret(secret)
            .max_unstored(self.max_zeros)
            .max_memory(self.max_memory)
            .nbd(nbd))
    }
}

pub const IMAGES: &str = "Images";
pub const SAFETY: &str = "Safety";
pub const SPEED: &str = "Speed and servers";
