//! `blkhash verity format`: makes the hash file of dm-verity.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use blkhash::{Digest, Salt};
use blkimage::{Format as ImageFormat, Identity};
use blkrecord::Flat;
use blkverity::{Error, StoredTree, Superblock, SuperblockError, TreeFile};
use rustix::fs::OFlags;
use uuid::{Builder, Uuid};

use super::args::{DmTree, Format};
use crate::blkhash::output::Output;
use crate::blkhash::source::{Data, shown};
use crate::json;
use crate::messages;
use crate::outputs::{self, FileMode, Leftover, Named, Opened, mode_of_images};
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Reporter;
use crate::records;
use crate::stdio::Stdout;

/// Makes the hash file.
pub fn run(args: &Format) -> Result<Outcome, Failure> {
    let salt = match args.source.salt {
        Some(salt) => salt,
        None => {
            Salt::try_from(&random::<SALT>().map_err(Failure::usage)?[..]).expect("a short salt")
        }
    };
    let random_uuid = || random().map(|bytes| Builder::from_random_bytes(bytes).into_uuid());
    let uuid = args.uuid.map_or_else(random_uuid, Ok).map_err(Failure::usage)?.into_bytes();
    let described = Superblock { uuid, ..describe(&args.tree, salt) };
    let mode = mode_of_images([&*args.data]);
    let hash_file = HashFile::open(args, mode).map_err(|reason| {
        Failure::usage(format!("{}: {reason}", shown(args.hash_file.as_os_str())))
    })?;
    let root_file = root_file(args, mode).map_err(Failure::usage)?;
    let options = args.source.confine([&args.data])?;
    let when = args.source.progress.when();
    let reporter = Reporter::new(when, Some(1));
    reporter.begin(&args.data);
    let made = Data::open(&args.data, &options, &args.source).and_then(|data| {
        if let Some(output) = &root_file {
            output.check_apart(data.image(), Some(hash_file.identity))?;
        }
        let made = make(&data, described, args, &hash_file, &reporter)?;
        if let Some(output) = &root_file {
            output.write(made.root.to_string().as_bytes())?;
        }
        hash_file.leftover.keep();
        Ok(made)
    });
    reporter.end(&args.data, None);
    drop(reporter);
    match made {
        Ok(made) => {
            print(&made, args)?;
            Ok(Outcome::Clean)
        }
        Err(problem) => {
            problem.report(&args.data);
            Ok(Outcome::Unknown)
        }
    }
}

/// Opens the file for the root hash. Refuses to overwrite another one.
fn root_file(args: &Format, mode: FileMode) -> Result<Option<Output>, String> {
    let Some(name) = args.root_hash_file.as_deref() else { return Ok(None) };
    let output = Output::open(ROOT_FILE, Some(name), mode)?;
    if !args.force && output.as_ref().is_some_and(Output::has_content) {
        return Err(format!("{ROOT_FILE}: {}: {ROOT_HASH}", shown(name.as_os_str())));
    }
    Ok(output)
}

/// Returns the superblock that the options describe, without blocks of data if they do not say how many.
pub fn describe(tree: &DmTree, salt: Salt) -> Superblock {
    let default = Superblock::new(tree.data_blocks.unwrap_or(0));
    Superblock {
        algorithm: tree.hash.unwrap_or(default.algorithm),
        data_block_size: tree.data_block_size.unwrap_or(default.data_block_size),
        hash_block_size: tree.hash_block_size.unwrap_or(default.hash_block_size),
        salt,
        ..default
    }
}

/// Describes why there can be no tree with these options.
pub fn reason(error: &blkverity::Error) -> String {
    match error {
        Error::UnalignedSuperblock(_) | Error::UnalignedTree(_) => format!("--hash-{error}"),
        Error::Fields(SuperblockError::DataBlocks(_)) => "--data-blocks: too many".to_owned(),
        error => error.to_string(),
    }
}

