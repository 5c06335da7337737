//! The description of the block nodes that QEMU opens.
//!
//! Every driver is explicit, every file is a descriptor that the child inherits, and a node has a
//! backing file only if its description does. QEMU never opens a name from an image and never detects a
//! format. No value needs quoting.

use std::fmt::Write;
use std::os::fd::RawFd;

use crate::options::VpcSize;
use crate::probe::Format;

/// An image of a format.
pub(super) struct Node {
    pub format: Format,
    pub file: FileNode,
    /// File with the data of a qcow2 image, if it is another one.
    pub data_file: Option<FileNode>,
    /// Files that a vmdk descriptor names, in order.
    pub extents: Vec<FileNode>,
    /// Which of its sizes a vpc image has, if they differ. The versions of QEMU do not agree on a default.
    pub vpc_size: Option<VpcSize>,
    pub backing: Option<Box<Node>>,
}

/// A file, identified by its descriptor.
#[derive(Clone, Copy)]
pub(super) struct FileNode {
    pub fd: RawFd,
    pub is_device: bool,
    /// Whether it bypasses the page cache.
    pub is_direct: bool,
}

impl Node {
    /// Creates a node without a backing file.
    pub fn new(format: Format, file: FileNode) -> Self {
        let (data_file, extents, vpc_size, backing) = Default::default();
        Self { format, file, data_file, extents, vpc_size, backing }
    }

    /// Returns the node in the form that QEMU accepts in place of a file name.
    pub fn to_argument(&self) -> String {
        let mut text = String::from("json:");
        self.render(&mut text);
        text
    }

    fn render(&self, text: &mut String) {
        let _ = write!(text, "{{\"driver\":\"{}\",\"file\":", self.format);
        self.file.render(text);
        if let Some(data_file) = &self.data_file {
            text.push_str(",\"data-file\":");
            data_file.render(text);
        }
        let size = match self.vpc_size {
            None | Some(VpcSize::Auto) => None,
            Some(VpcSize::Geometry) => Some("chs"),
            Some(VpcSize::Current) => Some("current_size"),
        };
        if let (Format::Vpc, Some(size)) = (self.format, size) {
            let _ = write!(text, ",\"force_size_calc\":\"{size}\"");
        }
        for (number, extent) in self.extents.iter().enumerate() {
            // The name of the file is in the generated descriptor.
            let FileNode { is_device, is_direct, .. } = *extent;
            let prefix = format!(",\"extents.{number}.");
            let driver = FileNode::driver(is_device);
            let _ = write!(text, "{prefix}driver\":\"{driver}\"{prefix}locking\":\"off\"");
            let _ = write!(text, "{prefix}cache.direct\":{is_direct}");
        }
        if self.format == Format::Luks {
            let _ = write!(text, ",\"key-secret\":\"{SECRET_ID}\"");
        }
        match &self.backing {
            Some(backing) => {
                text.push_str(",\"backing\":");
                backing.render(text);
            }
            None if has_backing(self.format) => text.push_str(",\"backing\":null"),
            None => {}
        }
        text.push('}');
    }
}

impl FileNode {
    /// Returns the path by which the child opens the file.
    pub fn path(&self) -> String {
        format!("/dev/fd/{}", self.fd)
    }

    fn driver(is_device: bool) -> &'static str {
        if is_device { "host_device" } else { "file" }
    }

    /// Renders the node without QEMU's locking. This process checks the locks before and after.
    fn render(self, text: &mut String) {
        let (driver, path) = (Self::driver(self.is_device), self.path());
        let _ = write!(
            text,
            "{{\"driver\":\"{driver}\",\"filename\":\"{path}\",\"locking\":\"off\",\
             \"cache\":{{\"direct\":{}}}}}",
            self.is_direct
        );
    }
}

/// Returns whether images of this format may have backing files.
fn has_backing(format: Format) -> bool {
    matches!(format, Format::Qcow2 | Format::Vmdk | Format::Qed | Format::Qcow1)
}

/// Id of the object that holds the secret.
pub(super) const SECRET_ID: &str = "sec0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_and_file_is_explicit() {
        let file = |fd| FileNode { fd, is_device: false, is_direct: false };
        let base = Node::new(Format::Raw, file(12));
        let device = FileNode { is_device: true, is_direct: true, ..file(11) };
        let mut node = Node { extents: vec![device], ..Node::new(Format::Vmdk, file(10)) };
        assert_eq!(
            node.to_argument(),
            r#"json:{"driver":"vmdk","file":{"driver":"file","filename":"/dev/fd/10","locking":"off","cache":{"direct":false}},"extents.0.driver":"host_device","extents.0.locking":"off","extents.0.cache.direct":true,"backing":null}"#
        );
        node.backing = Some(Box::new(base));
        assert!(node.to_argument().ends_with(
            r#","backing":{"driver":"raw","file":{"driver":"file","filename":"/dev/fd/12","locking":"off","cache":{"direct":false}}}}"#
        ));
    }
}
