//! Images as other programs write them, and hostile ones.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sha2::Digest as _;

use super::files::{Files, is_archive};
use super::{Container, Images, KIND};
use crate::{Error, ErrorKind, Memory, OpenOptions, Result, Source, Storage};

/// An archive of an image that is built blob by blob.
#[derive(Clone, Default)]
struct Builder {
    files: Vec<(String, Vec<u8>)>,
}

impl Builder {
    fn file(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.push((name.into(), content.as_ref().into()));
        self
    }

    /// Adds a blob, and returns its descriptor.
    fn blob(&mut self, media_type: &str, content: impl AsRef<[u8]>, more: &str) -> String {
        let content = content.as_ref();
        let digest = hex(content);
        self.files.push((format!("blobs/sha256/{digest}"), content.into()));
        descriptor(media_type, &format!("sha256:{digest}"), content.len(), more)
    }

    /// Adds a manifest of these layers, and returns its descriptor.
    fn manifest(&mut self, layers: &[String], more: &str) -> String {
        let config = self.blob("application/vnd.oci.empty.v1+json", "{}", "");
        let layers = layers.join(",");
        let text = format!("{{\"schemaVersion\":2,\"config\":{config},\"layers\":[{layers}]}}");
        self.blob(MANIFEST, text, more)
    }

    /// Adds an index of these manifests.
    fn index(self, manifests: &[String]) -> Self {
        let manifests = manifests.join(",");
        self.file("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}")
            .file("index.json", format!("{{\"schemaVersion\":2,\"manifests\":[{manifests}]}}"))
    }

    /// Changes the content of the file whose name begins so.
    fn change(mut self, name: &str, change: impl Fn(&mut Vec<u8>)) -> Self {
        let file = self.files.iter_mut().find(|file| file.0.starts_with(name));
        change(&mut file.expect("a file").1);
        self
    }

    fn storage(&self) -> Arc<dyn Storage> {
        let mut seen = std::collections::HashSet::new();
        let files = self.files.iter().filter(|(name, _)| seen.insert(name));
        let members: Vec<_> = files.map(|(name, content)| (b'0', &**name, &**content)).collect();
        Arc::new(Memory(tar(&members)))
    }

    fn open(&self) -> Result<Images> {
        let files = Files::in_archive(self.storage(), Path::new("i.tar"))?;
        Ok(Images::new(files, &OpenOptions::new()))
    }

    fn disks(&self) -> Result<Vec<String>> {
        let disks = self.open()?.disks()?;
        Ok(disks.into_iter().map(|name| String::from_utf8(name).unwrap()).collect())
    }

    /// Returns the content of a disk, after a check of its blobs.
    fn content(&self, disk: &str) -> Result<Vec<u8>> {
        let image = self.open()?.open(&OpenOptions::new(), disk.as_bytes())?;
        let mut content = vec![0; image.size() as usize];
        image.read_exact_at(&mut content, 0)?;
        image.check_unchanged()?;
        image.check_digests()?;
        Ok(content)
    }

    #[track_caller]
    fn refused(&self, says: &str) -> Error {
        let error = self.disks().expect_err("is refused");
        let text = error.to_string();
        assert!(text.starts_with("i.tar: ") && text.contains(says), "{error}");
        assert!(!text.chars().any(char::is_control), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported));
        error
    }
}