/// Describes why a tree could not be written. `target` is the file of the tree.
pub fn failed(data: &Data, error: blksum::Error, target: &str) -> Problem {
    match error {
        blksum::Error::Verity(Error::Write(error)) => {
            Problem::new(format!("{target}: {}", messages::reason(&error)))
        }
        error => data.failed(&error),
    }
}

/// The result.
struct Made {
    superblock: Superblock,
    stored: StoredTree,
    root: Digest,
}

fn make(
    data: &Data,
    mut superblock: Superblock,
    args: &Format,
    hash_file: &HashFile,
    reporter: &Reporter,
) -> Result<Made, Problem> {
    let size = data.size();
    if args.tree.data_blocks.is_none() {
        let whole = size / u64::from(superblock.data_block_size);
        superblock = superblock.with_data_length(size).map_err(|error| match whole {
            0 => error.to_string(),
            whole => format!("{error}: --data-blocks {whole} leaves out the rest"),
        })?;
    }
    let offset = args.tree.hash_offset.unwrap_or(0);
    let stored = match args.tree.no_superblock {
        true => StoredTree::bare(&superblock, offset),
        false => StoredTree::dm(&superblock, offset),
    };
    let stored = stored.map_err(|error| reason(&error))?;
    let hash_name = shown(args.hash_file.as_os_str());
    let is_shared = hash_file.check_apart(data, offset, stored.data_length())?;
    hash_file
        .check_free(offset, stored.layout().end())
        .map_err(|error| format!("{hash_name}: {}", messages::reason(&error)))?;
    let mut output = TreeFile::new(&hash_file.file, &stored);
    if is_shared {
        output = output.with_scratch(hash_file.spare()?);
    }
    let root = data.watched(stored.data_length(), reporter, |tuning, progress| {
        blksum::verity::write(data.source(), output, tuning, progress)
    });
    let root = root.map_err(|error| failed(data, error, &hash_name))?;
    Ok(Made { superblock, stored, root })
}

/// The file that the hashes are written to.
struct HashFile {
    file: File,
    /// Takes the tree while the data is read, if both are in one file.
    spare: Option<File>,
    identity: Identity,
    /// Whether any content may be overwritten.
    is_free: bool,
    leftover: Leftover,
}

