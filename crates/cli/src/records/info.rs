//! The object of `blkhash info`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkrecord::{Name, record};

use super::chain::ChainImage;

record! {
    /// An image.
    pub struct Info<'a> {
        /// name of the image
        pub name: Name<'a>,
        /// format of the image
        pub format: &'static str,
        /// bytes of its content
        pub virtual_size: u64,
        /// the image and its backing files, top first
        pub chain: Vec<ChainImage>,
        /// the internal snapshots; null if the format has none that can be read
        pub snapshots: Option<Vec<Snapshot<'a>>>,
        /// `gpt` or `mbr`; null without a table
        pub partition_table: Option<&'static str>,
        /// the partitions, by number
        pub partitions: Vec<Partition<'a>>,
        /// what is wrong with the table, of which then nothing, a part, or the backup of a GPT is listed
        pub partition_problem: Option<String>,
        /// how the content was acquired, as the image says
        #[absent("if it is no forensic image")]
        pub acquisition: Option<Acquisition>,
        /// what an image of the used blocks of a file system says of it
        #[absent("if it is none")]
        pub backup: Option<Backup>,
        /// the MD5 that an image of ISO 9660 states of itself, which `blksum -c` compares
        #[absent("if it states none")]
        pub implanted: Option<Implanted>,
        /// the checksums of parts that the image states of itself, which `blksum -c` compares, as in `Adler-32 of each chunk`
        #[absent("if it states none")]
        pub part_checksums: Option<String>,
    }
}

record! {
    /// The MD5 that an image of ISO 9660 states of itself, as implantisomd5 writes it.
    pub struct Implanted {
        /// the MD5, in hexadecimal
        pub md5: String,
        /// bytes that it is of, from the start of the image on
        pub bytes: u64,
        /// bytes of the volume, of which the last ones are not in the MD5
        pub volume_size: u64,
        /// fragments, of all but the last of which it has sums
        pub fragments: usize,
    }
}

record! {
    /// What an image of the used blocks of a file system says of it.
    pub struct Backup {
        /// name of the file system, in the words of partclone, such as `EXTFS`
        pub file_system: String,
        /// version of the program that made the image
        pub version: String,
        /// bytes in a block
        pub block_size: u64,
        /// bytes in all used blocks
        pub used: u64,
    }
}

record! {
    /// What a forensic image says of itself.
    pub struct Acquisition {
        /// bytes of content in a chunk
        pub chunk_size: u64,
        /// number of chunks
        pub chunks: u64,
        /// bytes in a sector
        pub sector_size: u64,
        /// `none`, `fast` or `best`
        pub compression: Option<&'static str>,
        /// `removable`, `fixed`, `optical` or `memory`
        pub medium: Option<&'static str>,
        /// whether all of a device was acquired
        pub is_physical: bool,
        /// the case data
        pub case: Case,
        /// digests of the content that the image states, which `blksum -c` compares
        pub digests: Vec<StatedDigest>,
        /// ranges that could not be read when it was acquired
        pub errors: Vec<UnreadRange>,
        /// number of such ranges that are not listed
        pub more_errors: u64,
    }
}

record! {
    /// Case data, as texts of the image.
    #[derive(Default)]
    pub struct Case {
        /// case number
        pub case_number: Option<String>,
        /// evidence number
        pub evidence_number: Option<String>,
        /// description
        pub description: Option<String>,
        /// name of the examiner
        pub examiner: Option<String>,
        /// notes
        pub notes: Option<String>,
        /// when it was acquired
        pub acquired: Option<String>,
        /// what the clock of that system said
        pub system_time: Option<String>,
        /// version of the program
        pub software: Option<String>,
        /// operating system
        pub system: Option<String>,
        /// model of the device
        pub model: Option<String>,
        /// serial number of the device
        pub serial_number: Option<String>,
        /// label of the device
        pub device_label: Option<String>,
    }
}

record! {
    /// A digest that an image states of its content.
    pub struct StatedDigest {
        /// `md5`, `sha1` or `sha256`
        pub algorithm: &'static str,
        /// its value in hexadecimal
        pub digest: String,
    }
}

