//! The functions that are measured.

use std::fmt;
use std::hint::black_box;

/// Processes a batch of blocks of equal length.
pub type Work = Box<dyn FnMut(&[&[u8]])>;

/// A name and a closure.
pub struct Contestant {
    /// The name of what it computes. Contestants that compute the same share it.
    pub group: String,
    /// The name of the contestant.
    pub name: String,
    /// Another name, for layouts that use it.
    pub row_name: Option<String>,
    /// Whether it reads its input. A contestant that does not has no speed.
    pub reads: bool,
    /// Whether other contestants are compared with it.
    pub is_reference: bool,
    /// Whether it has a row. A reference may be measured only for comparison.
    pub is_shown: bool,
    make: Box<dyn Fn() -> Work + Send + Sync>,
}

impl Contestant {
    /// Creates a contestant. `make` makes the closure, once for each thread and sample, outside of
    /// the measured time.
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

    /// Returns the baseline that does nothing, which shows the cost of a call.
    pub fn nop() -> Self {
        let make = || -> Work {
            Box::new(|blocks| {
                black_box(blocks);
            })
        };
        Self { reads: false, ..Self::new("null", "NULL-NOP", make) }
    }

    /// Returns the baseline that copies, which shows the cost of memory.
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

    /// Makes the closure for one thread.
    pub(crate) fn work(&self) -> Work {
        (self.make)()
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contestant({})", self.name)
    }
}
