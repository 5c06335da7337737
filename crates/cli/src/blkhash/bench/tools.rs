//! Other programs compared with blksum: the same bytes, in memory and in a file, and the same values.
//!
//! Each run is a process of its own, from its start to its end, and programs take turns. Bytes in memory are standard
//! input (a file in memory), which a program reads. The file is named, so a program may map it or use several threads. It was
//! just written, so it is in the page cache. The best of several runs counts.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use blkbench::report::WIDTH;
use blkbench::text;
use blkhash::{Algorithm, Digester};

use crate::records::bench as records;
use crate::{json, messages};

/// Measurements of the tools.
pub struct Tools {
    rows: Vec<Row>,
    /// Path of the file, which is gone.
    path: PathBuf,
}

/// A program that computes a digest of a file or of standard input.
struct Tool {
    program: &'static str,
    args: &'static [&'static str],
    /// The digest, or the one of blksum that is closest.
    algorithm: Algorithm,
}

struct Row {
    tool: &'static Tool,
    /// Speeds of the program, or why it has none.
    theirs: Result<Speeds, Failure>,
    /// Speeds of blksum, if it is installed in the folder of this program.
    ours: Option<Speeds>,
}

/// MiB in a second, from memory and from a file.
type Speeds = [f64; 2];

/// The reason why a program failed, or `None` if it is not installed.
type Failure = Option<String>;

impl Tools {
    /// Runs the programs for `algorithms` that are installed.
    ///
    /// # Errors
    ///
    /// Fails if the data cannot be written.
    pub fn measure(algorithms: &[Algorithm]) -> io::Result<Self> {
        let content = content(SIZE);
        let mut memory = blksys::memory_file("blkhash bench")?;
        memory.write_all(&content)?;
        let mut file = tempfile::Builder::new().prefix("blkhash-bench-").tempfile()?;
        file.write_all(&content)?;
        let path = file.path().to_owned();
        let blksum = std::env::current_exe()?.with_file_name("blksum");
        let tools = TOOLS.iter().filter(|tool| algorithms.contains(&tool.algorithm));
        let rows = tools.map(|tool| Row::measure(tool, &content, &memory, &path, &blksum));
        Ok(Self { rows: rows.collect(), path })
    }

    /// Returns what went wrong, a line for each program with another value or an error.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter_map(|row| {
            let reason = row.theirs.as_ref().err()?.as_ref()?;
            Some(format!("{}: {reason}", row.tool.program))
        })
    }

    /// Returns a table, the fastest program first.
    pub fn text(&self) -> String {
        let heads = ["MiB/s", ">memory", ">file", "blksum -d", ">memory", ">file"];
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        let speed = |row: &Row| row.theirs.as_ref().map_or(0.0, |[memory, _]| *memory);
        rows.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
        let cells = |name: String, speeds: Option<&Speeds>| {
            let cell = |at: usize| speeds.map_or("-".to_owned(), |it| format!("{:.0}", it[at]));
            [name, cell(0), cell(1)]
        };
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| {
                let note = match &row.theirs {
                    Ok(_) => "",
                    Err(None) => " (not installed)",
                    Err(Some(_)) => " (failed)",
                };
                let theirs = cells(row.tool.name() + note, row.theirs.as_ref().ok());
                let ours = cells(row.tool.algorithm.name().to_owned(), row.ours.as_ref());
                [theirs, ours].concat()
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let notes = format!(
            "Programs with {} of data, the best of {ROUNDS} runs. memory: standard input, read from \
             memory. file: {}, which is in the page cache. blksum: --construction linear, whose \
             values are the same.",
            text::size(SIZE as u64),
            crate::quote::printable(&self.path.to_string_lossy()),
        );
        format!("\n{}\n\n{}", text::wrapped(&notes, 0, WIDTH), text::table(&heads, &rows))
    }

    /// Returns an object for each program.
    pub fn json(&self) -> String {
        let line = |row: &Row| {
            json::line(&records::Tool {
                kind: "tool",
                tool: row.tool.name(),
                algorithm: row.tool.algorithm.name(),
                installed: !matches!(row.theirs, Err(None)),
                error: row.theirs.as_ref().err().and_then(Option::as_deref),
                memory_mib_per_second: row.theirs.as_ref().ok().map(|it| it[0]),
                file_mib_per_second: row.theirs.as_ref().ok().map(|it| it[1]),
                blksum_memory_mib_per_second: row.ours.map(|it| it[0]),
                blksum_file_mib_per_second: row.ours.map(|it| it[1]),
            })
        };
        self.rows.iter().map(line).collect()
    }
}

impl Tool {
    fn name(&self) -> String {
        [&[self.program], self.args].concat().join(" ")
    }

    /// Returns the value that the program must print.
    fn value(&self, content: &[u8]) -> String {
        match self.program {
            "cksum" => cksum(content).to_string(),
            _ => Digester::new(self.algorithm).digest(content).to_string(),
        }
    }
}