impl HashFile {
    /// Opens the file, or creates it with this mode. Refuses to overwrite anything but zeros.
    fn open(args: &Format, mode: FileMode) -> Result<Self, String> {
        let reason = |error: io::Error| messages::reason(&error);
        // Waits for no reader of a pipe. The kernel refuses a device that is mounted or held.
        let is_device = crate::image::open::is_device(&args.hash_file);
        let held = if is_device { OFlags::EXCL } else { OFlags::empty() };
        let flags = OFlags::RDWR | OFlags::NONBLOCK | held;
        let Opened { file, metadata, leftover } =
            outputs::open(&args.hash_file, Named::ByUser, mode, flags)?;
        let (is_regular, kind) = (metadata.is_file(), metadata.file_type());
        if !is_regular && !kind.is_block_device() {
            return Err("is neither a regular file nor a block device".into());
        }
        let mut head = [0; Superblock::SIZE];
        let length = read_up_to(&file, &mut head, args.tree.hash_offset.unwrap_or(0));
        let head = &head[..length.map_err(reason)?];
        let is_free = args.force;
        if !is_free && !is_zero(head) {
            let has_hashes = head.first_chunk().is_some_and(|it| Superblock::parse(it).is_ok());
            return Err(if has_hashes { HASHES } else { OTHER_CONTENT }.into());
        }
        let folder = match args.hash_file.parent() {
            // The folder of a device is in memory.
            _ if !is_regular => std::env::temp_dir(),
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        // It is rarely needed, so a folder where none can be made is no error yet.
        let spare = tempfile::tempfile_in(folder).ok();
        Ok(Self { file, spare, identity: Identity::new(&metadata), is_free, leftover })
    }

    /// Refuses to overwrite anything but zeros. File systems begin with zeros, too.
    fn check_free(&self, start: u64, end: u64) -> io::Result<()> {
        if self.is_free {
            return Ok(());
        }
        let mut buffer = vec![0; 1 << 20];
        let mut offset = start;
        while offset < end {
            let wanted = ((end - offset) as usize).min(1 << 20);
            let length = read_up_to(&self.file, &mut buffer[..wanted], offset)?;
            if !is_zero(&buffer[..length]) {
                return Err(io::Error::other(OTHER_CONTENT));
            }
            if length < wanted {
                break;
            }
            offset += length as u64;
        }
        Ok(())
    }

    /// Returns whether the file is the file of the data, which is then raw and ends before the hashes. Refuses
    /// to write to any other file of the image.
    fn check_apart(&self, data: &Data, offset: u64, data_length: u64) -> Result<bool, String> {
        if !self.identity.is_in(data.image()) {
            self.leftover.share(Some(data.image()));
            return Ok(false);
        }
        let is_alone = data.image().chain().len() == 1;
        if !is_alone || data.image().format() != ImageFormat::Raw || data.is_part() {
            return Err("the hash file is a file of the image".into());
        }
        if offset < data_length {
            return Err(format!(
                "the hashes would overwrite the data: --hash-offset has to be {data_length} or more"
            ));
        }
        Ok(true)
    }

    fn spare(&self) -> Result<&File, String> {
        self.spare.as_ref().ok_or_else(|| {
            "hashes cannot be written to the file of the data on this file system: use another file"
                .to_owned()
        })
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| messages::reason(&error.into()))?;
    Ok(bytes)
}

fn print(made: &Made, args: &Format) -> io::Result<()> {
    let Made { superblock, stored, root } = made;
    let (hash_blocks, end) = (stored.layout().blocks(), stored.layout().end());
    let uuid = match args.tree.no_superblock {
        true => String::new(),
        false => Uuid::from_bytes(superblock.uuid).to_string(),
    };
    let salt = superblock.salt.to_string();
    let text = if args.json {
        json::line(&records::verity::HashFile {
            names: Flat(records::verity::Names::new(&args.data, &args.hash_file)),
            root_hash: root.to_string(),
            uuid: (!args.tree.no_superblock).then_some(uuid),
            hash: superblock.algorithm.name(),
            data_blocks: superblock.data_blocks,
            data_block_size: superblock.data_block_size.get(),
            hash_blocks,
            hash_block_size: superblock.hash_block_size.get(),
            hash_offset: args.tree.hash_offset.unwrap_or(0),
            hash_end: end,
            salt,
        })
    } else {
        let rows = [
            ("UUID:", uuid),
            ("Hash type:", "1".to_owned()),
            ("Data blocks:", superblock.data_blocks.to_string()),
            ("Data block size:", superblock.data_block_size.to_string()),
            ("Hash blocks:", hash_blocks.to_string()),
            ("Hash block size:", superblock.hash_block_size.to_string()),
            ("Hash algorithm:", superblock.digest_name().to_owned()),
            ("Salt:", if salt.is_empty() { "-".to_owned() } else { salt }),
        ];
        // The spaces are as in veritysetup, which prints the size only without an offset.
        let mut tail = format!("Root hash:      \t{root}\n");
        if args.tree.hash_offset.unwrap_or(0) == 0 {
            tail += &format!("Hash device size: \t{end} [bytes]\n");
        }
        let head = format!("VERITY header information for {}\n", shown(args.hash_file.as_os_str()));
        rows.iter().fold(head, |text, (name, value)| text + &format!("{name:<17}\t{value}\n"))
            + &tail
    };
    Stdout.write_all(text.as_bytes())
}

/// Length of a random salt in bytes, as in veritysetup.
const SALT: usize = 32;

const ROOT_FILE: &str = "--root-hash-file";

const ROOT_HASH: &str = "exists and is not empty: --force overwrites it";

const HASHES: &str = "exists, and new hashes have another root hash: --force overwrites it";

const OTHER_CONTENT: &str = "is not empty and not a hash file of dm-verity: --force overwrites it";
