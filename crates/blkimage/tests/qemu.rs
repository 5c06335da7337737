//! Images made by QEMU's tools with all their options. Our guest view must equal QEMU's.

mod common;

use blkimage::{ErrorKind, Follow, Format, Hint, Holes, OpenOptions, Source};
use common::{
    Random, assert_same, assert_same_bytes, make_raw, open, our_view, qemu_io, qemu_view, sh,
};

/// Data, zeros and holes that are not aligned to clusters, and an end in the middle of a cluster.
const CONTENT: &str =
    "100k:A 3k:- 1k:B 200k:0 70k:R 512:C 1m:- 64k:D 1m:R 300k:E 2m:0 4096:R 512:- 512:F";

const CLUSTERS: [&str; 6] = ["512", "4k", "32k", "64k", "1M", "2M"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn raw() {
    let folder = folder();
    for spec in ["0:-", "1:A", "511:A", "512:A", "513:A", "4097:A 1:-", "1:- 65536:0 7:B", CONTENT]
    {
        let path = make_raw(folder.path(), "disk.raw", spec);
        let image = open(folder.path(), "disk.raw");
        assert_eq!(image.format(), Format::Raw);
        assert_same_bytes(&our_view(&image), &std::fs::read(path).unwrap(), spec);
    }
}

#[test]
fn cluster_sizes_and_versions() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    make_raw(folder.path(), "disk.raw", CONTENT);
    for compat in ["0.10", "1.1"] {
        for cluster in CLUSTERS {
            let options = format!("compat={compat},cluster_size={cluster}");
            sh(folder.path(), &format!("qemu-img convert -O qcow2 -o {options} disk.raw a.qcow2"));
            assert_same(folder.path(), "a.qcow2");
        }
    }
}

#[test]
fn preallocation() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    for mode in ["off", "metadata", "falloc", "full"] {
        for extra in ["", ",cluster_size=512", ",cluster_size=2M", ",extended_l2=on"] {
            let options = format!("preallocation={mode}{extra}");
            sh(folder.path(), &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 5000k"));
            assert_same(folder.path(), "a.qcow2");
            qemu_io(folder.path(), "a.qcow2", &["write -P 7 1000k 99k".into()]);
            assert_same(folder.path(), "a.qcow2");
        }
    }
}

#[test]
fn compression() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    make_raw(folder.path(), "disk.raw", CONTENT);
    for method in ["zlib", "zstd"] {
        for cluster in CLUSTERS {
            for flags in ["-c", "-c -W -m 8", "-W -m 8"] {
                let options = format!("compression_type={method},cluster_size={cluster}");
                let command = format!("qemu-img convert {flags} -O qcow2 -o {options}");
                sh(folder.path(), &format!("{command} disk.raw a.qcow2"));
                assert_same(folder.path(), "a.qcow2");
            }
        }
    }
    sh(folder.path(), "qemu-img convert -c -O qcow2 -o compat=0.10 disk.raw a.qcow2");
    assert_same(folder.path(), "a.qcow2");
}

#[test]
fn extended_l2() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    make_raw(folder.path(), "disk.raw", CONTENT);
    for cluster in ["16k", "64k", "128k", "2M"] {
        for flags in ["", "-c"] {
            let options = format!("extended_l2=on,cluster_size={cluster}");
            let command = format!("qemu-img convert {flags} -O qcow2 -o {options}");
            sh(folder.path(), &format!("{command} disk.raw a.qcow2"));
            assert_same(folder.path(), "a.qcow2");
            let commands = ["write -P 3 512 512", "write -z 70k 5k", "discard 100k 64k"];
            qemu_io(folder.path(), "a.qcow2", &commands.map(String::from));
            assert_same(folder.path(), "a.qcow2");
        }
    }
}

