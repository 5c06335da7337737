//! The images in an archive of `docker save`, which its `manifest.json` lists.

use std::collections::HashSet;

use serde::Deserialize;

use super::change::parts;
use super::digest::Digest;
use super::files::Files;
use super::keys;
use super::manifest::{Blob, Found, Image, Layer, MAX_DOCUMENTS, Platform, Subject};
use super::manifest::{check_count, parse, read};
use crate::error::{ErrorKind, Result, excerpt};

/// Returns the images in an archive of `docker save`.
pub(super) fn of_docker(files: &Files) -> Result<Found> {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    for image in listed(files)? {
        let text = read(files, image.config.as_bytes())?;
        let digest = image.digest(files)?;
        if !digest.is_of(&text) {
            return Err(files.corrupt(format!("blob {digest} does not match its digest")));
        }
        let content: Config = parse(files, image.config.as_bytes(), &text, keys::CONFIG)?;
        let contents = content.rootfs.unwrap_or_default().diff_ids.unwrap_or_default();
        let stated = image.layers.unwrap_or_default();
        check_count(files, stated.len())?;
        if contents.len() != stated.len() {
            let reason = format!("has {} digests for {} layers", contents.len(), stated.len());
            return Err(files.corrupt(reason));
        }
        let platform =
            Platform { os: content.os, architecture: content.architecture, variant: None };
        let id = digest.short().to_owned();
        let config = Some(digest.clone());
        let mut blobs =
            vec![Blob { file: image.config.into_bytes(), digest, is_of: Subject::File }];
        let mut layers = Vec::with_capacity(stated.len());
        for (name, digest) in stated.into_iter().zip(contents) {
            let digest = Digest::parse(&digest)
                .map_err(|reason| files.error(ErrorKind::Unsupported, format!("has {reason}")))?;
            if name.starts_with('/') {
                let name = excerpt(name.as_bytes());
                return Err(files.corrupt(format!("lacks the file \"{name}\"")));
            }
            // One file has one name, so that it is read once.
            let file = parts(name.as_bytes()).join(&b'/');
            // Podman reads the first one only.
            let is_other = |other: &Blob| other.digest == digest && other.file != file;
            if blobs.iter().any(is_other) {
                let reason = format!("has two layers with the digest {digest} in different files");
                return Err(files.corrupt(reason));
            }
            let blob = Blob { file, digest, is_of: Subject::Content };
            blobs.push(blob.clone());
            layers.push(Layer {
                blob,
                media_type: TAR.into(),
                name: None,
                title: None,
                size: None,
            });
        }
        for blob in blobs {
            // A file that has two digests fails to have one of them.
            if seen.insert((blob.file.clone(), blob.digest.clone())) {
                found.blobs.push(blob);
            }
        }
        let platform = platform.name();
        let reference = image.tags.unwrap_or_default().into_iter().next();
        let image = Image { id, platform, reference, config, is_container: true, layers };
        // One image may have several tags, and a line for each.
        match found.images.iter().find(|other| other.config == image.config) {
            None => found.images.push(image),
            Some(other) if files_of(other).eq(files_of(&image)) => {}
            Some(_) => {
                let reason = format!("has other layers for the image {} in two places", image.id);
                return Err(files.corrupt(reason));
            }
        }
    }
    Ok(found)
}

/// Fails if an archive that has a layout as well lists an image that the layout lacks: some programs read the one, some the
/// other.
pub(super) fn check_same(files: &Files, layout: &Found) -> Result<()> {
    for image in listed(files)? {
        let config = image.digest(files)?;
        let layers = image.layers.iter().flatten();
        let layers: Vec<_> = layers.map(|name| parts(name.as_bytes()).join(&b'/')).collect();
        let is_same = |other: &Image| {
            other.config.as_ref() == Some(&config)
                && files_of(other).eq(layers.iter().map(|it| &**it))
        };
        if !layout.images.iter().any(is_same) {
            let reason = format!(
                "has the image {} in {MANIFEST}, and no image of its configuration and layers in its index",
                config.short()
            );
            return Err(files.corrupt(reason));
        }
    }
    Ok(())
}

fn files_of(image: &Image) -> impl Iterator<Item = &[u8]> {
    image.layers.iter().map(|layer| &*layer.blob.file)
}

fn listed(files: &Files) -> Result<Vec<DockerImage>> {
    let text = read(files, MANIFEST.as_bytes())?;
    let images: Option<Vec<DockerImage>> = parse(files, MANIFEST.as_bytes(), &text, keys::DOCKER)?;
    let images = images.unwrap_or_default();
    if images.len() > MAX_DOCUMENTS {
        let reason = format!("has more than {MAX_DOCUMENTS} images");
        return Err(files.error(ErrorKind::Unsupported, reason));
    }
    Ok(images)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    #[serde(rename = "RepoTags")]
    tags: Option<Vec<String>>,
    layers: Option<Vec<String>>,
}

impl DockerImage {
    /// Returns the digest of the configuration, which its name states.
    fn digest(&self, files: &Files) -> Result<Digest> {
        let stem = self.config.strip_suffix(".json").unwrap_or(&self.config);
        let digest = Digest::sha256(stem).or_else(|| Digest::of_path(stem.as_bytes()));
        digest.ok_or_else(|| {
            let name = excerpt(self.config.as_bytes());
            files.error(ErrorKind::Unsupported, format!("has no digest of \"{name}\""))
        })
    }
}

#[derive(Deserialize)]
struct Config {
    os: Option<String>,
    architecture: Option<String>,
    rootfs: Option<Rootfs>,
}

#[derive(Default, Deserialize)]
struct Rootfs {
    diff_ids: Option<Vec<String>>,
}

/// Name of the file that makes a tar archive one of Docker.
pub(super) const MANIFEST: &str = "manifest.json";

/// Type of layers in archives of Docker, whose type is not stated.
const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
