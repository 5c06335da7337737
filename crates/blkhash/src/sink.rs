//! What takes what was made of a content, in the order of the content.

use std::error::Error;

/// Takes what was made of consecutive parts of a content, each part once and in order:
/// [`BlockDigests`](crate::BlockDigests) for a checksum or a map.
///
/// A pair of sinks is a sink: both see everything, the first one first.
pub trait Sink<T> {
    /// Takes the next part.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from taking more. Nothing is handed in after an error.
    fn take(&mut self, part: &T) -> Result<(), SinkError>;
}

/// Why a [`Sink`] takes no more.
pub type SinkError = Box<dyn Error + Send + Sync>;

impl<T, A: Sink<T>, B: Sink<T>> Sink<T> for (A, B) {
    fn take(&mut self, part: &T) -> Result<(), SinkError> {
        self.0.take(part)?;
        self.1.take(part)
    }
}

impl<T, S: Sink<T> + ?Sized> Sink<T> for &mut S {
    fn take(&mut self, part: &T) -> Result<(), SinkError> {
        (**self).take(part)
    }
}

impl<T, S: Sink<T> + ?Sized> Sink<T> for Box<S> {
    fn take(&mut self, part: &T) -> Result<(), SinkError> {
        (**self).take(part)
    }
}