impl Row {
    fn measure(
        tool: &'static Tool,
        content: &[u8],
        memory_file: &File,
        path: &Path,
        blksum: &Path,
    ) -> Self {
        let theirs = tool.value(content);
        let ours = Digester::new(tool.algorithm).digest(content).to_string();
        let options = ["-q", "-f", "raw", "--construction", "linear", "-d", tool.algorithm.name()];
        let mut row = Self { tool, theirs: Ok([0.0; 2]), ours: None };
        for _ in 0..ROUNDS {
            let best = |[memory, file]: Speeds, program: &Path, args: &[&str], value: &str| {
                Ok([
                    run(program, args, Input::Memory(memory_file), value)?.max(memory),
                    run(program, args, Input::File(path), value)?.max(file),
                ])
            };
            let before = row.theirs.unwrap_or_default();
            row.theirs = best(before, Path::new(tool.program), tool.args, &theirs);
            if row.theirs.is_err() {
                break;
            }
            match best(row.ours.unwrap_or_default(), blksum, &options, &ours) {
                Ok(speeds) => row.ours = Some(speeds),
                Err(None) => {}
                Err(Some(reason)) => {
                    row.theirs = Err(Some(format!("blksum: {reason}")));
                    break;
                }
            }
        }
        row
    }
}

#[derive(Clone, Copy)]
enum Input<'a> {
    Memory(&'a File),
    File(&'a Path),
}

/// Runs a program. Returns the MiB in a second, if it prints `value`.
fn run(program: &Path, args: &[&str], input: Input<'_>, value: &str) -> Result<f64, Failure> {
    let failure =
        |error: io::Error| (error.kind() != ErrorKind::NotFound).then(|| messages::reason(&error));
    let mut command = Command::new(program);
    command.args(args).stderr(Stdio::piped()).stdout(Stdio::piped()).env("LC_ALL", "C");
    match input {
        Input::Memory(mut memory) => {
            memory.rewind().map_err(failure)?;
            command.stdin(memory.try_clone().map_err(failure)?);
        }
        Input::File(path) => {
            command.stdin(Stdio::null()).arg(path);
        }
    }
    let started = Instant::now();
    let output = command.output().map_err(failure)?;
    let seconds = started.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Some(format!("{}: {}", output.status, first_line(&message))));
    }
    if !text.split_whitespace().any(|word| word == value) {
        return Err(Some(format!("gives \"{}\", not {value}", first_line(&text))));
    }
    Ok(SIZE as f64 / MIB / seconds)
}

/// Returns the beginning of a text that another program printed.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    crate::quote::printable(&line.chars().take(MAX_LINE).collect::<String>())
}

/// Returns data without a block of zeros. `size` is a multiple of 8.
pub fn content(size: usize) -> Vec<u8> {
    let words = 0..size as u64 / 8;
    words.flat_map(|word| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes()).collect()
}

/// Returns the CRC of POSIX, which blksum does not offer.
fn cksum(content: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        let shift = |crc: u32, _| (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
        *entry = (0..8).fold((index as u32) << 24, shift);
    }
    let step = |crc: u32, byte: u8| (crc << 8) ^ table[usize::from((crc >> 24) as u8 ^ byte)];
    let crc = content.iter().fold(0, |crc, byte| step(crc, *byte));
    let length = (content.len() as u64).to_le_bytes();
    let used = length.len() - length.iter().rev().take_while(|byte| **byte == 0).count();
    !length[..used].iter().fold(crc, |crc, byte| step(crc, *byte))
}

/// The programs that articles compare.
const TOOLS: &[Tool] = &[
    Tool { program: "sha256sum", args: &[], algorithm: Algorithm::Sha256 },
    Tool { program: "openssl", args: &["dgst", "-sha256"], algorithm: Algorithm::Sha256 },
    Tool { program: "sha1sum", args: &[], algorithm: Algorithm::Sha1 },
    Tool { program: "md5sum", args: &[], algorithm: Algorithm::Md5 },
    Tool { program: "b2sum", args: &[], algorithm: Algorithm::Blake2b512 },
    Tool { program: "b3sum", args: &[], algorithm: Algorithm::Blake3 },
    // Its CRC is another one.
    Tool { program: "cksum", args: &[], algorithm: Algorithm::Crc32 },
    Tool { program: "xxhsum", args: &["-H1"], algorithm: Algorithm::Xxh64 },
];

/// Bytes of data: enough that the start of a process hardly counts.
const SIZE: usize = 32 << 20;

/// Number of runs of each program.
const ROUNDS: usize = 3;

/// Characters of the output of a program in a message.
const MAX_LINE: usize = 200;

const MIB: f64 = (1 << 20) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_posix() {
        // From `printf 123456789 | cksum` and `cksum < /dev/null`.
        assert_eq!(cksum(b"123456789"), 930_766_865);
        assert_eq!(cksum(b""), 4_294_967_295);
    }

    #[test]
    fn another_value_is_a_failure() {
        let mut memory = blksys::memory_file("test").unwrap();
        memory.write_all(b"123456789").unwrap();
        let cat = |value| run(Path::new("cat"), &[], Input::Memory(&memory), value);
        assert!(cat("123456789").is_ok());
        assert_eq!(cat("5"), Err(Some("gives \"123456789\", not 5".to_owned())));
        let run = |program| run(Path::new(program), &[], Input::Memory(&memory), "5");
        assert_eq!(run("no-such-program"), Err(None));
        assert!(run("false").unwrap_err().unwrap().starts_with("exit status: 1"));
    }
}
