//! The two sizes of a vpc image.

use crate::formats::fields::Head;
use crate::hint::Hint;
use crate::member::VpcSizes;
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

    /// Returns the virtual size in bytes, as in QEMU 10.0.
    pub fn choose(&self, choice: VpcSize) -> u64 {
        match self.read_as(choice) {
            VpcSize::Geometry => self.geometry,
            _ => self.current / SECTOR * SECTOR,
        }
    }

    /// Returns which of the sizes a choice means.
    fn read_as(&self, choice: VpcSize) -> VpcSize {
        // The largest geometry stands for all larger sizes as well.
        if self.geometry == MAX_GEOMETRY {
            return VpcSize::Current;
        }
        match choice {
            VpcSize::Auto if GEOMETRIC.contains(&&self.creator) => VpcSize::Geometry,
            VpcSize::Auto | VpcSize::Current => VpcSize::Current,
            VpcSize::Geometry => VpcSize::Geometry,
        }
    }

    /// Returns the sizes between which a choice decides, if there is one.
    pub fn differing(&self, choice: VpcSize) -> Option<VpcSizes> {
        let [current, geometry] = [VpcSize::Current, VpcSize::Geometry].map(|it| self.choose(it));
        (current != geometry).then(|| VpcSizes { current, geometry, read: self.read_as(choice) })
    }

    /// Returns a warning if `size`, the number of bytes that QEMU 10.0 reads, may not be the size of the
    /// original disk, or is not what earlier versions read.
    pub fn doubt(&self, size: u64) -> Option<(String, Option<Hint>)> {
        let Self { current, geometry, .. } = *self;
        if let Some(VpcSizes { read: VpcSize::Current, .. }) = self.differing(VpcSize::Auto) {
            let is_new = !KNOWN_BEFORE.contains(&&self.creator);
            let reason = format!(
                "is read like in QEMU 10.0, with the {size} bytes that its header states: earlier versions \
                 read the {geometry} bytes of its geometry"
            );
            return is_new.then_some((reason, Some(Hint::VpcSize)));
        }
        if size != current {
            let reason = format!(
                "is read like in QEMU, with the {size} bytes of its geometry, and not the {current} \
                 bytes that its header states"
            );
            return Some((reason, Some(Hint::CurrentSize)));
        }
        // Without `force_size`, QEMU rounds the size of new images.
        (self.creator == *b"qemu" && size == geometry).then(|| {
            let reason = format!(
                "its size of {size} bytes was rounded up to whole cylinders unless it was made with \
                 force_size=on: the disk that it was made of may be smaller"
            );
            (reason, None)
        })
    }
}

/// Creators whose images have the size of their geometry: Virtual PC, and QEMU without `force_size`.
const GEOMETRIC: [&[u8; 4]; 2] = [b"vpc ", b"qemu"];

/// Creators whose images QEMU before 10.0 reads with the current size: Hyper-V, QEMU with `force_size`,
/// Disk2vhd, XenServer and XenConverter. It reads images of Azure, VirtualBox and others with the geometry.
const KNOWN_BEFORE: [&[u8; 4]; 5] = [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS"];

const SECTOR: u64 = 512;

/// 65535 cylinders, 16 heads and 255 sectors.
const MAX_GEOMETRY: u64 = 65535 * 16 * 255 * SECTOR;
