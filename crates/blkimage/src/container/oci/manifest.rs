//! The images that an index leads to (OCI image specification).
//!
//! Every JSON blob is compared with its size and its digest before it is parsed, and has a maximum size.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::digest::Digest;
use super::files::Files;
use super::keys::{self, Keys};
use crate::error::{ErrorKind, Result, excerpt};
use crate::storage::Storage;

/// An image: layers for one platform.
pub(super) struct Image {
    /// Digits that tell it from others.
    pub id: String,
    /// As in `linux/arm64`.
    pub platform: Option<String>,
    /// Name in the index.
    pub reference: Option<String>,
    /// Digest of the configuration.
    pub config: Option<Digest>,
    /// Whether the configuration describes a container, whose layers runtimes extract whatever their types are.
    pub is_container: bool,
    pub layers: Vec<Layer>,
}

/// A layer of an image.
pub(super) struct Layer {
    pub blob: Blob,
    pub media_type: String,
    /// Name of the disk that the layer is, if it is one.
    pub name: Option<String>,
    /// Name of the file that the layer is.
    pub title: Option<String>,
    /// Number of bytes of the disk that the layer is.
    pub size: Option<u64>,
}

/// A file with a digest.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub file: Vec<u8>,
    pub digest: Digest,
    pub is_of: Subject,
}

/// The bytes of which a digest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    File,
    /// The tar archive in a layer, which may be compressed in the file.
    Content,
}

/// The content of an index.
#[derive(Default)]
pub(super) struct Found {
    pub images: Vec<Image>,
    /// All blobs that were named, each once.
    pub blobs: Vec<Blob>,
}

/// Follows the index of a layout.
pub(super) fn of_layout(files: &Files) -> Result<Found> {
    let text = read(files, b"oci-layout")?;
    let layout: ImageLayout = parse(files, b"oci-layout", &text, keys::LAYOUT)?;
    if !layout.version.starts_with("1.") {
        let version = excerpt(layout.version.as_bytes());
        let reason = format!("is an OCI image layout of version \"{version}\", which is not read");
        return Err(files.error(ErrorKind::Unsupported, reason));
    }
    of_index(files)
}

/// Follows the index of a layout whose version is not looked at.
pub(super) fn of_index(files: &Files) -> Result<Found> {
    let text = read(files, INDEX)?;
    let index: Document = parse(files, INDEX, &text, keys::DOCUMENT)?;
    let (found, seen) = Default::default();
    let mut walk = Walk { files, found, seen, documents: 0, descriptors: 0 };
    walk.index(index, &Context::default(), 0)?;
    Ok(walk.found)
}

/// A pass over the documents that an index leads to.
struct Walk<'a> {
    files: &'a Files,
    found: Found,
    /// Digests that were named.
    seen: HashSet<Digest>,
    documents: usize,
    descriptors: usize,
}

/// What the descriptors above a manifest state about it.
#[derive(Clone, Default)]
struct Context {
    platform: Option<String>,
    reference: Option<String>,
}

