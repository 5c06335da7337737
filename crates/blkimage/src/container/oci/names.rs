//! The names of disks: what a person would call them and can type, each once.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::Place;
use super::manifest::{Image, Layer};
use crate::error::escaped;

/// The disks of an image, with the names that they have in it.
pub(super) struct Named<'a> {
    pub image: &'a Image,
    pub disks: Vec<(Vec<u8>, Place)>,
}

/// Returns the name of a disk that is a layer: the name of the disk or of the file, or digits of the digest.
pub(super) fn of_layer(layer: &Layer) -> Vec<u8> {
    let stated = [&layer.name, &layer.title].into_iter().flatten();
    let name = stated.map(String::as_str).find(|name| is_usable(name));
    name.unwrap_or(layer.blob.digest.short()).as_bytes().to_vec()
}

/// Returns the disks of all images with unique names.
///
/// A disk whose name occurs twice in an image has digits of its digest after it. If the images are for several
/// platforms, the names begin with these. If disks of several images still have one name, it begins with the name of
/// the image in the index, or with digits of its digest.
pub(super) fn unique(images: Vec<Named<'_>>) -> Vec<(Vec<u8>, Place)> {
    let mut images = images;
    images.retain(|image| !image.disks.is_empty());
    for image in &mut images {
        let counts = counts(image.disks.iter().map(|(name, _)| name));
        for (name, place) in &mut image.disks {
            if let Place::Blob { blob, .. } = place
                && counts[&*name] > 1
            {
                name.extend(format!("-{}", blob.digest.short()).into_bytes());
            }
        }
        // One blob may be there twice.
        let mut seen = Vec::new();
        image.disks.retain(|(name, _)| {
            let is_new = !seen.contains(name);
            seen.push(name.clone());
            is_new
        });
    }
    let platform = |image: &Named<'_>| image.image.platform.clone().filter(|name| is_usable(name));
    let has_several = images.windows(2).any(|pair| platform(&pair[0]) != platform(&pair[1]));
    if has_several {
        for image in &mut images {
            if let Some(platform) = platform(image) {
                prefix(image, &platform);
            }
        }
    }
    let all = |images: &[Named<'_>]| {
        let names = images.iter().flat_map(|image| &image.disks);
        counts(names.map(|(name, _)| name)).into_iter().map(|(name, n)| (name.clone(), n)).collect()
    };
    let by_name: BTreeMap<Vec<u8>, usize> = all(&images);
    let is_shared = |image: &Named<'_>| image.disks.iter().any(|(name, _)| by_name[name] > 1);
    let references: Vec<_> = images
        .iter()
        .filter(|image| is_shared(image))
        .map(|image| image.image.reference.clone().filter(|name| is_usable(name)))
        .collect();
    let is_unique = |name: &Option<String>| {
        name.is_some() && references.iter().filter(|other| *other == name).count() == 1
    };
    let has_references = references.iter().all(is_unique);
    for image in &mut images {
        if is_shared(image) {
            let reference = image.image.reference.clone().filter(|_| has_references);
            prefix(image, &reference.unwrap_or_else(|| image.image.id.clone()));
        }
    }
    let mut disks: Vec<_> = images.into_iter().flat_map(|image| image.disks).collect();
    // A name that is made to look like another one with its prefix is left to a number.
    let mut seen = BTreeSet::new();
    for (name, _) in &mut disks {
        let stated = name.clone();
        let mut number = 1;
        while !seen.insert(name.clone()) {
            number += 1;
            *name = [&stated[..], format!("#{number}").as_bytes()].concat();
        }
    }
    disks
}

/// Returns whether a name of a disk is also the name of a file of a layout. No disk has such a name.
pub(super) fn is_of_file(name: &[u8]) -> bool {
    name.starts_with(b"blobs/")
}

/// Returns whether a stated name can be used as it is.
fn is_usable(name: &str) -> bool {
    let is_path =
        name.starts_with('/') || name.split('/').any(|part| matches!(part, "" | "." | ".."));
    let is_odd = name.contains(char::is_whitespace) || name.contains('\\');
    (1..=MAX_NAME).contains(&name.len())
        && !is_path
        && !is_of_file(name.as_bytes())
        && !is_odd
        && escaped(name.as_bytes()) == name
}

fn prefix(image: &mut Named<'_>, prefix: &str) {
    for (name, _) in &mut image.disks {
        *name = [prefix.as_bytes(), b"/", &name[..]].concat();
    }
}

fn counts<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> BTreeMap<Vec<u8>, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_insert(0) += 1;
    }
    counts
}

/// Maximum length of a stated name in bytes.
const MAX_NAME: usize = 255;
