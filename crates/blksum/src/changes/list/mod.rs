//! Lists of changed extents, in the forms of the programs that print them.
//!
//! A list may come from an untrusted source. It is read as a stream: memory is bounded by [`List::MAX_EXTENTS`], time by
//! [`List::MAX_TEXT`]. An extent that is missing leads to a wrong map, so whatever is not understood is an error: unknown
//! fields, an extent of no bytes, a text that ends within a record.

mod columns;
mod csi;
mod ebs;
mod error;
mod extents;
mod form;
mod json;
#[cfg(test)]
mod model;
mod recognise;
mod records;
#[cfg(test)]
mod tests;
mod text;
mod thin_delta;
mod vmware;
mod xenserver;

use std::io::Read;

use self::extents::Extents;
use self::text::Text;
use super::Changes;

pub use error::ListError;
pub use form::Form;

/// A list of changed extents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct List {
    /// The extents.
    pub changes: Changes,
    /// Size of the disk in bytes, if the list states it.
    pub disk_size: Option<u64>,
    /// Number of bytes of the disk that the list covers, if it states that and not the size: a larger disk has another list.
    pub covered: Option<u64>,
    /// The form of the text.
    pub form: Form,
}

impl List {
    /// Maximum length of a text in bytes.
    pub const MAX_TEXT: u64 = text::MAX_TEXT;

    /// Maximum number of extents, after each was joined with the one before it. They take 256 MiB.
    pub const MAX_EXTENTS: usize = extents::MAX_EXTENTS;

    /// Reads a list. Its form is recognised by its content. If `form` is given, any other form is an error.
    ///
    /// ```
    /// use blksum::changes::{Form, List};
    ///
    /// # fn main() -> Result<(), blksum::changes::ListError> {
    /// let text = r#"[{"offset":65536,"length":4096,"exists":"true"}]"#;
    /// let list = List::parse(text.as_bytes(), None)?;
    /// assert_eq!((list.form, list.changes.extents()), (Form::Rbd, &[65536..69632][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be read, exceeds a limit, or is not a complete list in a known form or in the given one. An
    /// empty text, or one of spaces, is a list only if `form` is [`Form::Lines`] or [`Form::Csv`].
    pub fn parse(text: impl Read, form: Option<Form>) -> Result<Self, ListError> {
        let mut text = Text::new(text)?;
        let form = recognise::form(text.head(), form)?;
        let mut extents = Extents::default();
        let mut covered = None;
        match form {
            Form::Csi => json::read(&mut text, &mut csi::Records(&mut extents))?,
            Form::Ebs => ebs::read(&mut text, &mut extents)?,
            Form::Rbd => json::read(&mut text, &mut records::Rbd(&mut extents))?,
            Form::Nbdinfo => records::read_nbdinfo(&mut text, &mut extents)?,
            Form::Json => json::read(&mut text, &mut records::Plain(&mut extents))?,
            Form::Vmware => vmware::read(&mut text, &mut extents)?,
            Form::Xenserver => covered = Some(xenserver::read(&mut text, &mut extents)?),
            Form::ThinDelta => thin_delta::read(&mut text, &mut extents)?,
            Form::Csv => columns::read(&mut text, columns::Separator::Comma, &mut extents)?,
            Form::Lines => columns::read(&mut text, columns::Separator::Space, &mut extents)?,
        }
        let (changes, disk_size) = extents.finish()?;
        Ok(Self { changes, disk_size, covered, form })
    }
}
