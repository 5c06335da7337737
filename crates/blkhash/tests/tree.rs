//! Merkle trees: published values, and any runs of digests compared with the definition level by level.

use std::convert::Infallible;

use blkhash::engine::Accumulator;
use blkhash::{
    Algorithm, BlockSize, Construction, Digest, Digester, Error, Parameters, Salt, Tree,
    TreeBlocks, TreeShape,
};
use proptest::prelude::*;

fn size(bytes: u64) -> BlockSize {
    bytes.try_into().unwrap()
}

fn parameters(construction: Construction, block_size: u64) -> Parameters {
    Parameters::new(Algorithm::Sha256, construction, size(block_size)).unwrap()
}

/// Values of zeros. `fsverity digest` and `veritysetup format` confirm values of up to 8 GiB.
#[test]
fn zeros() {
    let vectors = [
        (
            1 << 20,
            4096,
            "5d98121f8aeff2a38a3fffee013f85980078507a0ffbd99e5a8d616ecfe7db6a",
            "feb19a23e72cb1b8f935d668a09ecaad0bf7c5b9cdfa6dbba7c88a9998ed2b87",
        ),
        (
            8 << 30,
            4096,
            "49936c344f6aa75858a76450764e666075ad1c7f47a5858111f8b6c6a3435740",
            "00dd23905fe4ddc4dc5b9a5c0d86139377c38361e64f8312da6ef8f461d1b0c5",
        ),
        (
            8 << 40,
            4096,
            "b587ed8d01b3559bb0b8e0ef8890fd5b86b4a28342422c07db54d791a82b8c86",
            "0a2c1a7d9f27d060c9d0ddc20c9eb3d72d1296f20a0883c83856911e2618b4f6",
        ),
        (
            (1 << 63) - 65536,
            4096,
            "ae49e7e23ff641700751429f06139d6a84a5791491fa2374d75b295c87bd0f19",
            "20c42257883a6816af4272207cb43ef9245730ee2d685aa942b24cb30d5e5b0b",
        ),
        (
            8 << 30,
            65536,
            "572aaf555351b8c5d49faf18164153295af8afca8a1d295c2bdc156b9fa46374",
            "996a67a8664db4deef92de4bd2e12877948f2305dc3a0378741c748cad073833",
        ),
    ];
    for (length, block_size, root, digest) in vectors {
        for (construction, value) in
            [(Construction::DmVerity, root), (Construction::FsVerity, digest)]
        {
            let mut accumulator = Accumulator::new(&parameters(construction, block_size), 1);
            accumulator.zero(length);
            let name = format!("{length} zeros, {construction}, {block_size}");
            assert_eq!(accumulator.finalize().to_string(), value, "{name}");
        }
    }
    let empty = Accumulator::new(&parameters(Construction::FsVerity, 4096), 1).finalize();
    let value = "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95";
    assert_eq!(empty.to_string(), value);
}

#[test]
fn undefined_parameters_are_refused() {
    let new = |algorithm, construction| Parameters::new(algorithm, construction, BlockSize::PAGE);
    for (algorithm, construction) in [
        (Algorithm::Blake3, Construction::FsVerity),
        (Algorithm::Sha1, Construction::FsVerity),
        (Algorithm::Crc32c, Construction::DmVerity),
        (Algorithm::Xxh128, Construction::DmVerity),
        (Algorithm::Null, Construction::DmVerity),
    ] {
        let error = new(algorithm, construction).unwrap_err();
        let is_named = matches!(error, Error::UnsuitableAlgorithm { algorithm: name, .. } if name == algorithm.name());
        assert!(is_named, "{algorithm} with {construction}");
    }
    assert!(new(Algorithm::Sha1, Construction::DmVerity).is_ok());
    let salt = |length| Salt::try_from(&[7; 256][..length]).unwrap();
    for (construction, length, is_accepted) in [
        (Construction::FsVerity, 32, true),
        (Construction::FsVerity, 33, false),
        (Construction::DmVerity, 256, true),
        (Construction::Flat, 0, true),
        (Construction::Flat, 1, false),
        (Construction::Linear, 1, false),
    ] {
        let salted = parameters(construction, 4096).with_salt(salt(length));
        assert_eq!(salted.is_ok(), is_accepted, "{construction} with {length} bytes of salt");
    }
    for (construction, length, is_accepted) in [
        (Construction::FsVerity, 0, true),
        (Construction::FsVerity, 1, true),
        (Construction::DmVerity, 0, false),
        (Construction::DmVerity, 4095, false),
        (Construction::DmVerity, 4096, true),
        (Construction::Flat, 1, true),
    ] {
        let checked = parameters(construction, 4096).check_length(length);
        assert_eq!(checked.is_ok(), is_accepted, "{construction} of {length} bytes");
    }
}