impl Walk<'_> {
    fn index(&mut self, index: Document, context: &Context, depth: usize) -> Result<()> {
        for descriptor in index.manifests.unwrap_or_default() {
            let blob = self.blob(&descriptor)?;
            if !self.add(&blob) {
                continue;
            }
            let media_type = media_type(&descriptor.media_type);
            let is_index = INDEXES.contains(&media_type);
            // Others are to be ignored, but their digests count.
            if !is_index && !MANIFESTS.contains(&media_type) {
                continue;
            }
            self.documents += 1;
            if depth == MAX_DEPTH || self.documents > MAX_DOCUMENTS {
                let reason = format!(
                    "has more than {MAX_DEPTH} indexes in each other, or {MAX_DOCUMENTS} manifests"
                );
                return Err(self.files.error(ErrorKind::Unsupported, reason));
            }
            let document = self.document(&blob, &descriptor)?;
            let annotations = descriptor.annotations.unwrap_or_default();
            let platform = descriptor.platform.as_ref().and_then(Platform::name);
            let stated = [&platform, &annotations.reference];
            check_texts(self.files, stated.into_iter().flatten())?;
            let context = Context {
                platform: platform.or_else(|| context.platform.clone()),
                reference: annotations.reference.or_else(|| context.reference.clone()),
            };
            match is_index {
                true => self.index(document, &context, depth + 1)?,
                false => self.manifest(document, &blob.digest, context)?,
            }
        }
        Ok(())
    }

    /// Reads an index or a manifest. Fails if it is not clear which of them it is.
    fn document(&self, blob: &Blob, descriptor: &Descriptor) -> Result<Document> {
        let text = read(self.files, &blob.file)?;
        if !blob.digest.is_of(&text) {
            let reason = format!("blob {} does not match its digest", blob.digest);
            return Err(self.files.corrupt(reason));
        }
        let document: Document = parse(self.files, &blob.file, &text, keys::DOCUMENT)?;
        let stated = document.media_type.as_deref().map(media_type);
        let is_other = stated.is_some_and(|stated| stated != media_type(&descriptor.media_type));
        if is_other || document.manifests.is_some() && document.layers.is_some() {
            let reason = format!("blob {} is of another type than its descriptor", blob.digest);
            return Err(self.files.corrupt(reason));
        }
        Ok(document)
    }

    fn manifest(&mut self, manifest: Document, digest: &Digest, context: Context) -> Result<()> {
        let (mut config, mut is_container) = (None, false);
        if let Some(stated) = &manifest.config {
            let blob = self.blob(stated)?;
            self.add(&blob);
            config = Some(blob.digest);
            is_container = CONTAINERS.contains(&media_type(&stated.media_type));
        }
        let stated = manifest.layers.unwrap_or_default();
        check_count(self.files, stated.len())?;
        let mut layers = Vec::with_capacity(stated.len());
        for descriptor in stated {
            let blob = self.blob(&descriptor)?;
            self.add(&blob);
            let annotations = descriptor.annotations.unwrap_or_default();
            let Annotations { title, disk, disk_size, .. } = annotations;
            let size = disk_size.as_deref().and_then(quantity);
            let media_type = descriptor.media_type;
            let stated = [&title, &disk].into_iter().flatten();
            check_texts(self.files, stated.chain([&media_type]))?;
            layers.push(Layer { blob, media_type, name: disk, title, size });
        }
        let Context { platform, reference } = context;
        let id = digest.short().into();
        self.found.images.push(Image { id, platform, reference, config, is_container, layers });
        Ok(())
    }

    /// Returns the blob of a descriptor. Fails if it is missing or has another size.
    fn blob(&mut self, descriptor: &Descriptor) -> Result<Blob> {
        self.descriptors += 1;
        if self.descriptors > MAX_DESCRIPTORS {
            let reason = format!("has more than {MAX_DESCRIPTORS} descriptors");
            return Err(self.files.error(ErrorKind::Unsupported, reason));
        }
        let digest = Digest::parse(&descriptor.digest)
            .map_err(|reason| self.files.error(ErrorKind::Unsupported, format!("has {reason}")))?;
        let file = digest.path().into_bytes();
        let size = self.files.open(&file)?.size();
        if size != descriptor.size {
            let stated = descriptor.size;
            let reason =
                format!("blob {digest} has {size} bytes, and its descriptor says {stated}");
            return Err(self.files.corrupt(reason));
        }
        Ok(Blob { file, digest, is_of: Subject::File })
    }

    /// Adds a blob. Returns false if it was added before.
    fn add(&mut self, blob: &Blob) -> bool {
        let is_new = self.seen.insert(blob.digest.clone());
        if is_new {
            self.found.blobs.push(blob.clone());
        }
        is_new
    }
}

/// Returns the number of bytes that a quantity of Kubernetes is, if it is a whole one, as in `10Gi`.
fn quantity(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let power = QUANTITIES.iter().position(|unit| *unit == &text[digits.len()..])?;
    digits.parse::<u64>().ok()?.checked_mul(1024_u64.pow(power as u32))
}

