//! An image of which a part is read.

use std::sync::Arc;

use blkimage::{Image, Slice, Source};

use crate::part::{Part, PartError};

/// An image, and the part of it that is read.
#[derive(Clone)]
pub struct Selected {
    image: Arc<Image>,
    part: Option<Part>,
    offset: u64,
    source: Slice<Arc<Image>>,
}

impl Selected {
    /// Selects a part of an image, or all of it.
    ///
    /// # Errors
    ///
    /// Fails if the image does not have all of the part.
    pub fn new(image: Arc<Image>, part: Option<Part>) -> Result<Self, PartError> {
        let (offset, length) = match part {
            None => (0, image.size()),
            Some(part) => part.range(&image)?,
        };
        let source = Slice::new(Arc::clone(&image), offset, length).expect("a part of the image");
        Ok(Self { image, part, offset, source })
    }

    /// Returns the first `size` bytes of a whole image that is larger, to compare it with a smaller one. `None` if nothing would be
    /// left, so that nothing would be compared. A part of an image, or one that is not larger, stays as it is.
    #[must_use]
    pub fn without_tail(&self, size: u64) -> Option<Self> {
        if self.part.is_some() || self.size() <= size {
            return Some(self.clone());
        }
        let part = Part::Range { offset: 0, length: Some(size) };
        let selected = Self::new(Arc::clone(&self.image), Some(part));
        (size > 0).then(|| selected.expect("a part of the image"))
    }

    /// Returns the image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Returns the content of the part.
    pub fn source(&self) -> &Slice<Arc<Image>> {
        &self.source
    }

    /// Returns the part, or `None` for the whole image.
    pub fn part(&self) -> Option<Part> {
        self.part
    }

    /// Returns the number of the partition that the part is.
    pub fn partition(&self) -> Option<u32> {
        self.part.and_then(Part::partition)
    }

    /// Returns the offset of the part in the image, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the part in bytes.
    pub fn size(&self) -> u64 {
        self.source.size()
    }
}
