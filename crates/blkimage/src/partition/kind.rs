//! Types of partitions, and the names of common ones.

use std::fmt;

/// The type of a partition, which names its intended use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A GUID in a GPT.
    Gpt(Guid),
    /// A byte in an MBR.
    Mbr(u8),
}

/// A GUID as it is stored. Displayed like `0fc63daf-8483-4772-8e79-3d69d8477de4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(pub [u8; 16]);

impl Kind {
    /// Returns the name of a common type.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Gpt(guid) => {
                let text = guid.to_string();
                GPT.iter().find(|(known, _)| *known == text).map(|(_, name)| *name)
            }
            Self::Mbr(byte) => MBR.iter().find(|(known, _)| *known == byte).map(|(_, name)| *name),
        }
    }
}

/// The GUID in lower case, or the byte in hexadecimal as in sfdisk.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gpt(guid) => guid.fmt(f),
            Self::Mbr(byte) => write!(f, "{byte:x}"),
        }
    }
}

/// The first three fields are little endian.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes_le(self.0).fmt(f)
    }
}

/// UEFI specification, Discoverable Partitions Specification, and Microsoft's documentation.
const GPT: [(&str, &str); 20] = [
    ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "EFI system"),
    ("21686148-6449-6e6f-744e-656564454649", "BIOS boot"),
    ("bc13c2ff-59e6-4262-a352-b275fd6f7172", "Linux extended boot"),
    ("0fc63daf-8483-4772-8e79-3d69d8477de4", "Linux file system"),
    ("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "Linux swap"),
    ("e6d6d379-f507-44c2-a23c-238f2a3df928", "Linux LVM"),
    ("a19d880f-05fc-4d3b-a006-743f0f84911e", "Linux RAID"),
    ("933ac7e1-2eb4-4f13-b844-0e14e2aef915", "Linux home"),
    ("4d21b016-b534-45c2-a9fb-5c16e091fd2d", "Linux variable data"),
    ("4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "Linux root, x86-64"),
    ("b921b045-1df0-41c3-af44-4c6f280d3fae", "Linux root, ARM64"),
    ("2c7357ed-ebd2-46d9-aec1-23d437ec2bf5", "Linux root verity, x86-64"),
    ("df3300ce-d69f-4c92-978c-9bfb0f38d820", "Linux root verity, ARM64"),
    ("8484680c-9521-48c6-9c11-b0720656f69e", "Linux usr, x86-64"),
    ("77ff5f63-e7b6-4633-acf4-1565b864c0e6", "Linux usr verity, x86-64"),
    ("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", "Microsoft basic data"),
    ("e3c9e316-0b5c-4db8-817d-f92df00215ae", "Microsoft reserved"),
    ("de94bba4-06d1-4d40-a16a-bfd50179d6ac", "Windows recovery"),
    ("516e7cb4-6ecf-11d6-8ff8-00022d09712b", "FreeBSD file system"),
    ("48465300-0000-11aa-aa11-00306543ecac", "Apple HFS+"),
];

const MBR: [(u8, &str); 11] = [
    (0x07, "NTFS or exFAT"),
    (0x0b, "FAT32"),
    (0x0c, "FAT32"),
    (0x0e, "FAT16"),
    (0x27, "Windows recovery"),
    (0x82, "Linux swap"),
    (0x83, "Linux"),
    (0x8e, "Linux LVM"),
    (0xa5, "FreeBSD"),
    (0xef, "EFI system"),
    (0xfd, "Linux RAID"),
];