/// Reads a file of limited size.
pub(super) fn read(files: &Files, name: &[u8]) -> Result<Vec<u8>> {
    let storage = files.open(name)?;
    let size = storage.size();
    if size > MAX_JSON {
        let name = excerpt(name);
        let reason = format!("its file \"{name}\" has more than {} MiB", MAX_JSON >> 20);
        return Err(files.error(ErrorKind::Unsupported, reason));
    }
    let mut text = vec![0; size as usize];
    storage.read_exact_at(&mut text, 0).map_err(|error| {
        let reason = format!("its file \"{}\" cannot be read", excerpt(name));
        files.error(ErrorKind::Io, reason).because(error)
    })?;
    Ok(text)
}

/// Parses JSON, to a depth of 128, in which these keys are known.
pub(super) fn parse<T: DeserializeOwned>(
    files: &Files,
    name: &[u8],
    text: &[u8],
    known: Keys,
) -> Result<T> {
    known.check(text).and_then(|()| serde_json::from_slice(text)).map_err(|error| {
        let (name, reason) = (excerpt(name), excerpt(error.to_string().as_bytes()));
        files.corrupt(format!("its file \"{name}\" is not understood: {reason}"))
    })
}

/// Fails if one of these texts is longer than those that are kept.
fn check_texts<'a>(files: &Files, texts: impl IntoIterator<Item = &'a String>) -> Result<()> {
    match texts.into_iter().find(|text| text.len() > MAX_TEXT) {
        Some(text) => {
            let text = excerpt(text.as_bytes());
            let reason = format!("states a name or type of more than {MAX_TEXT} bytes, \"{text}\"");
            Err(files.error(ErrorKind::Unsupported, reason))
        }
        None => Ok(()),
    }
}

pub(super) fn check_count(files: &Files, layers: usize) -> Result<()> {
    if layers > MAX_LAYERS {
        let reason = format!("has an image of more than {MAX_LAYERS} layers");
        return Err(files.error(ErrorKind::Unsupported, reason));
    }
    Ok(())
}

/// Returns a media type without parameters.
pub(super) fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim_end()
}

#[derive(Deserialize)]
struct ImageLayout {
    #[serde(rename = "imageLayoutVersion")]
    version: String,
}

/// An index or a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    annotations: Option<Annotations>,
    platform: Option<Platform>,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "org.opencontainers.image.title")]
    title: Option<String>,
    #[serde(rename = "org.opencontainers.image.ref.name")]
    reference: Option<String>,
    #[serde(rename = "io.kubevirt.disk.name")]
    disk: Option<String>,
    #[serde(rename = "io.kubevirt.disk.size")]
    disk_size: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Platform {
    pub os: Option<String>,
    pub architecture: Option<String>,
    pub variant: Option<String>,
}

impl Platform {
    /// Returns the parts that are known, as in `linux/arm/v7`.
    pub fn name(&self) -> Option<String> {
        let Self { os, architecture, variant } = self;
        let parts = [os, architecture, variant].into_iter().flatten();
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

/// Name of the file that lists the images of a layout.
pub(super) const INDEX: &[u8] = b"index.json";

const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Types of the configurations of containers.
const CONTAINERS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

/// Units of quantities, each 1024 of the one before it.
const QUANTITIES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Maximum size of a JSON document: the limit of a manifest in registries and in containerd.
/// Limit in bytes.
const MAX_JSON: u64 = 4 << 20;

/// Maximum number of indexes and manifests. Large images have some ten platforms.
/// Limit in documents.
pub(super) const MAX_DOCUMENTS: usize = 256;

/// Maximum number of indexes in each other.
/// Limit in indexes.
const MAX_DEPTH: usize = 4;

/// Maximum number of layers of an image. Container runtimes allow 128.
/// Limit in layers.
const MAX_LAYERS: usize = 512;

/// Maximum number of descriptors in all documents, each of which is looked up.
/// Limit in descriptors.
const MAX_DESCRIPTORS: usize = 131_072;

/// Maximum length of a media type, a name or a title: as of a path in Linux. Limit in bytes.
const MAX_TEXT: usize = 4096;