#[test]
fn external_data_file() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    make_raw(folder.path(), "disk.raw", CONTENT);
    for raw in ["on", "off"] {
        for extra in ["", ",cluster_size=2M", ",extended_l2=on", ",preallocation=metadata"] {
            let options = format!("data_file=a.data,data_file_raw={raw}{extra}");
            let size = std::fs::metadata(folder.path().join("disk.raw")).unwrap().len();
            let create = format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 {size}");
            sh(folder.path(), &create);
            assert_same(folder.path(), "a.qcow2");
            sh(folder.path(), "qemu-img convert -n -O qcow2 disk.raw a.qcow2");
            assert_same(folder.path(), "a.qcow2");
            let commands = ["write -P 9 0 1k", "write -z 64k 64k", "discard 128k 64k"];
            qemu_io(folder.path(), "a.qcow2", &commands.map(String::from));
            assert_same(folder.path(), "a.qcow2");
            let image = open(folder.path(), "a.qcow2");
            let files: Vec<_> = image.files().map(|file| file.file_name().unwrap()).collect();
            assert_eq!(files, ["a.qcow2", "a.data"]);
        }
    }
    std::fs::remove_file(folder.path().join("a.data")).unwrap();
    let path = folder.path().join("a.qcow2");
    let error = OpenOptions::default().open(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Reference);
}

#[test]
#[ignore = "slow"]
fn chains_of_three() {
    let folder = folder();
    make_raw(folder.path(), "base.raw", CONTENT);
    sh(folder.path(), "qemu-img convert -O qcow2 -o compat=0.10 base.raw base.qcow2");
    sh(folder.path(), "qemu-img convert -c -O qcow2 -o cluster_size=2M base.raw packed.qcow2");
    for (base, format) in [("base.raw", "raw"), ("base.qcow2", "qcow2"), ("packed.qcow2", "qcow2")]
    {
        for mid in ["cluster_size=512", "cluster_size=64k,extended_l2=on", "cluster_size=1M"] {
            for top in ["cluster_size=2M", "cluster_size=4k,compat=0.10"] {
                let mid = format!("qemu-img create -q -f qcow2 -o {mid} -F {format} -b {base}");
                sh(folder.path(), &format!("{mid} mid.qcow2"));
                let commands = ["write -P 1 90k 30k", "write -P 2 1500k 1m"];
                qemu_io(folder.path(), "mid.qcow2", &commands.map(String::from));
                let top = format!("qemu-img create -q -f qcow2 -o {top} -F qcow2 -b mid.qcow2");
                sh(folder.path(), &format!("{top} top.qcow2"));
                let commands = ["write -P 3 100k 1k", "write -z 2m 128k", "write -P 4 4m 512"];
                qemu_io(folder.path(), "top.qcow2", &commands.map(String::from));
                assert_same(folder.path(), "top.qcow2");
            }
        }
    }
}

#[test]
fn backing_shorter_and_longer() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    for spec in ["100k:R", "3m:R", "70000:R", "1:A", "0:-", "65537:R"] {
        make_raw(folder.path(), "base.raw", spec);
        for sizes in [["1m", "2m"], ["2m", "1m"], ["64k", "2m"], ["2m", "64k"], ["99840", "1m"]] {
            let create = "qemu-img create -q -f qcow2";
            sh(folder.path(), &format!("{create} -F raw -b base.raw mid.qcow2 {}", sizes[0]));
            sh(folder.path(), &format!("{create} -F qcow2 -b mid.qcow2 top.qcow2 {}", sizes[1]));
            qemu_io(folder.path(), "top.qcow2", &["write -P 5 32k 1k".into()]);
            assert_same(folder.path(), "top.qcow2");
        }
    }
}

#[test]
fn snapshots() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    for options in ["compat=0.10", "compat=1.1", "extended_l2=on", "cluster_size=512"] {
        sh(path, &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 4m"));
        for (name, pattern) in [("first", 1), ("second", 2), ("1", 3)] {
            qemu_io(path, "a.qcow2", &[format!("write -P {pattern} 100k 1m")]);
            qemu_io(path, "a.qcow2", &[format!("write -P {pattern} {pattern}500k 64k")]);
            sh(path, &format!("qemu-img snapshot -c {name} a.qcow2"));
        }
        qemu_io(path, "a.qcow2", &["write -P 9 0 4m".into()]);
        assert_same(path, "a.qcow2");
        // "1" is the id of the first and the name of the third snapshot. The id takes precedence.
        for (wanted, theirs) in [
            ("first", "snapshot.name=first"),
            ("second", "snapshot.name=second"),
            ("2", "snapshot.id=2"),
            ("1", "snapshot.id=1"),
            ("3", "snapshot.id=3"),
        ] {
            let snapshot = Some(wanted.to_owned());
            let options = OpenOptions::new().snapshot(snapshot);
            let image = options.open(path.join("a.qcow2")).unwrap();
            let theirs = qemu_view(path, "a.qcow2", &format!("-l {theirs}"));
            assert_same_bytes(&our_view(&image), &theirs, wanted);
        }
    }
    let options = OpenOptions::new().snapshot("no\x1b".to_owned());
    let error = options.open(path.join("a.qcow2")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Snapshot);
    assert!(error.reason().ends_with("it has 1 (first), 2 (second), 3 (1)"), "{error}");
    assert!(error.reason().contains("\"no\\u{1b}\""), "{error}");
}

