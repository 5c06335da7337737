//! The members of layers, each of which is decoded once however often it is listed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::content::Scan;
use super::files::Files;
use super::layers::Folder;
use super::manifest::{Blob, Image};
use super::role::Role;
use crate::container::kind::whole;
use crate::error::{ErrorKind, Result};
use crate::options::OpenOptions;
use crate::probe::{PROBE_SIZE, probe_footer};
use crate::tar::{Entry, Reader};

/// A pass over the layers of all images.
pub(super) struct Layers<'a> {
    files: &'a Files,
    /// Limits of what is decoded.
    limits: &'a OpenOptions,
    headers_left: u32,
    /// Files of layers that are listed several times.
    repeated: HashSet<&'a [u8]>,
    /// Their members.
    kept: HashMap<&'a [u8], Arc<[Seen]>>,
    kept_size: usize,
}

/// A member of a layer.
struct Seen {
    entry: Entry,
    /// Whether an image whose header is there ends here.
    ends_like_image: bool,
}

impl<'a> Layers<'a> {
    pub fn new(files: &'a Files, limits: &'a OpenOptions, images: &'a [Image]) -> Self {
        let layers = images.iter().flat_map(|image| &image.layers);
        let layers = layers.filter(|layer| Role::of(layer) == Role::Tar);
        let mut seen = HashSet::new();
        let names = layers.map(|layer| &*layer.blob.file);
        let repeated = names.filter(|name| !seen.insert(*name)).collect();
        let (headers_left, kept, kept_size) = (MAX_HEADERS, HashMap::new(), 0);
        Self { files, limits, headers_left, repeated, kept, kept_size }
    }

    /// Applies a layer to a folder. Returns the size of its tar archive if that was found by reading to its end.
    pub fn apply(
        &mut self,
        folder: &mut Folder,
        blob: &'a Blob,
        layer: usize,
    ) -> Result<Option<u64>> {
        if let Some(kept) = self.kept.get(&*blob.file) {
            let kept = kept.clone();
            self.count(kept.len() as u64)?;
            for Seen { entry, ends_like_image } in kept.iter() {
                folder.apply(self.files, entry, layer, *ends_like_image)?;
            }
            return Ok(None);
        }
        let scan = Scan::new(self.limits, self.files, self.files.open(&blob.file)?)?;
        let is_repeated = self.repeated.contains(&*blob.file);
        let file = whole(scan.tar.clone(), self.files.name());
        let mut reader = Reader::new(&file, self.headers_left).for_runtimes().without_padding();
        let mut kept = Vec::new();
        while let Some(entry) = reader.entry()? {
            let mut ends_like_image = false;
            if Folder::has(&entry) {
                let mut end = vec![0; entry.size.min(PROBE_SIZE as u64) as usize];
                let start = entry.offset + entry.size - end.len() as u64;
                file.read_exact_at(&mut end, start)?;
                ends_like_image = probe_footer(&end).is_some();
            }
            folder.apply(self.files, &entry, layer, ends_like_image)?;
            if is_repeated {
                let seen = Seen { entry, ends_like_image };
                self.keep(&seen)?;
                kept.push(seen);
            }
        }
        self.count(reader.headers().into())?;
        if is_repeated {
            self.kept.insert(&blob.file, kept.into());
        }
        scan.finish(self.files)
    }

    fn count(&mut self, headers: u64) -> Result<()> {
        let left = u64::from(self.headers_left).checked_sub(headers).ok_or_else(|| {
            let reason = format!("has more than {MAX_HEADERS} headers of members");
            self.files.error(ErrorKind::Unsupported, reason)
        })?;
        self.headers_left = left as u32;
        Ok(())
    }

    /// Counts the memory of a member that is kept.
    fn keep(&mut self, seen: &Seen) -> Result<()> {
        let target = seen.entry.target.as_ref().map_or(0, Vec::len);
        self.kept_size += size_of::<Seen>() + seen.entry.name.len() + target;
        if self.kept_size > MAX_KEPT {
            let reason = format!(
                "has layers that are listed several times and have more than {} MiB of names",
                MAX_KEPT >> 20
            );
            return Err(self.files.error(ErrorKind::Unsupported, reason));
        }
        Ok(())
    }
}

/// Maximum number of headers of members in all layers, as often as they are listed. Large container images have some
/// hundred thousand. Hashes of the paths of one layer are in memory.
/// Limit in headers.
const MAX_HEADERS: u32 = 2_000_000;

/// Maximum memory for the members of layers that are listed several times, which are decoded once.
/// Limit in bytes.
const MAX_KEPT: usize = 128 << 20;
