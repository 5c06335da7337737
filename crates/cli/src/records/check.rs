//! The objects of `blkhash check`.

use blkrecord::{Name, record};

use super::common::Named;

record! {
    /// What is wrong with a layer.
    pub struct Finding<'a> {
        /// `finding`
        pub r#type: &'static str,
        /// name of the image on the command line
        pub name: Name<'a>,
        /// where the layer is: `image`, `disk`, `partition 2` or `partition 2: LV root`
        pub place: String,
        /// number of the partition, if the layer is all of one; null otherwise
        pub partition: Option<u32>,
        /// kind of the layer, such as `GPT` or `ext4`
        pub layer: &'static str,
        /// `mismatch` (a checksum does not match), `damaged` (bytes violate the rules of the layer), `unreadable` or `skipped`
        /// (a limit was reached, or a feature is not read)
        pub problem: &'static str,
        /// name of the structure
        pub structure: &'static str,
        /// its offset in the content of the image, or for the layer `image` in its file
        pub offset: u64,
        /// its offset in the layer
        pub layer_offset: u64,
        /// its length in bytes, 0 if unknown
        pub length: u64,
        /// number of the inode, or of the file record, that it belongs to; null if there is none
        pub object: Option<u64>,
        /// paths of the files that are hit, at most 16
        pub files: Vec<Named<'a>>,
        /// what is wrong
        pub reason: String,
        /// number of findings that this one stands for, such as references to a table that is wrong
        pub count: u64,
    }
}

record! {
    /// Structures of one kind whose checksums match.
    pub struct Verified {
        /// name of the structure
        pub structure: &'static str,
        /// their number
        pub count: u64,
        /// bytes that the checksums cover
        pub bytes: u64,
    }
}

record! {
    /// A layer.
    pub struct Layer<'a> {
        /// `layer`
        pub r#type: &'static str,
        /// name of the image on the command line
        pub name: Name<'a>,
        /// where the layer is, as in a finding
        pub place: String,
        /// number of the partition, if the layer is all of one; null otherwise
        pub partition: Option<u32>,
        /// offset of its first byte
        pub offset: u64,
        /// length of the part of the disk that it is in
        pub length: u64,
        /// its kind, or `unknown`
        pub layer: &'static str,
        /// its label or name; null if it has none
        pub label: Option<String>,
        /// its UUID or serial number; null if it has none
        pub uuid: Option<String>,
        /// `clean`, `incomplete` or `damaged`
        pub verdict: &'static str,
        /// what matches, by structure
        pub verified: Vec<Verified>,
        /// bytes of content without a checksum; null if unknown
        pub unprotected_bytes: Option<u64>,
        /// structures whose checksums do not match
        pub mismatches: u64,
        /// parts that violate the rules of the layer
        pub damaged: u64,
        /// parts that cannot be read
        pub unreadable: u64,
        /// parts that were not verified
        pub skipped: u64,
        /// of the layer `image`, clusters that nothing uses, which waste space and are no damage; null for other layers
        pub leaks: Option<u64>,
        /// of the layer `image`, reference counts that are computed anew when the image is next opened for writing; null for others
        pub outdated: Option<u64>,
        /// what to know of the layer
        pub remarks: Vec<String>,
    }
}

record! {
    /// The end of the check of an image.
    pub struct Summary<'a> {
        /// `summary`
        pub r#type: &'static str,
        /// name of the image on the command line
        pub name: Name<'a>,
        /// the worst verdict of its layers
        pub verdict: &'static str,
        /// number of layers
        pub layers: usize,
        /// number of findings
        pub findings: u64,
        /// findings that `--max-errors` kept from being printed
        pub not_printed: u64,
        /// seconds that the check took
        pub seconds: f64,
    }
}

record! {
    /// An image that cannot be checked.
    pub struct Failed<'a> {
        /// `error`
        pub r#type: &'static str,
        /// name of the image on the command line
        pub name: Name<'a>,
        /// the message, with the name that it is about
        pub error: String,
    }
}
