//! Parses any bytes as a superblock of dm-verity, and verifies any data with any stored tree. Every finding
//! must be a finding of the definition in plain steps, and a verification without one means that the tree and its root
//! belong to the data.

#![no_main]

#[path = "../../crates/blkverity/tests/common/mod.rs"]
mod common;

use common::{Case, check_superblock, check_verifier};
use libfuzzer_sys::fuzz_target;

type Input = (u8, Vec<(u8, u8)>, Vec<(u16, u8, bool)>, Vec<(u16, u8)>, u8, u8);

fuzz_target!(|input: (u64, Vec<u8>, Input)| {
    let (offset, head, (shape, runs, changes, data_changes, at_once, root)) = input;
    let mut bytes = [0; blkverity::Superblock::SIZE];
    let length = head.len().min(bytes.len());
    bytes[..length].copy_from_slice(&head[..length]);
    check_superblock(&bytes, offset);
    // A fuzzer needs long to find the constant bytes.
    bytes[..16].copy_from_slice(b"verity\0\0\x01\0\0\0\x01\0\0\0");
    bytes[32..64].copy_from_slice(b"sha256\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes[64..72].copy_from_slice(&[0, 16, 0, 0, 0, 2, 0, 0]);
    check_superblock(&bytes, offset);
    check_verifier(&Case { shape, runs, changes, data_changes, at_once, root });
});
