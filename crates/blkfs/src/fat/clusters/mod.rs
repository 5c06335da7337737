//! Clusters of FAT and exFAT: their places, their chains, and which of them have an owner.

mod claims;
mod copies;
mod directories;
mod heap;
mod read;
mod report;
mod root;
mod runs;
mod stream;
mod table;

pub(crate) use claims::{Chain, Claims, Stop};
pub(crate) use directories::Directories;
pub(crate) use heap::{FIRST, Heap};
pub(crate) use read::read_table;
pub(crate) use report::{Report, Structure};
pub(crate) use root::read_root;
pub(crate) use runs::{END, FREE, Run, Runs};
pub(crate) use stream::{Entry, Place, entries};
pub(crate) use table::{Table, Width};
