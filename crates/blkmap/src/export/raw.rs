//! Digests and nothing else.

use std::io::Write;

use super::digests;
use crate::{Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    digests::check(map, "a list of digests")?;
    digests::write(map, output)
}
