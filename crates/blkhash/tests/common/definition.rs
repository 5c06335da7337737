//! The definition of a checksum in plain steps, to compare faster computations with.

use blkhash::{Algorithm, Construction, Digest, Digester, Parameters};

/// Returns the checksum as docs/reference/constructions.md defines it.
pub fn definition(parameters: &Parameters, content: &[u8]) -> Digest {
    let digester = Digester::new(parameters.algorithm());
    let hash = |parts: &[Vec<u8>]| digester.digest(&parts.concat());
    if parameters.construction().max_salt() > 0 {
        return verity(parameters, &digester, content);
    }
    let digests: Vec<_> = content
        .chunks(parameters.block_size().get())
        .map(|block| digester.digest(block).as_bytes().to_vec())
        .collect();
    match parameters.construction() {
        Construction::Linear => digester.digest(content),
        Construction::Concat => hash(&digests),
        Construction::Flat => {
            let length = (content.len() as u64).to_le_bytes().to_vec();
            hash(&[digests, vec![length]].concat())
        }
        Construction::Streams(streams) => {
            let streams = streams.count();
            let stream = |k| {
                let own: Vec<_> = digests.iter().skip(k).step_by(streams).cloned().collect();
                hash(&own).as_bytes().to_vec()
            };
            hash(&(0..streams).map(stream).collect::<Vec<_>>())
        }
        other => panic!("{other} has no definition here"),
    }
}

/// Builds the tree level by level.
fn verity(parameters: &Parameters, digester: &Digester, content: &[u8]) -> Digest {
    let (block_size, salt) = (parameters.block_size().get(), parameters.salt().as_bytes());
    let is_fs = parameters.construction() == Construction::FsVerity;
    let unit = match parameters.algorithm() {
        _ if !is_fs => 1,
        Algorithm::Sha256 => 64,
        _ => 128,
    };
    let prefix = padded(salt, salt.len().next_multiple_of(unit));
    let hash_blocks = |level: &[u8]| {
        let hash = |block: &[u8]| {
            let block = padded(block, block_size);
            digester.digest(&[&prefix[..], &block].concat()).as_bytes().to_vec()
        };
        level.chunks(block_size).map(hash).collect::<Vec<_>>()
    };
    let mut digests = hash_blocks(content);
    while digests.len() > 1 {
        let stride = digests[0].len().next_power_of_two();
        let level: Vec<_> = digests.iter().flat_map(|digest| padded(digest, stride)).collect();
        digests = hash_blocks(&level);
    }
    let root = digests.pop().unwrap_or_else(|| vec![0; parameters.algorithm().digest_size()]);
    let root: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    let root = root.parse().unwrap();
    if !is_fs {
        return root;
    }
    let number = if parameters.algorithm() == Algorithm::Sha256 { 1 } else { 2 };
    let head = [1, number, block_size.ilog2() as u8, salt.len() as u8, 0, 0, 0, 0];
    let length = (content.len() as u64).to_le_bytes();
    let root = padded(root.as_bytes(), 64);
    let descriptor = [&head[..], &length, &root, &padded(salt, 32)].concat();
    digester.digest(&padded(&descriptor, 256))
}

fn padded(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(length.max(bytes.len()), 0);
    bytes
}
