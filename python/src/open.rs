//! Opens images, with the options that `checksum()`, `Image` and others share.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use blkimage::partition::{NoPartition, TableError};
use blkimage::{
    Format, Image, Location, Member, OpenOption, OpenOptions, OptionKind, OptionValue, Secret,
    Source,
};
use blksum::expect::FileBytes;
use blksum::map::Subject;
use blksum::{Content, Part, PartError, Selected};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::value_error;
use crate::buffer::Buffer;
use crate::errors::Failure;

/// An image to open.
pub struct Request {
    name: Name,
    options: OpenOptions,
    part: Option<Part>,
}

/// Where an image or a copy is.
pub enum Name {
    Path(PathBuf),
    /// A text, which is a URI or a path.
    Location(OsString),
}

impl Name {
    /// Reads an argument.
    pub fn new(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = match name.is_instance_of::<PyString>() {
            true => Self::Location(name.extract()?),
            false => Self::Path(name.extract()?),
        };
        match name.as_os_str().as_bytes().contains(&0) {
            true => Err(PyValueError::new_err("embedded null byte")),
            false => Ok(name),
        }
    }

    /// Returns the name as the caller gave it.
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            Self::Path(path) => path.as_os_str(),
            Self::Location(text) => text,
        }
    }

    /// Tells a path from a URI.
    pub fn location(&self) -> Location<'_> {
        match self {
            Self::Path(path) => Location::Path(path),
            Self::Location(text) => Location::new(text),
        }
    }
}

impl Request {
    /// Reads the name of an image, and the keyword arguments about it.
    pub fn new(name: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut request = Self { name: Name::new(name)?, options: OpenOptions::new(), part: None };
        for (key, value) in options.into_iter().flatten() {
            let key: String = key.extract()?;
            request.set(&key, &value)?;
        }
        Ok(request)
    }

    /// Like [`new`](Self::new), with the range of bytes that is the content.
    pub fn of_range(
        name: &Bound<'_, PyAny>,
        (offset, length): (u64, Option<u64>),
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let request = Self::new(name, options)?;
        match (offset, length) {
            (0, None) => Ok(request),
            _ if request.part.is_some() => {
                Err(PyTypeError::new_err("partition excludes offset and length"))
            }
            _ => Ok(Self { part: Some(Part::Range { offset, length }), ..request }),
        }
    }

    /// Asks for a part of the image of this name.
    pub fn with(name: Name, options: OpenOptions, part: Option<Part>) -> Self {
        Self { name, options, part }
    }

    /// Returns the part of the image that is asked for.
    pub fn part(&self) -> Option<Part> {
        self.part
    }

    /// Whether a part of what the file holds is asked for.
    pub fn is_of_part(&self) -> bool {
        self.part.is_some() || self.options.snapshot.is_some()
    }

    /// Returns where the image is.
    pub fn into_name(self) -> Name {
        self.name
    }

    /// Returns where the image is.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the options for opening it.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Sets an option. `None` is the default of each.
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = key.replace('_', "-");
        match OpenOption::find(&name).filter(|_| !key.contains('-')) {
            _ if key == "partition" => {
                self.part = value.extract::<Option<u32>>()?.map(Part::Partition);
            }
            None => {
                let message = format!("'{key}' is an invalid keyword argument");
                return Err(PyTypeError::new_err(message));
            }
            Some(_) if value.is_none() => {}
            Some(option) => {
                let set = self.options.set(option, option_value(option, value)?);
                set.map_err(|reason| PyValueError::new_err(format!("{key} {reason}")))?;
            }
        }
        Ok(())
    }

    /// Opens the image. An image that a child process serves lives no longer than this thread.
    pub fn open(&self) -> Result<Opened, Failure> {
        self.select(Arc::new(self.open_image()?))
    }

    /// Opens the image, but no partition of it.
    pub fn open_image(&self) -> Result<Image, blkimage::Error> {
        self.options.open_location(self.name.location())
    }

    /// Selects the part of the image.
    pub fn select(&self, image: Arc<Image>) -> Result<Opened, Failure> {
        let name = self.name.as_os_str();
        let selected = Selected::new(image, self.part);
        let selected = selected.map_err(|error| match error {
            PartError::Partition(NoPartition::Table(TableError::Image(error))) => {
                Failure::Image(error)
            }
            error => Failure::Value(name.to_string_lossy().into_owned(), error.to_string()),
        })?;
        let bytes = FileBytes::of(self.name.location(), &self.options, &selected);
        let (snapshot, name) = (self.options.snapshot.clone(), name.to_owned());
        Ok(Opened { selected, name, bytes, snapshot, format: self.options.format, keeper: None })
    }

    /// Opens the image on a thread of its own, which lives as long as the image if that needs it.
    pub fn open_kept(self) -> Result<Opened, Failure> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (keeper, kept) = mpsc::channel::<()>();
        let spawned = std::thread::Builder::new().name("blkhash".into()).spawn(move || {
            let opened = self.open();
            let is_served = opened.as_ref().is_ok_and(Opened::is_served);
            if sender.send(opened).is_ok() && is_served {
                // Returns when the other end is dropped.
                let _ = kept.recv();
            }
        });
        spawned.map_err(|error| Failure::Other(format!("no thread can be started: {error}")))?;
        let opened = receiver.recv();
        let opened = opened.map_err(|_| Failure::Other("a thread has panicked".into()))??;
        Ok(Opened { keeper: Some(keeper), ..opened })
    }
}