fn hex(content: &[u8]) -> String {
    sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn descriptor(media_type: &str, digest: &str, size: usize, more: &str) -> String {
    format!("{{\"mediaType\":\"{media_type}\",\"digest\":\"{digest}\",\"size\":{size}{more}}}")
}

fn title(name: &str) -> String {
    format!(",\"annotations\":{{\"org.opencontainers.image.title\":\"{name}\"}}")
}

fn platform(architecture: &str) -> String {
    format!(",\"platform\":{{\"os\":\"linux\",\"architecture\":\"{architecture}\"}}")
}

fn tar(members: &[(u8, &str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (kind, name, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        // The content of a hard link is where it leads.
        let content = match kind {
            b'1' => {
                header[157..157 + content.len()].copy_from_slice(content);
                &[][..]
            }
            _ => *content,
        };
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = *kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1024]);
    archive
}

/// An image with one raw disk `d`, whose blob is `content`.
fn single(content: &[u8]) -> Builder {
    let mut builder = Builder::default();
    let layer = builder.blob(RAW, content, &title("d"));
    let manifest = builder.manifest(&[layer], "");
    builder.index(&[manifest])
}

/// A container image of these layers.
fn container(layers: &[&[(u8, &str, &[u8])]]) -> Builder {
    let mut builder = Builder::default();
    let layers: Vec<_> = layers.iter().map(|it| builder.blob(TAR, tar(it), "")).collect();
    let manifest = builder.manifest(&layers, "");
    builder.index(&[manifest])
}

#[test]
fn layers_that_are_disks() {
    let mut builder = Builder::default();
    let name = ",\"annotations\":{\"io.kubevirt.disk.name\":\"root\",\
                \"org.opencontainers.image.title\":\"root.raw.zst\"}";
    let layers = [
        // The type says that it is raw, whatever a guest wrote into it.
        builder.blob(RAW, b"QFI\xfb\0\0\0\x03 as a guest wrote it", name),
        builder.blob("application/vnd.in-toto+json", "{}", ""),
        builder.blob(RAW, [7; 1024], ""),
        builder.blob("application/octet-stream", [8; 512], &title("m.raw")),
    ];
    let manifest = builder.manifest(&layers, "");
    let builder = builder.index(&[manifest]);
    let digits = &hex(&[7; 1024])[..12];
    assert_eq!(builder.disks().unwrap(), ["root", digits, "m.raw"]);
    assert_eq!(builder.content("root").unwrap(), b"QFI\xfb\0\0\0\x03 as a guest wrote it");
    assert_eq!(builder.content(digits).unwrap(), [7; 1024]);
    assert_eq!(builder.content("m.raw").unwrap(), [8; 512]);
    let blob = format!("blobs/sha256/{}", hex(&[8; 512]));
    assert_eq!(builder.content(&blob).unwrap(), [8; 512]);
    for name in ["m.ra", "", "blobs/sha256/x", "../x", "index.json", "blobs/../index.json"] {
        assert!(builder.content(name).is_err(), "{name}");
    }
    let text = String::from_utf8(builder.open().unwrap().manifest().unwrap().text).unwrap();
    assert!(text.contains(&format!("SHA256 ({blob}) = {}\n", hex(&[8; 512]))));
    // The config is the same as the statement of another type, and is listed once.
    assert_eq!(text.lines().count(), 5);
}

#[test]
fn names_with_platforms() {
    let mut builder = Builder::default();
    let mut manifest = |content: u8, name: &str, more: &str| {
        let layer = builder.blob(RAW, [content; 512], &title(name));
        builder.manifest(&[layer], more)
    };
    let manifests = [
        manifest(1, "d", &platform("amd64")),
        manifest(2, "d", &platform("arm64")),
        manifest(3, "e", &platform("arm64")),
    ];
    let builder = builder.index(&manifests);
    assert_eq!(builder.disks().unwrap(), ["linux/amd64/d", "linux/arm64/d", "linux/arm64/e"]);
    assert_eq!(builder.content("linux/arm64/d").unwrap(), [2; 512]);
}

#[test]
fn names_of_several_images() {
    let reference = |name: &str| {
        format!(",\"annotations\":{{\"org.opencontainers.image.ref.name\":\"{name}\"}}")
    };
    for (references, expected) in [
        (["a", "b"].map(reference), Some(["a/d", "b/d"])),
        (["a", "a"].map(reference), None),
        ([String::new(), reference("b")], None),
    ] {
        let mut builder = Builder::default();
        let mut manifests = Vec::new();
        for (content, reference) in [1_u8, 2].iter().zip(&references) {
            let layer = builder.blob(RAW, [*content; 512], &title("d"));
            manifests.push(builder.manifest(&[layer], reference));
        }
        let disks = builder.index(&manifests).disks().unwrap();
        match expected {
            Some(names) => assert_eq!(disks, names),
            None => {
                assert!(disks.iter().all(|name| name.len() == 14 && name.ends_with("/d")));
                assert_ne!(disks[0], disks[1]);
            }
        }
    }
}

#[test]
fn names_that_are_not_used() {
    for name in [
        "",
        "/etc/x",
        "a/../b",
        "a//b",
        "a b",
        "a\\nb",
        "a\\u0000",
        "blobs/sha256/x",
        "..",
        "\\u202e",
    ] {
        let mut builder = Builder::default();
        let layer = builder.blob(RAW, [1; 512], &title(name));
        let manifest = builder.manifest(&[layer], "");
        let disks = builder.index(&[manifest]).disks().unwrap();
        assert_eq!(disks, [&hex(&[1; 512])[..12]], "{name}");
    }
    // Twice the same name: of one blob, and of two.
    let mut builder = Builder::default();
    let mut blob = |content: u8| builder.blob(RAW, [content; 512], &title("d"));
    let layers = [blob(1), blob(1), blob(2)];
    let manifest = builder.manifest(&layers, "");
    let digits = [1, 2].map(|content| format!("d-{}", &hex(&[content; 512])[..12]));
    assert_eq!(builder.index(&[manifest]).disks().unwrap(), digits);
}

#[test]
fn files_of_containers() {
    let builder = container(&[
        &[(b'5', "disk/", b""), (b'0', "disk/a", &[1; 600]), (b'0', "disk/b", &[2; 600])],
        &[(b'0', "./disk/.wh.a", b""), (b'0', "./disk/c", &[3; 600]), (b'2', "bin", b"")],
        &[(b'0', "/disk/b", &[4; 700]), (b'0', "disks", b""), (b'5', "disk/sub/", b"")],
    ]);
    assert_eq!(builder.disks().unwrap(), ["disk/b", "disk/c"]);
    assert_eq!(builder.content("disk/b").unwrap(), [4; 700]);
    assert_eq!(builder.content("disk/c").unwrap(), [3; 600]);
    assert!(builder.content("disk/a").is_err());
    let disks = |top: &[(u8, &str, &[u8])]| {
        container(&[&[(b'0', "disk/a", b"1"), (b'0', "disk/b", b"1")], top]).disks().unwrap()
    };
    // A whiteout concerns the layers below, wherever it is.
    let hidden = [(b'0', "disk/a", &b"2"[..]), (b'0', "disk/.wh..wh..opq", b"")];
    assert_eq!(disks(&hidden), ["disk/a"]);
    assert_eq!(disks(&[(b'0', "disk/.wh.a", b""), (b'0', "disk/a", b"2")]), ["disk/a", "disk/b"]);
    assert_eq!(disks(&[(b'0', ".wh.disk", b"")]), [""; 0]);
    assert_eq!(disks(&[(b'0', ".wh..wh..opq", b""), (b'0', "disk/c", b"")]), ["disk/c"]);
    assert_eq!(disks(&[(b'0', "disk", b"")]), [""; 0]);
    assert_eq!(disks(&[(b'5', "disk/a/", b"")]), ["disk/b"]);
    assert_eq!(disks(&[(b'0', "disk/.wh..wh.plnk", b"")]), ["disk/a", "disk/b"]);
}

#[test]
fn members_of_layers_that_are_refused() {
    for (member, says) in [
        ((b'2', "disk"), "symbolic link \"disk\""),
        ((b'2', "disk/x"), "symbolic link \"disk/x\""),
        ((b'1', "disk/x"), "hard link \"disk/x\""),
        ((b'3', "disk/x"), "device \"disk/x\""),
        ((b'0', "disk/../x"), "programs extract differently"),
        ((b'0', "../disk/x"), "programs extract differently"),
        ((b'V', "x"), "of the type 'V'"),
        ((b'S', "disk/x"), "sparse members"),
    ] {
        let (kind, name) = member;
        container(&[&[(kind, name, b"")]]).refused(says);
    }
    container(&[&[(b'0', "disk/x", b"1"), (b'0', "./disk/x", b"2")]]).refused("two members");
    container(&[&[(b'5', "x", b""), (b'5', "x/", b""), (b'0', "disk/x", b"")]])
        .refused("two members");
    let above = |top: &[(u8, &str, &[u8])], says: &str| {
        container(&[&[(b'5', "disk", b""), (b'0', "disk/a", b"1")], top]).refused(says);
    };
    above(&[(b'0', "disk/a/x", b"")], "in a folder that is a file");
    above(&[(b'0', "disk", b""), (b'0', "disk/x", b"")], "in a folder that is a file");
    // Podman removes what has the name of a member, or is under it.
    above(&[(b'0', ".", b"")], "programs extract differently");
    above(&[(b'g', "disk/a", b"")], "global header \"disk/a\"");
    above(&[(b'g', ".wh.disk", b"")], "global header \".wh.disk\"");
    for name in ["disk/.wh.", "x/.wh..", "x/.wh..."] {
        above(&[(b'0', name, b"")], "programs extract differently");
    }
    above(&[(b'0', "disk/x", b""), (b'0', "disk/.wh.x", b"")], "after a member of the same layer");
    above(&[(b'0', "disk/x", b""), (b'0', ".wh.disk", b"")], "after a member of the same layer");
    above(&[(b'0', "disk/x", b""), (b'0', ".wh..wh..opq", b"")], "after a member");
    above(&[(b'0', "disk/a/", b"")], "a file with the name of a folder");
    above(&[(b'7', "disk/a", b"")], "of the type '7'");
    above(&[(b'2', "x", b"1")], "which is no file and has a size");
    for (name, says) in [
        (format!("disk/{}", "n".repeat(256)), "whose name no file system"),
        ("a/".repeat(257), "in too many folders"),
    ] {
        // The length has three digits.
        let record = format!(" path={name}\n");
        let record = format!("{}{record}", record.len() + 3);
        above(&[(b'x', "x", record.as_bytes()), (b'5', "short", b"")], says);
    }
    let many: Vec<_> = (0..=10_000).map(|number| format!("disk/{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (b'0', &**name, &b""[..])).collect();
    container(&[&many]).refused("more than 10000 files");
    let mut builder = Builder::default();
    let layer = builder.blob(TAR, b"no tar".repeat(200), "");
    let manifest = builder.manifest(&[layer], "");
    builder.index(&[manifest]).refused("is not a header");
}

#[test]
fn members_through_links() {
    let disks = |members: &[(u8, &str, &[u8])]| {
        let mut all = vec![(b'0', "disk/a", &b"1"[..]), (b'2', "l", b""), (b'2', "x/l", b"")];
        all.extend(members);
        container(&[&all[..3], &all[3..]]).disks()
    };
    for through in [
        &[(b'0', "l/a", &b"2"[..])][..],
        &[(b'1', "c", b"l"), (b'0', "c/a", b"2")],
        &[(b'1', "c", b"./l"), (b'0', "c/a", b"2")],
        &[(b'1', "c", b"/x/l"), (b'1', "d", b"c"), (b'0', "d/a", b"2")],
        &[(b'1', "c", b"x/../l"), (b'0', "c/a", b"2")],
        &[(b'1', "c", b"l/b"), (b'0', "c/a", b"2")],
        // The whiteout concerns the layers below.
        &[(b'2', "m", b""), (b'0', ".wh.m", b""), (b'0', "m/a", b"2")],
        &[(b'0', "l/.wh.a", b"")],
    ] {
        let error = disks(through).expect_err("goes through a link").to_string();
        assert!(error.contains("in a folder that is a link"), "{error}");
    }
    for other in [
        &[(b'1', "c", &b"x/f"[..]), (b'0', "c/a", b"2")][..],
        &[(b'0', ".wh.l", b""), (b'0', "l/a", b"2")],
        &[(b'0', ".wh.x", b""), (b'0', "x/l/a", b"2")],
        &[(b'0', "x/.wh..wh..opq", b""), (b'0', "x/l/a", b"2")],
        &[(b'5', "l/", b""), (b'0', "l/a", b"2")],
    ] {
        assert_eq!(disks(other).unwrap(), ["disk/a"], "{other:?}");
    }
}

/// A layer that some programs read as another archive.
#[test]
fn layers_of_two_kinds() {
    let refused = |layer: &[u8], says: &str| {
        let mut builder = Builder::default();
        let layer = builder.blob(TAR, layer, "");
        let manifest = builder.manifest(&[layer], "");
        builder.index(&[manifest]).refused(says);
    };
    let disk = tar(&[(b'0', "disk/a", b"1")]);
    for start in ["P*M\u{18}\u{1}", "BZh91AY&SY", "BZh"] {
        let first = tar(&[(b'0', start, b"")]);
        refused(&[&first[..512], &disk[..]].concat(), "is a tar archive that begins like");
    }
    let lz4 = [b"\x04\x22\x4d\x18", &disk[..]].concat();
    refused(&lz4, "begins in a way of lz4 that only some programs know");
    let skipped = [b"\x5f\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd", &disk[..]].concat();
    refused(&skipped, "begins in a way of zstd that only some programs know");
    // In addition to a tar archive, some extract a layer of another type, too.
    for other in ["application/octet-stream", "", "application/x-tar", RAW, "x/y.TAR"] {
        let mut builder = Builder::default();
        let layers = [builder.blob(TAR, &disk, ""), builder.blob(other, &disk, "")];
        let manifest = builder.manifest(&layers, "");
        builder.index(&[manifest]).refused("for a root file system, which programs");
    }
    // They extract the layers of a container whatever their types are, and no attestation is one.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&disk).unwrap();
    let packed = encoder.finish().unwrap();
    let other = "application/vnd.in-toto+json";
    for (layer, media_type, is_refused) in [
        (&disk[..], other, true),
        (b"\x1f\x8b\x08\0", other, true),
        (b"{}", other, false),
        (&disk, RAW, true),
        (&packed, RAW, true),
        (b"a raw disk", RAW, false),
    ] {
        let mut builder = Builder::default();
        let config = builder.blob("application/vnd.oci.image.config.v1+json", "{}", "");
        let layer = builder.blob(media_type, layer, "");
        let text = format!("{{\"config\":{config},\"layers\":[{layer}]}}");
        let manifest = builder.blob(MANIFEST, text, "");
        assert_eq!(builder.index(&[manifest]).disks().is_err(), is_refused);
    }
    // Go ends an archive at two blocks of zeros, and fails at one.
    let single = [&disk[..1024], &[0; 512], &tar(&[(b'0', "disk/b", b"2")])[..]].concat();
    refused(&single, "blocks after a single one of zeros");
    let mut numbers = disk.clone();
    numbers[100] = b'x';
    numbers[148..156].fill(b' ');
    let sum: u32 = numbers[..512].iter().map(|byte| u32::from(*byte)).sum();
    numbers[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    refused(&numbers, "has no valid number in a tar header");
    let record = b"41 SCHILY.xattr.trusted.overlay.opaque=y\n";
    let overlay = tar(&[(b'x', "x", record), (b'5', "disk/", b"")]);
    refused(&overlay, "attributes of an overlay");
    let between = tar(&[(b'x', "x", b"13 path=disk\n"), (b'g', "x", b""), (b'5', "x/", b"")]);
    refused(&between, "a global header between the headers");
}

/// Each layer is decoded once.
#[test]
fn layers_that_are_listed_often() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&tar(&[(b'0', "disk/a", &vec![0; 16 << 20]), (b'0', "x", b"")])).unwrap();
    let mut builder = Builder::default();
    let layer = builder.blob(TAR, encoder.finish().unwrap(), "");
    let top = builder.blob(TAR, tar(&[(b'0', "disk/b", b"2")]), "");
    let layers = [vec![layer; 500], vec![top]].concat();
    let manifest = builder.manifest(&layers, "");
    let builder = builder.index(&[manifest]);
    let start = Instant::now();
    assert_eq!(builder.disks().unwrap(), ["disk/a", "disk/b"]);
    assert_eq!(builder.content("disk/b").unwrap(), b"2");
    assert!(start.elapsed().as_secs() < 20);
}

/// As the tar writer of Go leaves it if it is not closed.
#[test]
fn layers_without_an_end() {
    let whole = tar(&[(b'0', "disk/a", &[1; 600])]);
    let layer = |length: usize, compress: bool| {
        let mut builder = Builder::default();
        let archive = &whole[..length];
        let blob = match compress {
            false => archive.to_vec(),
            true => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(archive).unwrap();
                encoder.finish().unwrap()
            }
        };
        let layer = builder.blob(TAR, blob, "");
        let manifest = builder.manifest(&[layer], "");
        builder.index(&[manifest])
    };
    for compress in [false, true] {
        for length in [512 + 600, 512 + 601, 1536, 2048, whole.len()] {
            let builder = layer(length, compress);
            assert_eq!(builder.content("disk/a").unwrap(), [1; 600], "{length}");
        }
        for length in [511, 513, 1023, 1024, 512 + 599] {
            assert!(layer(length, compress).content("disk/a").is_err(), "{length}");
        }
    }
}

#[test]
fn blobs_that_are_wrong() {
    let builder = single(&[1; 3 << 20]);
    assert_eq!(builder.content("d").unwrap(), [1; 3 << 20]);
    let name = format!("blobs/sha256/{}", hex(&[1; 3 << 20]));
    for at in [0, 2 << 20, (3 << 20) - 1] {
        let changed = builder.clone().change(&name, |content| content[at] ^= 1);
        assert_eq!(changed.disks().unwrap(), ["d"]);
        let error = changed.content("d").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("does not match its digest"), "{error}");
        assert!(changed.content(&name).is_err());
    }
    builder.clone().change(&name, |content| content.truncate(100)).refused("has 100 bytes, and");
    builder.clone().change(&name, |content| content.push(0)).refused("bytes, and its descriptor");
    let mut missing = builder.clone();
    missing.files.retain(|file| file.0 != name);
    missing.refused("lacks the file");
    // A manifest is compared before it is parsed.
    let manifest = builder.files.iter().find(|file| file.1.starts_with(b"{\"schema")).unwrap();
    builder.clone().change(&manifest.0, |text| *text.last_mut().unwrap() = b' ').refused("digest");
    // A layer on which a disk only depends.
    let layers: [&[(u8, &str, &[u8])]; 2] = [&[(b'0', "x", b"1")], &[(b'0', "disk/d", b"2")]];
    let name = format!("blobs/sha256/{}", hex(&tar(layers[0])));
    let changed = container(&layers).change(&name, |content| content[512] ^= 1);
    assert_eq!(changed.content("disk/d").unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn digests_that_are_refused() {
    for (digest, says) in [
        ("sha384:00".into(), "algorithm \"sha384\""),
        (format!("sha256:{}", "G".repeat(64)), "no digest"),
        (format!("sha256:{}", "A".repeat(64)), "no digest"),
        (format!("sha256:{}", "0".repeat(63)), "no digest"),
        ("sha256:../../../../etc/passwd".into(), "no digest"),
        ("../x".into(), "no digest"),
        (format!("sha512:{}", "0".repeat(128)), "lacks the file"),
    ] {
        let layer = descriptor(RAW, &digest, 1, "");
        let mut builder = Builder::default();
        let manifest = builder.manifest(&[layer], "");
        builder.index(&[manifest]).refused(says);
    }
}

#[test]
fn blobs_with_sha512() {
    let content = [9; 512];
    let digits: String =
        sha2::Sha512::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut builder = Builder::default().file(&format!("b/{digits}"), content);
    // The name is longer than that field of a header.
    builder.files[0].0 = format!("blobs/sha512/{digits}");
    let layer = descriptor(RAW, &format!("sha512:{digits}"), 512, "");
    let manifest = builder.manifest(&[layer], "");
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in builder.index(&[manifest]).files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let images = KIND.open(&OpenOptions::new(), folder.path()).unwrap().expect("a layout");
    let disks = images.disks().unwrap();
    assert_eq!(disks, [&digits.as_bytes()[..12]]);
    let image = images.open(&OpenOptions::new(), &disks[0]).unwrap();
    image.check_digests().unwrap();
    std::fs::write(folder.path().join(format!("blobs/sha512/{digits}")), [8; 512]).unwrap();
    let image = images.open(&OpenOptions::new(), &disks[0]).unwrap();
    assert_eq!(image.check_digests().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn links_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let builder = single(&[1; 512]);
    for (name, content) in &builder.files {
        let (inside, outside) = (folder.path().join(name), outside.path().join(name));
        for path in [&inside, &outside] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        std::fs::write(&outside, content).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
    }
    let images = KIND.open(&OpenOptions::new(), folder.path()).unwrap().expect("a layout");
    assert!(images.disks().is_err());
}

#[test]
fn documents_of_any_size() {
    let start = Instant::now();
    let layer = descriptor(RAW, &format!("sha256:{}", "0".repeat(64)), 1, "");
    let mut many = Builder::default();
    let manifest = many.manifest(&vec![layer; 10_000], "");
    many.index(&[manifest]).refused("more than 512 layers");

    let mut large = Builder::default();
    let manifest = large.blob(MANIFEST, vec![b' '; 100 << 20], "");
    large.index(&[manifest]).refused("more than 4 MiB");
    single(b"").change("index.json", |text| text.resize(5 << 20, b' ')).refused("more than 4 MiB");

    for bomb in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 19), "{\"layers\":[".repeat(100_000)] {
        let mut deep = Builder::default();
        let manifest = deep.blob(MANIFEST, &bomb, "");
        deep.index(&[manifest]).refused("not understood");
        single(b"").change("index.json", |text| *text = bomb.clone().into()).refused("understood");
    }
    // Small descriptors, each of which is looked up.
    let other = |number: u32| descriptor("x", &format!("sha256:{number:064x}"), 1, "");
    let others: Vec<_> = (0..20_000).map(other).collect();
    Builder::default().index(&others).refused("lacks the file");
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn documents_of_many_parts() {
    for more in [title(&"t".repeat(4097)), platform(&"p".repeat(4097))] {
        let mut builder = Builder::default();
        let layer = builder.blob(RAW, [1; 512], if more.contains("title") { &more } else { "" });
        let manifest = builder.manifest(&[layer], &more);
        builder.index(&[manifest]).refused("a name or type of more than 4096 bytes");
    }
    let mut builder = Builder::default();
    let other = builder.blob("x", "{}", "");
    let mut index = |number: usize| {
        let others = vec![&*other; 28_000].join(",");
        builder.blob(INDEX, format!("{{\"number\":{number},\"manifests\":[{others}]}}"), "")
    };
    let indexes: Vec<_> = (0..5).map(&mut index).collect();
    builder.index(&indexes).refused("more than 131072 descriptors");
}

#[test]
fn indexes_in_indexes() {
    let nested = |depth: usize| {
        let mut builder = Builder::default();
        let layer = builder.blob(RAW, [1; 512], &title("d"));
        let mut inner = builder.manifest(&[layer], &platform("amd64"));
        for _ in 0..depth {
            inner = builder.blob(INDEX, format!("{{\"manifests\":[{inner}]}}"), "");
        }
        builder.index(&[inner])
    };
    assert_eq!(nested(3).disks().unwrap(), ["d"]);
    nested(5).refused("indexes in each other");
    let mut many = Builder::default();
    let manifests: Vec<_> = (0..300)
        .map(|number| many.blob(MANIFEST, format!("{{\"number\":{number}}}"), ""))
        .collect();
    many.index(&manifests).refused("256 manifests");
}

#[test]
fn documents_of_two_types() {
    for text in [
        "{\"manifests\":[],\"layers\":[]}".to_owned(),
        format!("{{\"mediaType\":\"{INDEX}\",\"layers\":[]}}"),
    ] {
        let mut builder = Builder::default();
        let manifest = builder.blob(MANIFEST, text, "");
        builder.index(&[manifest]).refused("of another type");
    }
    for (text, says) in [
        ("{\"layers\":[],\"layers\":[]}", "duplicate field"),
        ("{\"layers\":[],\"Layers\":[]}", "the key \"Layers\", which some programs read as"),
        ("{\"layer\\u017f\":[]}", "which some programs read as \"layers\""),
        ("{\"layers\":[{\"digest\":\"a\\u001bb\"}]}", "missing field"),
        ("{\"layers\":\"a\\u001b[2Jb\"}", "invalid type"),
        ("", "EOF"),
    ] {
        let mut builder = Builder::default();
        let manifest = builder.blob(MANIFEST, text, "");
        builder.index(&[manifest]).refused(says);
    }
    single(b"").change("oci-layout", |text| *text = b"{}".into()).refused("imageLayoutVersion");
    let version = |text: &mut Vec<u8>| *text = b"{\"imageLayoutVersion\":\"2.0.0\"}".into();
    single(b"").change("oci-layout", version).refused("version \"2.0.0\"");
}

#[test]
fn archives_of_docker() {
    let layers = [tar(&[(b'0', "disk/d", &[1; 600])]), tar(&[(b'0', "disk/e", &[2; 600])])];
    let ids = layers.each_ref().map(|layer| format!("\"sha256:{}\"", hex(layer))).join(",");
    let config = format!("{{\"os\":\"linux\",\"rootfs\":{{\"diff_ids\":[{ids}]}}}}");
    let name = format!("{}.json", hex(config.as_bytes()));
    let text = format!(
        "[{{\"Config\":\"{name}\",\"RepoTags\":null,\"Layers\":[\"a.tar\",\"b/layer.tar\"]}}]"
    );
    let builder = Builder::default()
        .file("a.tar", &layers[0])
        .file("b/layer.tar", &layers[1])
        .file(&name, &config)
        .file("manifest.json", &text);
    assert_eq!(builder.disks().unwrap(), ["disk/d", "disk/e"]);
    assert_eq!(builder.content("disk/e").unwrap(), [2; 600]);
    let changed = builder.clone().change("a.tar", |content| content[600] ^= 1);
    assert_eq!(changed.content("disk/e").unwrap_err().kind(), ErrorKind::Corrupt);
    builder.clone().change(&name, |text| text.push(b' ')).refused("does not match its digest");
    let fewer =
        |text: &mut Vec<u8>| *text = String::from_utf8_lossy(text).replace("\"a.tar\",", "").into();
    builder.clone().change("manifest.json", fewer).refused("2 digests for 1 layers");
    let lines = builder.open().unwrap().manifest().unwrap().text;
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 3);
    assert!(is_archive(&builder.storage()));
    // The same image in two places, with other layers.
    let other = text.replace("\"a.tar\",\"b/layer.tar\"", "\"b/layer.tar\",\"a.tar\"");
    let twice = format!("[{},{}]", &text[1..text.len() - 1], &other[1..other.len() - 1]);
    let twice = builder.clone().change("manifest.json", |text| *text = twice.clone().into());
    twice.refused("in two places");
    // Two layers with one digest, of which one has another content.
    let double = |text: &mut Vec<u8>| {
        let ids = format!("[\"sha256:{0}\",\"sha256:{0}\"]", hex(&layers[0]));
        *text = format!("{{\"os\":\"linux\",\"rootfs\":{{\"diff_ids\":{ids}}}}}").into();
    };
    let mut builder = builder.change(&name, double);
    let renamed = format!("{}.json", hex(&builder.files[2].1));
    builder.files[2].0.clone_from(&renamed);
    let renamed = |text: &mut Vec<u8>| {
        *text = String::from_utf8_lossy(text).replace(&name, &renamed).into();
    };
    let builder = builder.change("manifest.json", renamed);
    builder.refused("in different files");
}

#[test]
fn archives_with_an_index_and_a_list() {
    let mut builder = Builder::default();
    let config = builder.blob("application/vnd.oci.image.config.v1+json", "{}", "");
    let layers = [tar(&[(b'0', "disk/a", b"1")]), tar(&[(b'0', "disk/a", b"2")])];
    let layers = layers.each_ref().map(|layer| builder.blob(TAR, layer, ""));
    let text = format!("{{\"config\":{config},\"layers\":[{}]}}", layers[0]);
    let manifest = builder.blob(MANIFEST, text, "");
    let path = |descriptor: &str| {
        let at = descriptor.find("sha256:").unwrap();
        format!("blobs/sha256/{}", &descriptor[at + 7..][..64])
    };
    let (config, layers) = (path(&config), layers.map(|layer| path(&layer)));
    let list = |layer: &str| format!("[{{\"Config\":\"{config}\",\"Layers\":[\"{layer}\"]}}]");
    let builder = builder.index(&[manifest]);
    let same = builder.clone().file("manifest.json", list(&layers[0]));
    assert_eq!(same.content("disk/a").unwrap(), b"1");
    let says = "no image of its configuration and layers in its index";
    builder.clone().file("manifest.json", list(&layers[1])).refused(says);
    let mut without = builder.file("manifest.json", list(&layers[1]));
    without.files.retain(|file| file.0 != "oci-layout");
    assert!(without.disks().is_err());
}

#[test]
fn archives_that_are_no_images() {
    assert!(is_archive(&single(b"").storage()));
    let none = |members: &[(u8, &str, &[u8])]| {
        assert!(!is_archive(&(Arc::new(Memory(tar(members))) as Arc<dyn Storage>)));
    };
    none(&[]);
    none(&[(b'0', "x", b""), (b'0', "oci-layout.txt", b"")]);
    none(&[(b'5', "oci-layout/", b""), (b'0', "sub/oci-layout", b"")]);
    none(&[(b'0', "x.ovf", b""), (b'0', "oci-layout", b"")]);
    let names: Vec<_> = (0..20).map(|number| format!("file{number}")).collect();
    let mut members: Vec<_> = names.iter().map(|name| (b'0', &**name, &b""[..])).collect();
    members.push((b'0', "oci-layout", b""));
    none(&members);
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const RAW: &str = "application/vnd.kubevirt.disk.raw";
const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
