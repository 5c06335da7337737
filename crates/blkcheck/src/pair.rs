//! Finds the data of hash trees, and the devices of one btrfs.

use std::cell::Cell;

use blkbtrfs::{Candidate, Device, Part};
use blkverity::StoredTree;
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;

use crate::found::{Data, Found, Layer, Root};
use crate::window::Window;

/// Puts the layers together that belong to each other.
pub(crate) fn pair(layers: &mut [Layer]) {
    pair_trees(layers);
    group_btrfs(layers);
}

/// Groups the devices of each btrfs. The first one is verified with the others.
fn group_btrfs(layers: &mut [Layer]) {
    let mut candidates = Vec::new();
    for layer in layers.iter().filter(|layer| matches!(layer.found, Found::Btrfs(_))) {
        let (name, source) = (layer.place.to_string(), layer.window.source.clone());
        // What has no intact superblock is reported when it is verified.
        if let Ok(superblock) = blkbtrfs::Superblock::read(&*source, &name) {
            let device = Device { name, source };
            candidates.push(Candidate { superblock, device, part: Part::Whole });
        }
    }
    for group in blkbtrfs::group(candidates) {
        let names: Vec<_> = group.devices.iter().map(|device| device.name.clone()).collect();
        let mut first = None;
        let mut group = Some(group);
        for layer in layers.iter_mut().filter(|layer| matches!(layer.found, Found::Btrfs(None))) {
            if !names.contains(&layer.place.to_string()) {
                continue;
            }
            layer.found = match &first {
                None => Found::Btrfs(group.take()),
                Some(first) => Found::BtrfsDevice(Clone::clone(first)),
            };
            first.get_or_insert_with(|| layer.place.clone());
        }
    }
}

/// Finds the data of each hash tree: by the UUIDs of partitions, which can be halves of the root hash, or by its content.
fn pair_trees(layers: &mut [Layer]) {
    let signed: Vec<_> = layers.iter().filter_map(|layer| signed_root(&layer.window)).collect();
    let budget = Cell::new(MAX_SAMPLED);
    let trees = (0..layers.len()).filter(|index| matches!(layers[*index].found, Found::Verity(_)));
    let trees: Vec<_> = trees.take(MAX_TREES).collect();
    for index in trees {
        let Ok(stored) = StoredTree::open(&*layers[index].window.source, 0) else { continue };
        let Some((other, root)) = data_of(layers, &layers[index], &stored, &signed, &budget) else {
            continue;
        };
        let (place, window) = (layers[other].place.clone(), layers[other].window.clone());
        layers[other].tree = Some(layers[index].place.clone());
        layers[index].found = Found::Verity(Some(Data { place, window, root }));
    }
}

/// Returns the number of the layer that is most likely the data of a tree, and the root hash if it is in the image.
fn data_of(
    layers: &[Layer],
    tree: &Layer,
    stored: &StoredTree,
    signed: &[Vec<u8>],
    budget: &Cell<u64>,
) -> Option<(usize, Option<Root>)> {
    let top = top(&tree.window, stored);
    let candidates = layers.iter().enumerate().filter(|(_, layer)| {
        let is_other = matches!(
            layer.found,
            Found::Verity(_) | Found::Gpt(_) | Found::Mbr(_) | Found::Skipped(..)
        );
        !is_other && layer.window.size() >= stored.data_length()
    });
    let rated = candidates.map(|(index, layer)| match halves(layer, tree) {
        Some(digest) if signed.contains(&digest) => {
            (usize::MAX, index, Some(Root { digest, source: "the signature" }))
        }
        Some(digest) if top.as_ref() == Some(&digest) => {
            (usize::MAX, index, Some(Root { digest, source: "the UUIDs of its partitions" }))
        }
        _ => (likelihood(&layer.window, &tree.window, stored, budget), index, None),
    });
    let best = rated.max_by_key(|(likelihood, ..)| *likelihood);
    best.filter(|(likelihood, ..)| *likelihood > 0).map(|(_, index, root)| (index, root))
}

/// Returns the root hash of which the UUIDs of two partitions are the halves.
fn halves(data: &Layer, tree: &Layer) -> Option<Vec<u8>> {
    let uuid = |layer: &Layer| {
        let text = layer.details.as_ref()?.uuid?.to_string().replace('-', "");
        HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
    };
    Some([uuid(data)?, uuid(tree)?].concat())
}

/// Returns the digest of the block at the top of a tree.
pub(crate) fn top(window: &Window, stored: &StoredTree) -> Option<Vec<u8>> {
    let layout = stored.layout();
    let level = layout.levels().len().checked_sub(1)?;
    let block = window.read(layout.offset(level, 0), stored.block_size().into()).ok()?;
    Some(stored.leaf().hash(&block).as_bytes().to_vec())
}

/// Returns how many of some blocks of data, other than zeros, have the digest that the tree has for them.
fn likelihood(data: &Window, tree: &Window, stored: &StoredTree, budget: &Cell<u64>) -> usize {
    let (layout, leaf) = (stored.layout(), stored.leaf());
    if layout.levels().is_empty() {
        return 0;
    }
    let (leaves, block_size) = (layout.leaves(), leaf.block_size() as u64);
    let arity = layout.shape().arity() as u64;
    let spread = (0..SAMPLES)
        .map(|sample| (u128::from(leaves) * u128::from(sample) / u128::from(SAMPLES)) as u64);
    let samples = spread.chain((0..SAMPLES).take_while(|sample| *sample < leaves));
    let is_match = |leaf_index: &u64| {
        let cost = block_size + u64::from(stored.block_size());
        budget.set(budget.get().checked_sub(cost)?);
        let block = data.read(leaf_index.checked_mul(block_size)?, block_size).ok()?;
        if block.iter().all(|byte| *byte == 0) {
            return None;
        }
        let place = layout.offset(0, leaf_index / arity);
        let hashes = tree.read(place, stored.block_size().into()).ok()?;
        if hashes.len() != layout.shape().block_size() {
            return None;
        }
        let expected = layout.shape().digest(&hashes, (leaf_index % arity) as usize);
        (leaf.hash(&block).as_bytes() == expected).then_some(())
    };
    samples.filter(|sample| is_match(sample).is_some()).count()
}

/// Returns the root hash in a signature partition (Discoverable Partitions Specification).
fn signed_root(window: &Window) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Signature {
        root_hash: String,
    }
    let start = window.head(1).ok()?;
    if start != b"{" {
        return None;
    }
    let bytes = window.head(MAX_SIGNATURE).ok()?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let signature: Signature = serde_json::from_slice(&bytes[..end]).ok()?;
    HEXLOWER_PERMISSIVE.decode(signature.root_hash.as_bytes()).ok()
}

/// Number of blocks of data that are compared at the beginning and all over it, to find the data of a tree.
/// Limit in blocks.
const SAMPLES: u64 = 32;

/// Maximum number of bytes that are read to find the data of all trees.
/// Limit in bytes.
const MAX_SAMPLED: u64 = 256 << 20;

/// Maximum number of hash trees that are verified, each with all of its data.
/// Limit in trees.
const MAX_TREES: usize = 16;

/// Maximum size of the JSON in a signature partition.
/// Limit in bytes.
const MAX_SIGNATURE: u64 = 64 << 10;
