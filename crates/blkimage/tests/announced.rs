//! All data of images of other programs is announced before it is read.

mod common;
#[path = "common/recorder.rs"]
mod recorder;

use blkimage::{OpenOptions, Source};
use common::{lacks_qemu, make_raw, sh};

use self::recorder::{Recorder, pass};

#[test]
fn images_of_qemu() {
    if lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let raw = make_raw(folder, "raw", "5m:R 3m:- 72k:A 1m:0 9m:R 200k:- 64k:R");
    let expected = std::fs::read(raw).unwrap();
    for (options, is_shared, more) in [
        ("-O raw", false, 0),
        ("-O qcow2", false, 0),
        ("-O qcow2 -o cluster_size=4k", false, 0),
        ("-O qcow2 -o cluster_size=512", false, 0),
        ("-O qcow2 -o extended_l2=on,cluster_size=16k", false, 0),
        ("-c -O qcow2", true, 0),
        ("-c -W -O qcow2 -o compression_type=zstd,cluster_size=4k", true, 0),
        ("-O qcow", false, 0),
        ("-O qed", false, 0),
        ("-O vdi", false, 0),
        ("-O vhdx", false, 0),
        ("-O vpc", false, 0),
        ("-O parallels", false, 0),
        ("-O vmdk", false, 0),
        ("-O vmdk -o subformat=streamOptimized", true, 8 << 16),
    ] {
        sh(folder, &format!("qemu-img convert {options} raw image"));
        let bytes = std::fs::read(folder.join("image")).unwrap();
        let recorder = Recorder::new(bytes.clone(), 32 << 20);
        let image = OpenOptions::new().open_storage(Box::new(recorder.clone()), "image").unwrap();
        let found = pass(&image, std::slice::from_ref(&recorder));
        assert!(found[..expected.len()] == expected, "{options}");
        recorder.check(is_shared, more);

        let recorder = Recorder::new(bytes, 0);
        let image = OpenOptions::new().open_storage(Box::new(recorder.clone()), "image").unwrap();
        assert_eq!(image.read_ahead(), 0);
        assert!(pass(&image, std::slice::from_ref(&recorder)) == found);
        assert!(!recorder.is_announced(), "{options}");
    }
}
