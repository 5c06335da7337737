//! What is measured.

use std::fmt;
use std::hint::black_box;

/// Takes a batch of blocks of equal length.
pub type Work = Box<dyn FnMut(&[&[u8]])>;

/// A name and a closure.
pub struct Contestant {
    /// What it computes: contestants that compute the same share it.
    pub group: String,
    /// Its own name.
    pub name: String,
    /// A name it is known by elsewhere, for layouts that are known from there.
    pub row_name: Option<String>,
    /// Whether it reads its input: what does not has no speed.
    pub reads: bool,
    /// Whether others are compared with it.
    pub is_reference: bool,
    /// Whether it has a row of its own: a reference may be measured only to be compared with.
    pub is_shown: bool,
    make: Box<dyn Fn() -> Work + Send + Sync>,
}

impl Contestant {
    /// A contestant; `make` makes the closure, once for each thread and sample, outside of the time
    /// that is measured.
    pub fn new(
        group: impl Into<String>,
        name: impl Into<String>,
        make: impl Fn() -> Work + Send + Sync + 'static,
    ) -> Self {
        Self {
            group: group.into(),
            name: name.into(),
            row_name: None,
            reads: true,
            is_reference: false,
            is_shown: true,
            make: Box::new(make),
        }
    }

    /// The baseline that does nothing: what it takes is the cost of a call.
    pub fn nop() -> Self {
        let make = || -> Work {
            Box::new(|blocks| {
                black_box(blocks);
            })
        };
        Self { reads: false, ..Self::new("null", "NULL-NOP", make) }
    }

    /// The baseline that copies: what it takes is the cost of memory.
    pub fn memcpy() -> Self {
        Self::new("null", "NULL-MEMCPY", || {
            let mut copy = Vec::new();
            Box::new(move |blocks| {
                for block in blocks {
                    copy.resize(block.len(), 0);
                    copy.copy_from_slice(black_box(block));
                    black_box(&mut copy);
                }
            })
        })
    }

    /// Its closure, for one thread.
    pub(crate) fn work(&self) -> Work {
        (self.make)()
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contestant({})", self.name)
    }
}
