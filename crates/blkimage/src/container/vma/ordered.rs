//! A disk in a stream, whose clusters come nearly in order.
//!
//! A backup reads a disk from start to end, and stores early what its guest overwrites meanwhile. Clusters that come early are
//! kept until their turn.

use std::collections::HashMap;
use std::io::{self, Read};

use super::extent::{EXTENT, clusters};
use super::header::{BLOCK, CLUSTER, Device, Header};
use crate::container::forward::Stream;
use crate::error::excerpt;

/// The content of a disk, from start to end.
pub(super) struct InOrder {
    /// `None` past the end.
    stream: Option<Stream>,
    header: Header,
    device: Device,
    /// Clusters that came early, and their memory.
    held: HashMap<u32, Box<[u8]>>,
    held_size: u64,
    max_held: u64,
    /// The number of the cluster after `current`.
    next: u64,
    current: Box<[u8]>,
    position: usize,
}

impl InOrder {
    /// Creates a reader of a disk. The next byte of `stream` follows the header.
    pub fn new(stream: Stream, header: &Header, device: &Device, max_held: u64) -> Self {
        Self {
            stream: Some(stream),
            header: header.clone(),
            device: device.clone(),
            held: HashMap::new(),
            held_size: 0,
            max_held,
            next: 0,
            current: Box::default(),
            position: 0,
        }
    }

    /// Reads the clusters of the next extent. Returns `false` at the end.
    fn extent(&mut self) -> io::Result<bool> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut bytes = Vec::with_capacity(EXTENT);
        stream.by_ref().take(EXTENT as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let bytes = bytes.first_chunk().ok_or_else(|| damaged(CUT.into()))?;
        for cluster in clusters(&self.header, bytes).map_err(|reason| damaged(reason.into()))? {
            let stored = cluster.stored();
            if cluster.device != self.device.id {
                let skipped = io::copy(&mut stream.by_ref().take(stored), &mut io::sink())?;
                if skipped < stored {
                    return Err(damaged(CUT.into()));
                }
                continue;
            }
            let shown = excerpt(&self.device.name);
            let mut content = vec![0; if stored == 0 { 0 } else { CLUSTER as usize }];
            let blocks = content.chunks_exact_mut(BLOCK as usize).enumerate();
            for (_, block) in blocks.filter(|(index, _)| cluster.mask & 1 << index != 0) {
                stream.read_exact(block).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => damaged(CUT.into()),
                    _ => error,
                })?;
            }
            self.held_size += content.len() as u64 + COST;
            let is_late = u64::from(cluster.number) < self.next;
            if is_late || self.held.insert(cluster.number, content.into()).is_some() {
                let number = cluster.number;
                return Err(damaged(format!("has cluster {number} of the disk \"{shown}\" twice")));
            }
            if self.held_size > self.max_held {
                let reason = format!(
                    "has clusters of the disk \"{shown}\" in an order that takes more memory than the limit: decompress it first"
                );
                return Err(io::Error::new(io::ErrorKind::OutOfMemory, reason));
            }
        }
        Ok(true)
    }

    /// Continues with the next cluster. Returns `false` after the last one, when all of the stream was read.
    fn advance(&mut self) -> io::Result<bool> {
        if self.next == self.device.clusters() {
            while self.extent()? {}
            self.stream = None;
            return Ok(false);
        }
        let number = self.next as u32;
        let cluster = loop {
            if let Some(cluster) = self.held.remove(&number) {
                break cluster;
            }
            if !self.extent()? {
                let shown = excerpt(&self.device.name);
                return Err(damaged(format!("lacks cluster {number} of the disk \"{shown}\"")));
            }
        };
        self.held_size -= cluster.len() as u64 + COST;
        let length = CLUSTER.min(self.device.size - self.next * CLUSTER) as usize;
        self.current = match cluster.is_empty() {
            true => vec![0; length].into(),
            false => cluster[..length].into(),
        };
        (self.next, self.position) = (self.next + 1, 0);
        Ok(true)
    }
}

impl Read for InOrder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        while self.position == self.current.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let rest = &self.current[self.position..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.position += count;
        Ok(count)
    }
}

fn damaged(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Memory of a cluster that is kept, besides its bytes.
const COST: u64 = 64;

const CUT: &str = "is cut off in an extent";
