//! An open image: its chain of files, top first, read as one guest view.
//!
//! The chain is a flat list. A run of guest bytes is looked up from the top down; what a layer does
//! not have is looked up in the next, clipped to its size, and past the end of a layer there are
//! zeros whatever lies below.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::{Error, ErrorKind, Result};
use crate::formats::qcow2::decompress::Decoders;
use crate::formats::qcow2::{Compressed, MapKind, Qcow2};
use crate::formats::raw::Raw;
use crate::formats::served::Served;
use crate::formats::table_cache::TableCache;
use crate::probe::Format;
use crate::source::Source;
use crate::storage::HostFile;
use crate::walk::{Walk, Walks};
use crate::{Extent, ExtentKind, Lent};

/// An open image with everything it refers to.
pub struct Image {
    layers: Vec<Layer>,
    format: Format,
    size: u64,
    tables: TableCache,
    walks: Walks,
    decoders: Decoders,
    warnings: Vec<String>,
    bytes_read: Arc<AtomicU64>,
}

/// One image of a chain.
pub(crate) enum Layer {
    Raw(Raw),
    Qcow2(Box<Qcow2>),
    Served(Box<Served>),
}

impl Image {
    /// `layers` is not empty.
    pub(crate) fn new(
        layers: Vec<Layer>,
        format: Format,
        warnings: Vec<String>,
        bytes_read: Arc<AtomicU64>,
    ) -> Self {
        let size = layers.first().map_or(0, Layer::size);
        let (tables, walks) = (TableCache::new(layers.len()), Walks::new(layers.len()));
        let decoders = Decoders::default();
        Self { layers, format, size, tables, walks, decoders, warnings, bytes_read }
    }

    /// Format of the image itself, not of what it refers to.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Size of the guest content in bytes.
    pub fn virtual_size(&self) -> u64 {
        self.size
    }

    /// What a user should know although the image can be read, each in one line.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Bytes read so far from all host files, tables included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Relaxed)
    }

    /// The names of all files of the chain, the image itself first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.host_files().map(HostFile::name)
    }

    fn host_files(&self) -> impl Iterator<Item = &HostFile> {
        self.layers.iter().flat_map(|layer| {
            let (files, data_file): (&[Arc<HostFile>], _) = match layer {
                Layer::Raw(raw) => (std::slice::from_ref(&raw.file), None),
                Layer::Qcow2(qcow2) => {
                    (std::slice::from_ref(&qcow2.file), qcow2.data_file.as_deref())
                }
                Layer::Served(served) => (&served.files, None),
            };
            files.iter().map(|file| &**file).chain(data_file)
        })
    }

    /// What the guest's bytes from `offset` on are, for at most `limit` bytes. The range lies below
    /// the size and is not empty.
    fn resolve(
        &self,
        walk: &mut Walk,
        offset: u64,
        mut limit: u64,
        purpose: Purpose,
    ) -> Result<Run<'_>> {
        let (first, mut clear) = walk.start(offset);
        for (index, layer) in self.layers.iter().enumerate().skip(first) {
            let size = layer.size();
            if offset >= size {
                break;
            }
            limit = limit.min(size - offset);
            match layer {
                Layer::Raw(raw) => {
                    walk.found(index, offset, clear);
                    return resolve_raw(raw, offset, limit.min(clear - offset), purpose);
                }
                Layer::Served(served) => {
                    walk.found(index, offset, clear);
                    let limit = limit.min(clear - offset);
                    return resolve_raw(&served.raw, offset, limit, purpose);
                }
                Layer::Qcow2(qcow2) => {
                    if let Some(end) = walk.known(index, offset) {
                        clear = clear.min(end);
                        continue;
                    }
                    limit = limit.min(clear - offset);
                    let far = if walk.remembers() { size - offset } else { limit };
                    let (kind, length) =
                        qcow2.map(&self.tables, index as u32, offset, limit, far)?;
                    let kind = match kind {
                        MapKind::Unallocated => {
                            walk.learn(index, offset, length);
                            clear = clear.min(offset + length);
                            continue;
                        }
                        MapKind::Zero => RunKind::Zero,
                        MapKind::Data(host) => RunKind::Data { qcow2, host_offset: host.0 },
                        MapKind::Compressed(cluster) => {
                            RunKind::Compressed { qcow2, layer: index as u32, cluster }
                        }
                    };
                    walk.found(index, offset, clear);
                    return Ok(Run { kind, length });
                }
            }
        }
        Ok(Run { kind: RunKind::Zero, length: limit.min(clear - offset) })
    }

    fn read_run(&self, run: RunKind<'_>, buf: &mut [u8], offset: u64) -> Result<()> {
        match run {
            RunKind::Zero => {
                buf.fill(0);
                Ok(())
            }
            RunKind::Raw { raw, host_offset } => raw.read_exact_at(buf, host_offset),
            RunKind::Data { qcow2, host_offset } => qcow2.read_data(buf, host_offset, offset),
            RunKind::Compressed { qcow2, layer, cluster } => {
                self.decoders.read(qcow2, layer, cluster, buf, offset)
            }
        }
    }

    fn check_range(&self, offset: u64, length: u64) -> Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            return Ok(());
        }
        let name = self.files().next().unwrap_or(Path::new(""));
        let reason = format!("{length} bytes asked for past the end of the image");
        Err(Error::new(ErrorKind::Argument, name, reason).at(offset))
    }
}

