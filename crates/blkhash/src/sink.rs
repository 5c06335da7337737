//! Consumers of results in the order of the content.

use std::error::Error;

/// Receives the results for consecutive parts of the content, each part once and in order.
/// For a checksum or a map the parts are [`BlockDigests`](crate::BlockDigests).
///
/// A pair of sinks is a sink: both receive everything, the first one first.
pub trait Sink<T> {
    /// Receives the next part.
    ///
    /// # Errors
    ///
    /// Fails if the sink cannot continue. It receives nothing after an error.
    fn take(&mut self, part: &T) -> Result<(), SinkError>;
}

/// The error of a [`Sink`].
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
