//! Devices of a fake system made of files.

use std::os::unix::fs::symlink;

use super::*;

struct Fake(tempfile::TempDir);

impl Fake {
    fn new(mounts: &str) -> Self {
        let it = Self(tempfile::tempdir().unwrap());
        for folder in ["dev/block", "block", "fs/btrfs"] {
            fs::create_dir_all(it.path(folder)).unwrap();
        }
        fs::write(it.path("mounts"), mounts).unwrap();
        it
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds a device by its path beneath /sys/devices.
    fn device(&self, name: &str, number: &str) -> PathBuf {
        let folder = self.path("devices").join(name);
        fs::create_dir_all(folder.join("holders")).unwrap();
        fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
        symlink(&folder, self.path("dev/block").join(number)).unwrap();
        folder
    }

    fn partition(&self, name: &str, number: &str) -> PathBuf {
        let folder = self.device(name, number);
        fs::write(folder.join("partition"), "1\n").unwrap();
        folder
    }

    fn holds(holder: &Path, held: &Path) {
        symlink(holder, held.join("holders").join(holder.file_name().unwrap())).unwrap();
    }

    fn uses(&self, major: u32, minor: u32) -> (Option<String>, Vec<String>) {
        let system = System {
            sys: self.0.path().to_path_buf(),
            mounts: self.path("mounts"),
            swaps: self.path("swaps"),
        };
        let uses = system.uses((major, minor));
        (uses.writer, uses.others)
    }
}

#[test]
fn partitions_and_disks() {
    let fake = Fake::new(
        "22 1 8:1 / /a\\040b rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
         23 1 8:2 / /b rw - xfs /dev/sda2 ro,nouuid\nnonsense\n",
    );
    fake.device("sda", "8:0");
    fake.partition("sda/sda1", "8:1");
    fake.partition("sda/sda2", "8:2");
    fake.partition("sda/sda3", "8:3");
    let read_only = "is mounted read-only at /b".to_owned();
    assert_eq!(fake.uses(8, 1), (Some("is mounted for writing at /a b".into()), vec![]));
    assert_eq!(fake.uses(8, 2), (None, vec![read_only]));
    assert_eq!(fake.uses(8, 3), (None, vec![]));
    let (writer, others) = fake.uses(8, 0);
    assert_eq!(writer.unwrap(), "has the partition sda1, which is mounted for writing at /a b");
    assert_eq!(others, ["has the partition sda2, which is mounted read-only at /b"]);
}

#[test]
fn devices_on_top() {
    let fake = Fake::new("22 1 253:1 / /home rw - ext4 /dev/mapper/home rw\n");
    fake.device("sda", "8:0");
    let partition = fake.partition("sda/sda1", "8:1");
    let crypt = fake.device("virtual/dm-0", "253:0");
    let home = fake.device("virtual/dm-1", "253:1");
    Fake::holds(&crypt, &partition);
    Fake::holds(&home, &crypt);
    for device in [0, 1] {
        let (writer, others) = fake.uses(8, device);
        assert_eq!(writer.unwrap(), "is a part of dm-1, which is mounted for writing at /home");
        assert_eq!(others, ["is a part of dm-0"]);
    }
    let other = fake.device("sdb", "8:16");
    Fake::holds(&fake.device("virtual/md0", "9:0"), &other);
    assert_eq!(fake.uses(8, 16), (None, vec!["is a part of md0".into()]));
}

#[test]
fn all_devices_of_a_btrfs() {
    let fake = Fake::new("");
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        let folder = fake.device(name, number);
        if name != "sdc" {
            let devices = fake.path("fs/btrfs/some-id/devices");
            fs::create_dir_all(&devices).unwrap();
            symlink(&folder, devices.join(name)).unwrap();
        }
    }
    // The file system is mounted in another namespace.
    for minor in [0, 16] {
        let writer = fake.uses(8, minor).0.unwrap();
        assert!(writer.contains("in another mount namespace"), "{writer}");
    }
    assert_eq!(fake.uses(8, 32), (None, vec![]));
    // Here the mount has the number of the device. An anonymous number would identify the
    // device by its path.
    fs::write(fake.path("mounts"), "22 1 8:0 / /b rw - btrfs /dev/sda rw\n").unwrap();
    for minor in [0, 16] {
        assert_eq!(fake.uses(8, minor).0.unwrap(), "is mounted for writing at /b");
    }
}

#[test]
fn without_a_list_of_mounts() {
    let fake = Fake::new("");
    fs::remove_file(fake.path("mounts")).unwrap();
    fake.device("sda", "8:0");
    let (writer, others) = fake.uses(8, 0);
    assert_eq!((writer, others.len()), (None, 1));
}