impl Source for Image {
    fn size(&self) -> u64 {
        self.size
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.check_range(offset, 1)?;
        let limit = limit.clamp(1, self.size - offset);
        let mut walk = self.walks.take(offset);
        let first = self.resolve(&mut walk, offset, limit, Purpose::Extent)?;
        let kind = first.kind.extent_kind();
        let mut length = first.length;
        for _ in 0..MAX_JOINED {
            if length == limit {
                break;
            }
            // An error here belongs to the next extent, and will be found there.
            match self.resolve(&mut walk, offset + length, limit - length, Purpose::Extent) {
                Ok(next) if next.kind.extent_kind() == kind => length += next.length,
                _ => break,
            }
        }
        self.walks.put(walk, offset + length);
        Ok(Extent { offset, length, kind })
    }

    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        self.check_range(offset, buf.len() as u64)?;
        let mut walk = self.walks.take(offset);
        while !buf.is_empty() {
            let run = self.resolve(&mut walk, offset, buf.len() as u64, Purpose::Read)?;
            let (head, rest) = buf.split_at_mut(run.length as usize);
            self.read_run(run.kind, head, offset)?;
            offset += run.length;
            buf = rest;
        }
        self.walks.put(walk, offset);
        Ok(())
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.check_range(offset, length as u64).ok()?;
        let mut walk = self.walks.take(offset);
        let run = self.resolve(&mut walk, offset, length as u64, Purpose::Read).ok()?;
        self.walks.put(walk, offset + run.length);
        let length = run.length as usize;
        match run.kind {
            RunKind::Raw { raw, host_offset } => raw.lend(host_offset, length),
            RunKind::Data { qcow2, host_offset } => qcow2.lend_data(host_offset, length),
            RunKind::Zero | RunKind::Compressed { .. } => None,
        }
    }

    fn granularity(&self) -> u64 {
        let files = self.host_files().map(HostFile::granularity);
        let clusters = self.layers.iter().map(|layer| match layer {
            Layer::Raw(_) => 1,
            Layer::Qcow2(qcow2) => qcow2.cluster_size(),
            Layer::Served(served) => served.raw.file.granularity(),
        });
        files.chain(clusters).max().unwrap_or(1)
    }

    fn queue_depth(&self) -> usize {
        let layers = self.layers.iter().map(|layer| match layer {
            Layer::Raw(_) | Layer::Qcow2(_) => 1,
            Layer::Served(served) => served.raw.file.queue_depth(),
        });
        self.host_files().map(HostFile::queue_depth).chain(layers).max().unwrap_or(1)
    }

    fn check_unchanged(&self) -> Result<()> {
        for layer in &self.layers {
            if let Layer::Served(served) = layer {
                served.raw.file.check_unchanged()?;
            }
        }
        self.host_files().try_for_each(HostFile::check_unchanged)
    }
}

impl Layer {
    fn size(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.size(),
            Self::Qcow2(qcow2) => qcow2.size,
            Self::Served(served) => served.raw.size(),
        }
    }
}

/// What a lookup is for: only extents ask the host's file system for holes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Extent,
    Read,
}

/// Guest bytes that come from one place.
struct Run<'a> {
    kind: RunKind<'a>,
    length: u64,
}

#[derive(Clone, Copy)]
enum RunKind<'a> {
    Zero,
    Raw { raw: &'a Raw, host_offset: u64 },
    Data { qcow2: &'a Qcow2, host_offset: u64 },
    Compressed { qcow2: &'a Qcow2, layer: u32, cluster: Compressed },
}

impl RunKind<'_> {
    fn extent_kind(self) -> ExtentKind {
        match self {
            Self::Zero => ExtentKind::Zero,
            Self::Raw { .. } | Self::Data { .. } | Self::Compressed { .. } => ExtentKind::Data,
        }
    }
}

fn resolve_raw(raw: &Raw, offset: u64, limit: u64, purpose: Purpose) -> Result<Run<'_>> {
    let (kind, length) = match purpose {
        Purpose::Extent => raw.extent(offset, limit)?,
        Purpose::Read => (ExtentKind::Data, limit),
    };
    let kind = match kind {
        ExtentKind::Zero => RunKind::Zero,
        ExtentKind::Data => RunKind::Raw { raw, host_offset: raw.host_offset(offset) },
    };
    Ok(Run { kind, length })
}

/// How many runs one call to `extent` joins: enough that fragments do not cost a call each, few
/// enough that a call stays short.
const MAX_JOINED: usize = 64;

#[cfg(test)]
mod tests;