/// An open image, or a part of it.
pub struct Opened {
    pub selected: Selected,
    /// The name as the caller gave it.
    pub name: OsString,
    /// The file that stores it, if its bytes are not the content.
    pub bytes: Option<FileBytes>,
    pub snapshot: Option<String>,
    /// The format that was asked for.
    format: Option<Format>,
    /// Ends the thread that opened the image when it is dropped.
    #[expect(dead_code, reason = "is only dropped")]
    keeper: Option<mpsc::Sender<()>>,
}

impl Opened {
    /// Returns the image.
    pub fn image(&self) -> &Image {
        self.selected.image()
    }

    /// Refuses a range of bytes: what reads a whole disk or a partition would treat its beginning as a disk's.
    pub fn without_range(&self) -> Result<&Self, Failure> {
        match self.selected.part() {
            Some(Part::Range { .. }) => {
                let reason = "is a range of an image: this takes whole images and partitions";
                Err(Failure::Value(self.name.display().to_string(), reason.to_owned()))
            }
            _ => Ok(self),
        }
    }

    /// Returns the first `size` bytes of a whole image, which may be larger than what it is compared with.
    pub fn without_tail(&self, size: u64) -> Result<Self, Failure> {
        let refused = |reason: &str| Failure::Value(self.name.display().to_string(), reason.into());
        if self.selected.part().is_some() {
            return Err(refused("is a part of an image: ignore_tail takes whole ones"));
        }
        let nothing = "is compared with an image of 0 bytes: nothing would be left";
        let selected = self.selected.without_tail(size).ok_or_else(|| refused(nothing))?;
        let (name, snapshot) = (self.name.clone(), self.snapshot.clone());
        Ok(Self { selected, name, bytes: None, snapshot, format: self.format, keeper: None })
    }

    /// Returns the names of the files of the image.
    pub fn files(&self) -> impl Iterator<Item = &OsStr> {
        self.image().files().map(Path::as_os_str)
    }

    /// Returns the content.
    pub fn content(&self) -> &dyn Source {
        self.selected.source()
    }

    /// Describes the content for a tag. `None` if a tag cannot. If a vpc image has two sizes, it says which one was read.
    pub fn recorded(&self) -> Option<Content> {
        let (format, snapshot) = (self.format, self.snapshot.clone());
        let vpc_size = self.image().chain().iter().find_map(Member::vpc_sizes).map(|it| it.read);
        let content = Content { format, vpc_size, snapshot, part: self.selected.part() };
        content.check_recordable().is_ok().then_some(content)
    }

    /// Describes the content for its map.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            name: &self.name,
            image: self.image(),
            source: self.content(),
            snapshot: self.snapshot.as_deref(),
            partition: self.selected.partition(),
        }
    }

    /// Returns whether a child process serves the image, which the kernel ends with the thread that started it.
    fn is_served(&self) -> bool {
        self.image().chain().iter().any(Member::is_served)
    }
}

/// Converts the value of an option.
fn option_value(option: OpenOption, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    Ok(match option.kind() {
        OptionKind::Flag => OptionValue::Flag(value.is_truthy()?),
        OptionKind::Size => OptionValue::Size(value.extract()?),
        OptionKind::Seconds => {
            let duration = Duration::try_from_secs_f64(value.extract()?);
            OptionValue::Duration(duration.map_err(value_error)?)
        }
        OptionKind::File | OptionKind::Folder | OptionKind::Program => {
            OptionValue::Path(value.extract()?)
        }
        OptionKind::Secret => OptionValue::Secret(Secret::new(Buffer::of(value)?.bytes())),
        OptionKind::Format { .. } | OptionKind::Words(_) | OptionKind::Text => {
            OptionValue::Text(value.extract()?)
        }
    })
}
