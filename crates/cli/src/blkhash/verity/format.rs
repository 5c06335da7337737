//! `blkhash verity format`: makes the hash file of dm-verity.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blkhash::{Algorithm, BlockSize, Construction, Digest, Digester, Parameters, Salt, Tree};
use blkimage::Format as ImageFormat;
use blkverity::{Layout, Superblock, TreeFile};
use rustix::fs::OFlags;
use serde_json::json;

use super::args::{DmTree, Format};
use crate::blkhash::output::Output;
use crate::blkhash::source::{Data, fail, shown};
use crate::identity::Identity;
use crate::outputs::{self, FileMode, Leftover, Named, Opened, mode_of};
use crate::problem::{Failure, Outcome};
use crate::progress::Reporter;
use crate::stdio::Stdout;
use crate::{json, messages};

/// Makes the hash file.
pub fn run(args: &Format) -> Result<Outcome, Failure> {
    let refused = |reason: String| Failure::usage(reason);
    let salt = match args.source.salt {
        Some(salt) => salt,
        None => Salt::try_from(&random::<SALT>().map_err(refused)?[..]).expect("a short salt"),
    };
    let uuid = args.uuid.map_or_else(random_uuid, Ok).map_err(refused)?;
    let parameters = parameters(&args.tree, salt).map_err(refused)?;
    let mode = mode_of([&*args.data]);
    let hash_file = HashFile::open(args, mode)
        .map_err(|reason| refused(format!("{}: {reason}", shown(args.hash_file.as_os_str()))))?;
    let root_file = root_file(args, mode).map_err(refused)?;
    let options = args.source.confine([&args.data])?;
    let when = args.source.progress.when();
    let reporter = Reporter::new(when, Some(1));
    reporter.begin(&args.data);
    let made = Data::open(&args.data, &options, &args.source).and_then(|data| {
        if let Some(output) = &root_file {
            output.check_apart(data.image(), Some(hash_file.identity))?;
        }
        let made = make(data, &parameters, uuid, args, &hash_file, &reporter)?;
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
        Err(reason) => {
            fail(&args.data, &reason);
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

/// Returns the parameters of the data blocks.
pub fn parameters(tree: &DmTree, salt: Salt) -> Result<Parameters, String> {
    let algorithm = tree.hash.unwrap_or(Algorithm::Sha256);
    let block_size = tree.data_block_size.unwrap_or(BlockSize::PAGE);
    Parameters::new(algorithm, Construction::DmVerity, block_size)
        .and_then(|parameters| parameters.with_salt(salt))
        .map_err(|error| error.to_string())
}

/// Returns the layout of a tree in a file without a superblock.
pub fn bare_layout(tree: &DmTree, algorithm: Algorithm, blocks: u64) -> Result<Layout, String> {
    let offset = tree.hash_offset.unwrap_or(0);
    let block_size = tree.hash_block_size.unwrap_or(BlockSize::PAGE);
    if !offset.is_multiple_of(block_size.into()) {
        return Err(format!("--hash-offset {offset} is no multiple of the hash block size"));
    }
    Layout::new(algorithm, block_size, offset, blocks).ok_or_else(|| TOO_LARGE.to_owned())
}

/// What was made.
struct Made {
    superblock: Superblock,
    hash_blocks: u64,
    end: u64,
    root: Digest,
}

fn make(
    mut data: Data,
    parameters: &Parameters,
    uuid: [u8; 16],
    args: &Format,
    hash_file: &HashFile,
    reporter: &Reporter,
) -> Result<Made, String> {
    let size = data.size();
    let data_block = u64::from(parameters.block_size());
    let data_blocks = match args.tree.data_blocks {
        Some(blocks) => blocks,
        None => {
            parameters.check_length(size).map_err(|error| match size / data_block {
                0 => error.to_string(),
                whole => format!("{error}: --data-blocks {whole} leaves out the rest"),
            })?;
            size / data_block
        }
    };
    data.cut(data_blocks.checked_mul(data_block).ok_or("--data-blocks: too many")?)?;
    let offset = args.tree.hash_offset.unwrap_or(0);
    let superblock = Superblock {
        uuid,
        algorithm: parameters.algorithm(),
        data_block_size: args.tree.data_block_size.unwrap_or(BlockSize::PAGE),
        hash_block_size: args.tree.hash_block_size.unwrap_or(BlockSize::PAGE),
        data_blocks,
        salt: *parameters.salt(),
    };
    let layout = if args.tree.no_superblock {
        bare_layout(&args.tree, superblock.algorithm, data_blocks)?
    } else if offset.is_multiple_of(Superblock::SIZE as u64) {
        superblock.layout(offset).ok_or(TOO_LARGE)?
    } else {
        return Err(format!("--hash-offset {offset} is no multiple of {}", Superblock::SIZE));
    };
    let hash_name = shown(args.hash_file.as_os_str());
    let failed = |error: &io::Error| format!("{hash_name}: {}", messages::reason(error));
    let is_shared = hash_file.check_apart(&data, offset, superblock.data_length())?;
    hash_file.check_free(offset, layout.end()).map_err(|error| failed(&error))?;
    let target = if is_shared { hash_file.spare()? } else { &hash_file.file };
    let leaf = parameters.leaf(&Digester::new(parameters.algorithm()));
    let blocks = TreeFile::new(target, layout.clone());
    let mut tree = Tree::with_blocks(&leaf, superblock.hash_block_size, blocks);
    data.tree_digests(parameters, &mut tree, &hash_name, reporter)?;
    let root = tree.finish().and_then(|(root, mut blocks)| {
        blocks.flush()?;
        if is_shared {
            hash_file.copy_spare(layout.start(), layout.end())?;
        }
        if !args.tree.no_superblock {
            hash_file.file.write_all_at(&superblock.to_bytes(), offset)?;
            // A superblock alone fills a block, too.
            let filled = offset + superblock.hash_block_size.get().min(4096) as u64;
            if hash_file.is_regular && hash_file.file.metadata()?.len() < filled {
                hash_file.file.set_len(filled)?;
            }
        }
        Ok(root)
    });
    let root = root.map_err(|error| failed(&error))?;
    Ok(Made { superblock, hash_blocks: layout.blocks(), end: layout.end(), root })
}

/// The file that the hashes are written to.
struct HashFile {
    file: File,
    /// Takes the tree while the data is read, if both are in one file.
    spare: Option<File>,
    is_regular: bool,
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
        // Not every file system can do it, and it is rarely needed.
        let spare = File::options().read(true).write(true).custom_flags(TMPFILE).open(folder).ok();
        Ok(Self { file, spare, is_regular, identity: Identity::new(&metadata), is_free, leftover })
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

    /// Returns whether the file is that of the data, which is then raw and ends before the hashes. Refuses
    /// to write to any other file of the image.
    fn check_apart(&self, data: &Data, offset: u64, data_length: u64) -> Result<bool, String> {
        if !self.identity.is_in(data.image()) {
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

    /// Copies the tree from the spare file.
    fn copy_spare(&self, start: u64, end: u64) -> io::Result<()> {
        let Some(spare) = &self.spare else { return Ok(()) };
        let mut buffer = vec![0; 1 << 20];
        let mut offset = start;
        while offset < end {
            let part = &mut buffer[..((end - offset) as usize).min(1 << 20)];
            spare.read_exact_at(part, offset)?;
            self.file.write_all_at(part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
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
    let mut filled = 0;
    while filled < N {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)
            .map_err(|error| messages::reason(&error.into()))?;
    }
    Ok(bytes)
}

/// Returns a random UUID of version 4.
fn random_uuid() -> Result<[u8; 16], String> {
    let mut uuid: [u8; 16] = random()?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

fn print(made: &Made, args: &Format) -> io::Result<()> {
    let Made { superblock, hash_blocks, end, root } = made;
    let uuid = match args.tree.no_superblock {
        true => String::new(),
        false => uuid_text(&superblock.uuid),
    };
    let salt = superblock.salt.to_string();
    let text = if args.json {
        let mut object = json!({
            "root_hash": root.to_string(),
            "uuid": (!args.tree.no_superblock).then_some(uuid),
            "hash": superblock.algorithm.name(),
            "data_blocks": superblock.data_blocks,
            "data_block_size": superblock.data_block_size.get(),
            "hash_blocks": hash_blocks,
            "hash_block_size": superblock.hash_block_size.get(),
            "hash_offset": args.tree.hash_offset.unwrap_or(0),
            "hash_end": end,
            "salt": salt,
        });
        json::insert_name(&mut object, "name", &args.data);
        json::insert_name(&mut object, "hash_file", args.hash_file.as_os_str());
        json::text(&object) + "\n"
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
        // The spaces are those of veritysetup, which prints the size only without an offset.
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

fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

/// Length of a random salt in bytes, as in veritysetup.
const SALT: usize = 32;

const TMPFILE: i32 = OFlags::TMPFILE.bits() as i32;

const ROOT_FILE: &str = "--root-hash-file";

const ROOT_HASH: &str = "exists and is not empty: --force overwrites it";

const HASHES: &str = "exists, and new hashes have another root hash: --force overwrites it";

const OTHER_CONTENT: &str = "is not empty and not a hash file of dm-verity: --force overwrites it";

const TOO_LARGE: &str = "the hash tree would be too large";
