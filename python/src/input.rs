//! Arguments that are an `Image` or the name of an image.

use std::sync::Arc;

use pyo3::prelude::*;

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
        match image.cast::<Image>() {
            Ok(image) => {
                let opened = image.get().opened()?;
                opened.get(image.py(), "image")?;
                Ok(Self::Open(opened))
            }
            Err(_) => Ok(Self::ToOpen(Box::new(Request::new(image, None)?))),
        }
    }

    /// Calls `work` with the open image.
    pub fn with<T>(&self, work: impl FnOnce(&Opened) -> Result<T, Failure>) -> Result<T, Failure> {
        match self {
            Self::ToOpen(request) => work(&request.open()?),
            Self::Open(opened) => work(opened.here()?),
        }
    }
}
