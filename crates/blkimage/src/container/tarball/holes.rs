//! A file with holes, of which an archive stores the other parts.

use std::sync::Arc;

use crate::container::runs::Map;
use crate::tar::Sparse;

impl Map for Arc<Sparse> {
    fn size(&self) -> u64 {
        self.size
    }

    fn run(&self, offset: u64, limit: u64) -> (u64, Option<u64>) {
        let index = self.parts.partition_point(|(part, _)| part.end <= offset);
        let (end, place) = match self.parts.get(index) {
            Some((part, stored)) if part.start <= offset => {
                (part.end, Some(stored + (offset - part.start)))
            }
            Some((part, _)) => (part.start, None),
            None => (self.size, None),
        };
        (limit.min(end.saturating_sub(offset)), place)
    }
}
