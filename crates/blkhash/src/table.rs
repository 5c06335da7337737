//! The table of digest algorithms.
//!
//! A row defines all of an algorithm. `algorithm.rs` makes the variant, the names and the
//! properties from it, and `algo/state.rs` the hash and its implementations. CONTRIBUTING.md ("Add a
//! digest") names the other lists of all algorithms.

/// Passes the rows to the macro `define`, from no hash to the strongest.
///
/// ```text
/// /// Documentation of the variant.
/// Variant: "name" | "alias" ..., length of the digest, strength
///     { other fields of `Properties` }
///     implementations => type of the hash: initial state;
/// ```
///
/// Implementations are `library("its name")`, `kernels(family::Kernel)` or `per_cpu(module)`. A library
/// is a crate, and the initial state is an expression. Kernels are our own, and the initial state is
/// a function of those that may run. A module has kernels for some architectures and a crate for the
/// others, and the initial state is a function of what may run and how it is chosen.
macro_rules! algorithms {
    ($define:ident) => {
        $define! {
            /// No hash; the digest is empty. Measures the cost of everything else.
            Null: "null", 0 bytes, None
                {}
                library("nop") => null::Null: null::Null;

            /// CRC-32 of IEEE 802.3, as in gzip and zlib.
            Crc32: "crc32" | "crc-32", 4 bytes, ErrorDetection
                { bit_order: Some(BitOrder::LowestFirst) }
                library("crc_fast") => crc::Crc: crc::Crc::new(&crc::CRC32);

            /// CRC-32C (Castagnoli), as in btrfs, ext4 and iSCSI.
            Crc32c: "crc32c" | "crc-32c", 4 bytes, ErrorDetection
                { bit_order: Some(BitOrder::LowestFirst) }
                library("crc_fast") => crc::Crc: crc::Crc::new(&crc::CRC32C);

            /// CRC-64/ECMA-182, the `crc64` of the Linux kernel.
            Crc64: "crc64" | "crc64-ecma" | "crc-64", 8 bytes, ErrorDetection
                { bit_order: Some(BitOrder::HighestFirst) }
                library("crc_fast") => crc::Crc: crc::Crc::new(&crc::CRC64);

            /// CRC-64/NVME, as in NVMe and S3.
            Crc64Nvme: "crc64nvme" | "crc64-nvme", 8 bytes, ErrorDetection
                { bit_order: Some(BitOrder::LowestFirst) }
                library("crc_fast") => crc::Crc: crc::Crc::new(&crc::CRC64NVME);

            /// `XXH64` with seed 0.
            Xxh64: "xxh64" | "xxhash" | "xxhash64", 8 bytes, ErrorDetection
                {}
                kernels(xxh64::Kernel) => xxh64::Xxh64: xxh64::Xxh64::new;

            /// `XXH3`, 64 bits.
            Xxh3: "xxh3" | "xxh3-64", 8 bytes, ErrorDetection
                {}
                library("xxhash_rust") => xxh3::Xxh3: xxh3::Xxh3::new();

            /// `XXH3`, 128 bits.
            Xxh128: "xxh128" | "xxh3-128", 16 bytes, ErrorDetection
                {}
                library("xxhash_rust") => xxh3::Xxh128: xxh3::Xxh128::new();

            /// SipHash-2-4, 64 bits, with a key of zeros. For comparison only.
            SipHash: "siphash" | "siphash-2-4", 8 bytes, Keyed
                {}
                library("siphasher") => siphash::SipHash: siphash::SipHash::new();

            /// MD5.
            Md5: "md5", 16 bytes, Broken
                {}
                library("md5") => RustCrypto<md5::Md5>: RustCrypto::new();

            /// SHA-1.
            Sha1: "sha1" | "sha-1", 20 bytes, Broken
                { fips: Some("FIPS 180-4") }
                library("sha1") => RustCrypto<sha1::Sha1>: RustCrypto::new();

            /// SHA-224.
            Sha224: "sha224" | "sha-224" | "sha2-224", 28 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                kernels(sha256::Kernel) => sha256::Sha256: sha256::Sha256::new_224;

            /// SHA-256.
            Sha256: "sha256" | "sha-256" | "sha2-256", 32 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                kernels(sha256::Kernel) => sha256::Sha256: sha256::Sha256::new_256;

            /// SHA-384.
            Sha384: "sha384" | "sha-384" | "sha2-384", 48 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                per_cpu(sha512) => sha512::Sha384: sha512::sha384;

            /// SHA-512.
            Sha512: "sha512" | "sha-512" | "sha2-512", 64 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                per_cpu(sha512) => sha512::Sha512: sha512::sha512;

            /// SHA-512/224.
            Sha512_224: "sha512-224" | "sha512/224", 28 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                per_cpu(sha512) => sha512::Sha512_224: sha512::sha512_224;

            /// SHA-512/256.
            Sha512_256: "sha512-256" | "sha512/256", 32 bytes, Cryptographic
                { fips: Some("FIPS 180-4") }
                per_cpu(sha512) => sha512::Sha512_256: sha512::sha512_256;

            /// SHA3-224.
            Sha3_224: "sha3-224", 28 bytes, Cryptographic
                { fips: Some("FIPS 202") }
                library("sha3") => RustCrypto<sha3::Sha3_224>: RustCrypto::new();

            /// SHA3-256.
            Sha3_256: "sha3-256", 32 bytes, Cryptographic
                { fips: Some("FIPS 202") }
                library("sha3") => RustCrypto<sha3::Sha3_256>: RustCrypto::new();

            /// SHA3-384.
            Sha3_384: "sha3-384", 48 bytes, Cryptographic
                { fips: Some("FIPS 202") }
                library("sha3") => RustCrypto<sha3::Sha3_384>: RustCrypto::new();

            /// SHA3-512.
            Sha3_512: "sha3-512", 64 bytes, Cryptographic
                { fips: Some("FIPS 202") }
                library("sha3") => RustCrypto<sha3::Sha3_512>: RustCrypto::new();

            /// BLAKE2b with a digest of 256 bits, the `blake2b` of btrfs and oVirt.
            Blake2b256: "blake2b256" | "blake2b-256", 32 bytes, Cryptographic
                {}
                kernels(blake2b::Kernel) => blake2b::Blake2b: blake2b::Blake2b::new::<32>;

            /// BLAKE2b with a digest of 512 bits, the `b2sum` of coreutils.
            Blake2b512: "blake2b512" | "blake2b-512", 64 bytes, Cryptographic
                {}
                kernels(blake2b::Kernel) => blake2b::Blake2b: blake2b::Blake2b::new::<64>;

            /// BLAKE2s with a digest of 256 bits.
            Blake2s256: "blake2s256" | "blake2s-256" | "blake2s", 32 bytes, Cryptographic
                {}
                library("blake2s_simd") => blake2s::Blake2s: blake2s::Blake2s::new(32);

            /// BLAKE3.
            Blake3: "blake3" | "blake3-256", 32 bytes, Cryptographic
                { hides_latency: true }
                library("blake3") => blake3::Blake3: blake3::Blake3::new();
        }
    };
}

pub(crate) use algorithms;
