//! What receives the results of a check while it runs.

use crate::finding::Finding;
use crate::place::Place;
use crate::report::Row;

/// Receives findings, and the row of each layer after its findings, in the order of the layers.
pub trait Sink: Send {
    /// Receives what is wrong with a layer.
    fn finding(&mut self, place: &Place, kind: &'static str, finding: &Finding);

    /// Receives the result for a layer, all of whose findings were passed.
    fn row(&mut self, row: &Row);
}

/// Ignores everything.
impl Sink for () {
    fn finding(&mut self, _: &Place, _: &'static str, _: &Finding) {}
    fn row(&mut self, _: &Row) {}
}
