//! The headers of encrypted volumes.

use blkfs::volumes::luks::Luks;

use crate::found::Layer;
use crate::report::Row;
use crate::tally::Job;

pub(crate) fn verify(job: &mut Job<'_>, layer: &Layer, luks: &Luks) -> Row {
    let kind = if luks.version == 1 { "LUKS1" } else { "LUKS2" };
    let mut tally = job.tally(layer, kind);
    (tally.row.uuid, tally.row.label) = (luks.uuid.clone(), luks.label.clone());
    tally.checks(&luks.checks);
    tally.row.unprotected = Some(layer.window.size().saturating_sub(luks.headers));
    tally.remark("the content is encrypted, and not looked at");
    tally.finish()
}
