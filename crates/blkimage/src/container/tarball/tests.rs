use super::names::Form;
use super::*;
use crate::ExtentKind;
use crate::storage::Memory;
use crate::tar::Sparse;

#[test]
fn names_and_content_agree() {
    let mut tar = vec![0; 512];
    tar[..1].copy_from_slice(b"a");
    tar[148..156].copy_from_slice(b"000541\0 ");
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\0";
    let of = |name: &str, head: &[u8]| Form::of(Path::new(name), head);
    assert_eq!(of("a.tar", &tar), Some(Form::Plain));
    assert_eq!(of("a.BOX", &tar), Some(Form::Plain));
    assert_eq!(of("a.raw", &tar), Some(Form::Plain));
    assert_eq!(of("a.tar.gz", &tar), None);
    for name in ["a.tar.gz", "a.tgz", "a.box", "a.ova.gz", "dir.x/A.TAR.GZ"] {
        assert_eq!(of(name, gzip), Some(Form::Compressed(Compression::Gzip)), "{name}");
    }
    for name in ["a.tar", "a.gz", "a.raw", "a.tar.xz", "tar.gz", ".tgz"] {
        assert_eq!(of(name, gzip), None, "{name}");
    }
    assert!(is_named(Path::new("a.tzst")) && !is_named(Path::new("a.img.gz")));
}

#[test]
fn holes_are_zeros() {
    let parts = vec![(3..5, 0), (5..6, 2), (9..10, 3)];
    let map = Arc::new(Sparse { size: 12, parts });
    let content = Runs { storage: Arc::new(Memory(b"abcd".to_vec())), map };
    let mut bytes = [1; 12];
    content.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"\0\0\0abc\0\0\0d\0\0");
    let (mut at, mut kinds) = (0, Vec::new());
    while at < 12 {
        let extent = content.extent(at, 12 - at).unwrap();
        assert_eq!(extent.offset, at);
        kinds.push((extent.length, extent.kind == ExtentKind::Zero));
        at = extent.end();
    }
    assert_eq!(kinds, [(3, true), (2, false), (1, false), (3, true), (1, false), (2, true)]);
    assert_eq!(content.read_at_most(&mut [0], 12).unwrap(), 0);
}
