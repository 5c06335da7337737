//! The formats of images.

pub(crate) mod qcow2;
pub(crate) mod raw;
pub(crate) mod served;
pub(crate) mod table_cache;