record! {
    /// A range that could not be read.
    pub struct UnreadRange {
        /// offset of its first byte
        pub offset: u64,
        /// its bytes
        pub length: u64,
    }
}

record! {
    /// An internal snapshot.
    pub struct Snapshot<'a> {
        /// its id, for `--snapshot`
        pub id: Name<'a>,
        /// its name, for `--snapshot`
        pub name: Name<'a>,
        /// when it was taken, in UTC, as in `2026-11-25T12:00:00Z`
        pub created: String,
        /// bytes of its content
        pub virtual_size: u64,
        /// bytes of the saved state of the virtual machine, 0 without
        pub vm_state_size: u64,
    }
}

record! {
    /// A partition.
    pub struct Partition<'a> {
        /// its number, for `--partition`
        pub number: u32,
        /// offset of its first byte
        pub offset: u64,
        /// its bytes
        pub length: u64,
        /// its type: a GUID, or in an MBR a byte in hexadecimal
        pub r#type: String,
        /// the name of a common type
        pub type_name: Option<&'static str>,
        /// its unique id; null in an MBR
        pub uuid: Option<String>,
        /// its name in a GPT; empty without one
        pub label: &'a str,
    }
}

impl Implanted {
    /// Describes the MD5 that an image states.
    pub fn new(found: &blkimage::Implanted) -> Self {
        Self {
            md5: blkrecord::hex(&found.md5),
            bytes: found.length,
            volume_size: found.volume_size,
            fragments: found.fragments.len() + 1,
        }
    }
}

impl Backup {
    /// Describes an image of the used blocks of a file system.
    pub fn new(found: &blkimage::Backup) -> Self {
        Self {
            file_system: found.file_system.clone(),
            version: found.version.clone(),
            block_size: found.block_size,
            used: found.used,
        }
    }
}

impl Acquisition {
    /// Describes how an image was acquired, and the digests that it states.
    pub fn new(found: &blkimage::Acquisition, stated: &blkimage::Stated) -> Self {
        let mut case = Case::default();
        for field in &found.case {
            let place = match field.name {
                "case_number" => &mut case.case_number,
                "evidence_number" => &mut case.evidence_number,
                "description" => &mut case.description,
                "examiner" => &mut case.examiner,
                "notes" => &mut case.notes,
                "acquired" => &mut case.acquired,
                "system_time" => &mut case.system_time,
                "software" => &mut case.software,
                "system" => &mut case.system,
                "model" => &mut case.model,
                "serial_number" => &mut case.serial_number,
                "device_label" => &mut case.device_label,
                _ => continue,
            };
            *place = Some(field.value.clone());
        }
        let digests = stated.digests.iter().map(|stated| StatedDigest {
            algorithm: stated.algorithm,
            digest: blkrecord::hex(&stated.digest),
        });
        let errors = found
            .errors
            .iter()
            .map(|range| UnreadRange { offset: range.start, length: range.end - range.start });
        Self {
            chunk_size: found.chunk_size,
            chunks: found.chunks,
            sector_size: found.sector_size,
            compression: found.compression,
            medium: found.medium,
            is_physical: found.is_physical,
            case,
            digests: digests.collect(),
            errors: errors.collect(),
            more_errors: found.more_errors,
        }
    }
}

impl<'a> Snapshot<'a> {
    /// Describes a snapshot.
    pub fn new(snapshot: &'a blkimage::Snapshot) -> Self {
        Self {
            id: Name::new(OsStr::from_bytes(&snapshot.id)),
            name: Name::new(OsStr::from_bytes(&snapshot.name)),
            created: blksys::utc(snapshot.created),
            virtual_size: snapshot.virtual_size,
            vm_state_size: snapshot.vm_state_size,
        }
    }
}

impl<'a> Partition<'a> {
    /// Describes a partition.
    pub fn new(
        part: &blkimage::partition::Partition,
        details: &'a blkimage::partition::Details,
    ) -> Self {
        Self {
            number: part.number,
            offset: part.offset,
            length: part.length,
            r#type: details.kind.to_string(),
            type_name: details.kind.name(),
            uuid: details.uuid.map(|uuid| uuid.to_string()),
            label: &details.name,
        }
    }
}