#[test]
fn a_snapshot_has_its_own_size() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 a.qcow2 1m");
    qemu_io(path, "a.qcow2", &["write -P 1 0 1m".into()]);
    let before = qemu_view(path, "a.qcow2", "");
    sh(path, "qemu-img snapshot -c s a.qcow2");
    sh(path, "qemu-img resize -q a.qcow2 5m");
    let options = OpenOptions::new().snapshot("s".to_owned());
    let image = options.open(path.join("a.qcow2")).unwrap();
    assert_same_bytes(&our_view(&image), &before, "snapshot");
    assert_eq!(open(path, "a.qcow2").size(), 5 << 20);
}

#[test]
fn a_snapshot_in_a_chain_keeps_the_backing_file() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    make_raw(path, "base.raw", CONTENT);
    sh(path, "qemu-img create -q -f qcow2 -F raw -b base.raw a.qcow2");
    qemu_io(path, "a.qcow2", &["write -P 1 64k 64k".into()]);
    let before = qemu_view(path, "a.qcow2", "");
    sh(path, "qemu-img snapshot -c s a.qcow2");
    qemu_io(path, "a.qcow2", &["write -P 2 0 1m".into()]);
    let options = OpenOptions::new().snapshot("s".to_owned());
    let image = options.open(path.join("a.qcow2")).unwrap();
    assert_same_bytes(&our_view(&image), &before, "snapshot");
}

#[test]
fn odd_sizes() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    for size in ["0", "512", "1024", "65024", "66048", "1049088"] {
        for options in ["cluster_size=64k", "cluster_size=512", "extended_l2=on"] {
            sh(path, &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 {size}"));
            if size != "0" {
                qemu_io(path, "a.qcow2", &[format!("write -P 1 0 {size}")]);
            }
            assert_same(path, "a.qcow2");
        }
    }
}

#[test]
fn a_huge_empty_chain_is_a_single_extent() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 base.qcow2 8T");
    sh(path, "qemu-img create -q -f qcow2 -F qcow2 -b base.qcow2 mid.qcow2");
    sh(path, "qemu-img create -q -f qcow2 -F qcow2 -b mid.qcow2 top.qcow2");
    let image = open(path, "top.qcow2");
    let (mut offset, mut calls) = (0, 0);
    while offset < image.size() {
        offset = image.extent(offset, u64::MAX).unwrap().end();
        calls += 1;
    }
    assert_eq!((offset, calls), (8 << 40, 1));
}

#[test]
fn tables_are_read_once() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let options = "preallocation=metadata,cluster_size=4k";
    sh(path, &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 64m"));
    let image = open(path, "a.qcow2");
    let before = image.bytes_read();
    let mut offset = 0;
    while offset < image.size() {
        offset = image.extent(offset, 10_000).unwrap().end();
    }
    // 32 L2 tables of 4 KiB, and the L1 table.
    assert_eq!(image.bytes_read() - before, 32 * 4096 + 32 * 8);
}

#[cfg(feature = "qemu-nbd")]
#[test]
#[cfg_attr(blkhash_portable, should_panic)] // servers
fn both_readers_see_the_same() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    make_raw(path, "base.raw", CONTENT);
    let content = std::fs::read(path.join("base.raw")).unwrap();
    for (name, options, format) in [
        ("qcow2", "", Format::Qcow2),
        ("qcow", "", Format::Qcow1),
        ("qed", "", Format::Qed),
        ("vmdk", "", Format::Vmdk),
        ("vmdk", "-o subformat=monolithicFlat", Format::Vmdk),
        ("vmdk", "-o subformat=twoGbMaxExtentSparse", Format::Vmdk),
        ("vmdk", "-o subformat=streamOptimized", Format::Vmdk),
        ("vdi", "", Format::Vdi),
        ("vhdx", "", Format::Vhdx),
        ("vpc", "-o force_size=on", Format::Vpc),
        ("vpc", "-o subformat=fixed,force_size=on", Format::Vpc),
        ("parallels", "", Format::Parallels),
    ] {
        sh(path, &format!("qemu-img convert -f raw -O {name} {options} base.raw image"));
        for reader in [blkimage::Reader::Auto, blkimage::Reader::Qemu] {
            let image = OpenOptions::new().reader(reader).open(path.join("image")).unwrap();
            assert_eq!(image.format(), format);
            assert_eq!(image.chain()[0].is_served(), reader == blkimage::Reader::Qemu);
            assert!(our_view(&image) == content, "{format} {options} {reader:?}");
        }
        let raw = OpenOptions::new().format(Format::Raw);
        let image = raw.open(path.join("image")).unwrap();
        assert_eq!(our_view(&image), std::fs::read(path.join("image")).unwrap());
    }
}

