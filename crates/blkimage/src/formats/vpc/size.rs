//! The two sizes of a vpc image.

use crate::formats::fields::Head;
use crate::options::VpcSize;

/// The sizes that a footer records, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub current: u64,
    /// Product of cylinders, heads and sectors.
    pub geometry: u64,
    /// Program that created the image.
    pub creator: [u8; 4],
}

impl Sizes {
    pub fn of(footer: &Head<'_>) -> Self {
        let [heads, sectors] = [footer.bytes()[58], footer.bytes()[59]].map(u64::from);
        let cylinders = u64::from(footer.be32(56) >> 16);
        let geometry = cylinders * heads * sectors * SECTOR;
        Self { current: footer.be64(48), geometry, creator: footer.be32(28).to_be_bytes() }
    }

    /// Returns the virtual size in bytes, as in QEMU.
    pub fn choose(&self, choice: VpcSize) -> u64 {
        let uses_current = match choice {
            VpcSize::Auto => EXACT.contains(&&self.creator),
            VpcSize::Geometry => false,
            VpcSize::Current => true,
        };
        // The largest geometry stands for all larger sizes as well.
        if uses_current || self.geometry == MAX_GEOMETRY {
            self.current / SECTOR * SECTOR
        } else {
            self.geometry
        }
    }

    /// Returns a warning if `size`, the number of bytes that QEMU reads, may not be the
    /// size of the original disk.
    pub fn doubt(&self, size: u64) -> Option<String> {
        let Self { current, geometry, .. } = *self;
        if size != current {
            return Some(format!(
                "is read like in QEMU, with the {size} bytes of its geometry, and not the {current} \
                 bytes that its header states"
            ));
        }
        // Without `force_size`, QEMU rounds the size of new images.
        (self.creator == *b"qemu" && size == geometry).then(|| {
            format!(
                "its size of {size} bytes was rounded up to whole cylinders unless it was made with \
                 force_size=on: the disk that it was made of may be smaller"
            )
        })
    }
}

/// Creators whose images have the size that they state: Hyper-V, QEMU with `force_size`, Disk2vhd,
/// XenServer and XenConverter.
const EXACT: [&[u8; 4]; 5] = [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS"];

const SECTOR: u64 = 512;

/// 65535 cylinders, 16 heads and 255 sectors.
const MAX_GEOMETRY: u64 = 65535 * 16 * 255 * SECTOR;