/// Keeps all blocks of a tree, level by level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Levels(Vec<Vec<u8>>);

impl TreeBlocks for Levels {
    type Error = Infallible;

    fn take(
        &mut self,
        level: usize,
        index: u64,
        count: u64,
        block: &[u8],
    ) -> Result<(), Infallible> {
        if level == self.0.len() {
            self.0.push(Vec::new());
        }
        assert_eq!(self.0[level].len() as u64, index * block.len() as u64, "blocks come in order");
        self.0[level].extend(block.repeat(count as usize));
        Ok(())
    }
}

/// Returns the root and the levels by their definition.
fn definition(
    digester: &Digester,
    salt: &[u8],
    block_size: usize,
    mut digests: Vec<Digest>,
) -> (Option<Digest>, Levels) {
    let mut levels = Levels::default();
    while digests.len() > 1 {
        let mut level = Vec::new();
        for digest in &digests {
            level.extend_from_slice(digest.as_bytes());
            level.resize(
                level.len().next_multiple_of(digest.as_bytes().len().next_power_of_two()),
                0,
            );
        }
        level.resize(level.len().next_multiple_of(block_size), 0);
        let blocks = level.chunks(block_size);
        digests = blocks.map(|block| digester.digest(&[salt, block].concat())).collect();
        levels.0.push(level);
    }
    (digests.pop(), levels)
}

/// Runs of digests: which one of a few, and how many.
fn runs() -> impl Strategy<Value = Vec<(u8, u64)>> {
    let count = prop_oneof![1..4_u64, 1..40_u64, 1..3000_u64, Just(16), Just(128), Just(256)];
    prop::collection::vec((0..4_u8, count), 0..12)
}

proptest! {
    #[test]
    fn runs_fold_like_their_digests(
        runs in runs(),
        algorithm in prop::sample::select(vec![
            Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512, Algorithm::Crc32c,
        ]),
        block_size in prop::sample::select(vec![512_u64, 1024, 4096]),
        salt in prop::collection::vec(any::<u8>(), 0..3),
        as_bytes in any::<u16>(),
    ) {
        let digester = Digester::new(algorithm);
        let leaf = match Parameters::new(algorithm, Construction::DmVerity, size(512)) {
            Ok(parameters) => {
                let salt = Salt::try_from(&salt[..]).unwrap();
                parameters.with_salt(salt).unwrap().leaf(&digester)
            }
            Err(_) => blkhash::Leaf::new(&digester, size(512)),
        };
        let salt = if algorithm == Algorithm::Crc32c { &[][..] } else { &salt };
        let mut tree = Tree::with_blocks(&leaf, size(block_size), Levels::default());
        let mut all = Vec::new();
        for (index, (which, count)) in runs.into_iter().enumerate() {
            let digest = digester.digest(&[which]);
            if as_bytes >> index & 1 == 1 {
                tree.push(&digest.as_bytes().repeat(count as usize)).unwrap();
            } else {
                tree.push_run(&digest, count).unwrap();
            }
            all.extend(std::iter::repeat_n(digest, count as usize));
        }
        let leaves = all.len() as u64;
        let (root, levels) = definition(&digester, salt, block_size as usize, all);
        let (made, made_levels) = tree.finish().unwrap();
        match root {
            Some(root) => prop_assert_eq!(made, root),
            None => prop_assert!(made.as_bytes().iter().all(|byte| *byte == 0)),
        }
        let shape = TreeShape::new(algorithm, size(block_size));
        let counts: Vec<_> =
            levels.0.iter().map(|level| level.len() as u64 / block_size).collect();
        prop_assert_eq!(shape.levels(leaves), counts);
        prop_assert_eq!(made_levels, levels);
    }
}