#[test]
fn qed_and_qcow_of_version_1() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    make_raw(path, "base.raw", CONTENT);
    let content = std::fs::read(path.join("base.raw")).unwrap();
    for (name, format) in [("qed", Format::Qed), ("qcow", Format::Qcow1)] {
        sh(path, &format!("qemu-img convert -f raw -O {name} base.raw image"));
        let image = OpenOptions::default().open(path.join("image")).unwrap();
        assert_eq!(image.format(), format);
        assert!(our_view(&image) == content, "{format}");
    }
}

#[test]
fn encrypted_images_are_refused() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    // LUKS would benchmark a key derivation, which fails on a busy machine.
    let secret = "--object secret,id=s,data=abc -o encrypt.format=aes,encrypt.key-secret=s";
    sh(path, &format!("qemu-img create -q -f qcow2 {secret} aes.qcow2 4m"));
    let error = OpenOptions::default().open(path.join("aes.qcow2")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.reason().contains("AES"), "{error}");
}

#[test]
fn unrecorded_backing_format_must_be_given() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    make_raw(path, "base.raw", CONTENT);
    sh(path, "qemu-img create -q -f qcow2 -F raw -b base.raw a.qcow2");
    let mut bytes = std::fs::read(path.join("a.qcow2")).unwrap();
    let extension = bytes.windows(4).position(|word| word == [0xe2, 0x79, 0x2a, 0xca]).unwrap();
    bytes[extension] = 0x12;
    std::fs::write(path.join("a.qcow2"), bytes).unwrap();
    let mut options = OpenOptions::default();
    let error = options.open(path.join("a.qcow2")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Reference);
    assert_eq!(error.hint(), Some(Hint::RecordFormat));
    options.backing_format = Some(Format::Raw);
    let ours = our_view(&options.open(path.join("a.qcow2")).unwrap());
    assert_same_bytes(&ours, &qemu_view(path, "a.qcow2", ""), "a.qcow2");
    options.follow = Follow::None;
    assert_eq!(options.open(path.join("a.qcow2")).err().unwrap().kind(), ErrorKind::Reference);
}

#[test]
fn holes_can_be_verified_or_ignored() {
    let folder = folder();
    let path = make_raw(folder.path(), "disk.raw", CONTENT);
    for holes in [Holes::Verify, Holes::Ignore] {
        let options = OpenOptions::new().holes(holes);
        let image = options.open(&path).unwrap();
        assert_eq!(our_view(&image), std::fs::read(&path).unwrap());
        assert_eq!(image.extent(0, u64::MAX).unwrap().length, image.size());
    }
}

#[test]
fn threads_read_the_same_bytes() {
    if common::lacks_qemu() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    make_raw(path, "base.raw", CONTENT);
    let convert = "qemu-img convert -c -O qcow2 -o cluster_size=32k,compression_type=zstd";
    sh(path, &format!("{convert} base.raw base.qcow2"));
    sh(path, "qemu-img create -q -f qcow2 -F qcow2 -b base.qcow2 top.qcow2");
    qemu_io(path, "top.qcow2", &["write -P 1 90k 30k".into(), "write -z 1m 100k".into()]);
    let (image, expected) = (open(path, "top.qcow2"), qemu_view(path, "top.qcow2", ""));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (image, expected) = (&image, &expected);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..500 {
                    let offset = random.below(image.size());
                    let length = random.below((image.size() - offset).min(200_000)) as usize;
                    let mut piece = vec![0; length];
                    image.read_exact_at(&mut piece, offset).unwrap();
                    assert!(piece == expected[offset as usize..][..length]);
                    image.extent(offset, 100_000).unwrap();
                }
            });
        }
    });
}
