//! Arguments that are an `Image` or the name of an image.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;
use crate::image::Image;
use crate::open::{Opened, Request};
use crate::process::Owned;

/// An image to read: an open one, or one to open.
pub enum Input {
    Open(Arc<Owned<Opened>>),
    ToOpen(Box<Request>),
}

impl Input {
    /// Reads an argument, an `Image` or the name of one.
    pub fn new(image: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::with_options(image, None)
    }

    /// Like [`new`](Self::new), with the keyword arguments for opening the image.
    pub fn with_options(
        image: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        match image.cast::<Image>() {
            Ok(_) if options.is_some_and(|options| !options.is_empty()) => {
                Err(PyTypeError::new_err("an Image is open: give its options to Image()"))
            }
            Ok(image) => {
                let opened = image.get().opened()?;
                opened.get(image.py(), "image")?;
                Ok(Self::Open(opened))
            }
            Err(_) => Ok(Self::ToOpen(Box::new(Request::new(image, options)?))),
        }
    }

    /// Calls `work` with the open image.
    pub fn with<T>(&self, work: impl FnOnce(&Opened) -> Result<T, Failure>) -> Result<T, Failure> {
        match self {
            Self::ToOpen(request) => work(&request.open()?),
            Self::Open(opened) => work(opened.here()?),
        }
    }

    /// Like [`with`](Self::with), for work on whole images and partitions.
    pub fn with_disk<T>(
        &self,
        work: impl FnOnce(&Opened) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with(|opened| work(opened.without_range()?))
    }
}
