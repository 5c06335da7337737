//! The description of block nodes that QEMU opens.
//!
//! Every driver is named, every file is a descriptor that the child inherits, and there is a backing
//! file only where the description has one: QEMU never looks at a name that stands in an image, and
//! never guesses a format. Nothing here needs quoting.

use std::fmt::Write;
use std::os::fd::RawFd;

use crate::probe::Format;

/// An image of a format.
pub(super) struct Node {
    pub format: Format,
    pub file: FileNode,
    /// The files that its descriptor names, in order.
    pub extents: Vec<FileNode>,
    pub backing: Option<Box<Node>>,
}

/// A file under the number of its descriptor.
#[derive(Clone, Copy)]
pub(super) struct FileNode {
    pub fd: RawFd,
    pub is_device: bool,
    /// Past the page cache.
    pub is_direct: bool,
}

impl Node {
    /// As QEMU reads it where it expects a file name.
    pub fn to_argument(&self) -> String {
        let mut text = String::from("json:");
        self.render(&mut text);
        text
    }

    fn render(&self, text: &mut String) {
        let _ = write!(text, "{{\"driver\":\"{}\",\"file\":", self.format);
        self.file.render(text);
        for (number, extent) in self.extents.iter().enumerate() {
            // The file's name stands in the descriptor, which is ours.
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
    /// The name by which the child opens it.
    pub fn path(&self) -> String {
        format!("/dev/fd/{}", self.fd)
    }

    fn driver(is_device: bool) -> &'static str {
        if is_device { "host_device" } else { "file" }
    }

    /// QEMU's own locks are left alone: ours were looked at, and are looked at again.
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

/// Whether images of this format may have backing files.
fn has_backing(format: Format) -> bool {
    matches!(format, Format::Vmdk | Format::Qed | Format::Qcow1)
}

/// The name of the object that holds the secret.
pub(super) const SECRET_ID: &str = "sec0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_named() {
        let file = |fd| FileNode { fd, is_device: false, is_direct: false };
        let base = Node { format: Format::Raw, file: file(12), extents: vec![], backing: None };
        let device = FileNode { is_device: true, is_direct: true, ..file(11) };
        let mut node =
            Node { format: Format::Vmdk, file: file(10), extents: vec![device], backing: None };
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
