//! The objects of `--json`, with the type and the meaning of every field. The tables of docs/reference/json.md are generated from them.

pub mod algorithm;
pub mod bench;
pub mod btrfs;
pub mod chain;
pub mod check;
pub mod checksum;
pub mod common;
pub mod copy;
pub mod info;
pub mod map;
pub mod owners;
pub mod progress;
pub mod verity;

use blkbench::{Spread, report};
use blkrecord::{Record, Row};

/// The fields of an object.
type Rows = fn() -> Vec<Row>;

/// The tables of docs/reference/json.md, by the names that they have there.
pub const TABLES: &[(&str, Rows)] = &[
    ("names", common::Named::rows),
    ("vpc sizes", chain::VpcSizes::rows),
    ("object on a server", chain::ChainObject::rows),
    ("chain", chain::ChainImage::rows),
    ("checksum", checksum::Checksum::rows),
    ("no checksum", checksum::Failed::rows),
    ("verdict", checksum::Verdict::rows),
    ("algorithm", algorithm::Algorithm::rows),
    ("run", report::Run::rows),
    ("row", report::Line::rows),
    ("tool", bench::Tool::rows),
    ("fastest", bench::Fastest::rows),
    ("spread", Spread::rows),
    ("quality", blkbench::quality::Quality::rows),
    ("measured image", bench::Image::rows),
    ("measured digest", bench::Digest::rows),
    ("image", info::Info::rows),
    ("owner", common::Owner::rows),
    ("owned extent", owners::Span::rows),
    ("check finding", check::Finding::rows),
    ("layer", check::Layer::rows),
    ("check summary", check::Summary::rows),
    ("check error", check::Failed::rows),
    ("finding", btrfs::Finding::rows),
    ("verification", btrfs::Verification::rows),
    ("file system", btrfs::FileSystem::rows),
    ("kernel", btrfs::Kernel::rows),
    ("btrfs checksum", btrfs::Checksum::rows),
    ("map", map::Map::rows),
    ("commit", map::Commit::rows),
    ("pages", map::Pages::rows),
    ("state", map::State::rows),
    ("difference", map::Difference::rows),
    ("comparison", map::Comparison::rows),
    ("audit", map::Audit::rows),
    ("update", map::Update::rows),
    ("extent", map::Extent::rows),
    ("bitmap", map::Bitmap::rows),
    ("repeated blocks", map::Duplicates::rows),
    ("verity digest", verity::Digest::rows),
    ("hash file", verity::HashFile::rows),
    ("verity error", verity::Error::rows),
    ("verity summary", verity::Summary::rows),
    ("copy", copy::Copy::rows),
    ("failed copy", copy::Failed::rows),
    ("progress", progress::Progress::rows),
];
