//! The chain of an image: the image itself and its backing files.

use blkimage::{Image, Member};
use blkrecord::{Name, record};

record! {
    /// The two sizes of a vpc image, if they differ.
    #[derive(Clone, Debug)]
    pub struct VpcSizes as "Sizes of vpc images" {
        /// bytes that its footer states
        pub current: u64,
        /// bytes of cylinders x heads x sectors
        pub geometry: u64,
        /// the size with which it was read: `current` or `geometry`
        pub read: &'static str,
    }
}

record! {
    /// An image of a chain.
    #[derive(Clone, Debug)]
    pub struct ChainImage as "Chains" {
        /// its format
        pub format: &'static str,
        /// bytes of its content
        pub virtual_size: Option<u64>,
        /// its two sizes
        #[absent("if it has one size")]
        pub vpc_sizes: Option<VpcSizes>,
        /// what reads the format: `built-in` or `qemu-nbd`
        pub reader: &'static str,
        /// files that it is stored in
        pub files: Vec<ChainFile>,
    }
}

record! {
    /// A file of an image.
    #[derive(Clone, Debug)]
    pub struct ChainFile {
        /// name of the file
        pub name: Name<'static>,
        /// bytes of the file
        pub size: u64,
        /// bytes of it that take space; null if the system does not say
        pub stored: Option<u64>,
        /// how it is read
        pub read: &'static str,
        /// the object on an HTTP or S3 server that it is
        #[absent("for any other file")]
        pub object: Option<ChainObject>,
    }
}

record! {
    /// An object on a server.
    #[derive(Clone, Debug)]
    pub struct ChainObject as "Objects on servers" {
        /// URL that led to it, after redirects, without secrets
        pub url: String,
        /// what tells that it did not change: `ETag` or `Last-Modified` with its value, or `length`
        pub validator: String,
    }
}

impl VpcSizes {
    /// Describes the sizes.
    pub fn new(sizes: blkimage::VpcSizes) -> Self {
        let blkimage::VpcSizes { current, geometry, read, .. } = sizes;
        Self { current, geometry, read: read.name() }
    }
}

impl ChainImage {
    /// Describes the images of a chain, the image itself first.
    pub fn all(image: &Image) -> Vec<Self> {
        image.chain().iter().map(Self::new).collect()
    }

    fn new(image: &Member) -> Self {
        let files = image.files().map(|file| ChainFile {
            name: Name::new(file.name().as_os_str().to_owned()),
            size: file.size(),
            stored: file.stored(),
            read: file.read_method().name(),
            object: file.object().map(|it| ChainObject { url: it.url, validator: it.validator }),
        });
        Self {
            format: image.format().name(),
            virtual_size: image.virtual_size(),
            vpc_sizes: image.vpc_sizes().map(VpcSizes::new),
            reader: if image.is_served() { "qemu-nbd" } else { "built-in" },
            files: files.collect(),
        }
    }
}
