//! The definition of a checksum in plain steps, to compare faster computations with.

use blkhash::{Construction, Digest, Digester, Parameters};

/// Returns the checksum as docs/constructions.md defines it.
pub fn definition(parameters: &Parameters, content: &[u8]) -> Digest {
    let digester = Digester::new(parameters.algorithm());
    let hash = |parts: &[Vec<u8>]| digester.digest(&parts.concat());
    let digests: Vec<_> = content
        .chunks(parameters.block_size())
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
