//! The values of options.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use blkhash::{Algorithm, BlockSize, Construction, Parameters, Salt};
use blkimage::{OpenOption, OpenOptions, OptionKind, OptionValue, Secret};
use blkmap::{Header, Key};
use blksum::expect::{Limits, Search};
use blksum::{Part, Tuning};

use crate::failure::{Failure, Kind};

/// The value of `struct blksum_opts`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The options for opening images that are set.
    open: Vec<(OpenOption, OptionValue)>,
    partition: Option<u32>,
    offset: Option<u64>,
    length: Option<u64>,
    digest: Option<Algorithm>,
    construction: Option<Construction>,
    block_size: Option<BlockSize>,
    salt: Salt,
    key: Option<Key>,
    threads: Option<usize>,
    limit: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            partition: None,
            offset: None,
            length: None,
            digest: None,
            construction: None,
            block_size: None,
            salt: Salt::EMPTY,
            key: None,
            threads: None,
            limit: None,
        }
    }
}

impl Settings {
    /// Sets an option to a word. `None` is the default.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Failure> {
        if let Some(option) = OpenOption::find(name) {
            let value = match (value, option.kind()) {
                (None, _) => {
                    self.open.retain(|(set, _)| *set != option);
                    return Ok(());
                }
                (Some(_), OptionKind::Secret) => return Err(is_bytes(name)),
                (Some(value), OptionKind::File | OptionKind::Folder | OptionKind::Program) => {
                    OptionValue::Path(value.into())
                }
                (Some(value), OptionKind::Flag | OptionKind::Size | OptionKind::Seconds) => {
                    return self.set_number(name, number(name, value)?);
                }
                (
                    Some(value),
                    OptionKind::Format { .. } | OptionKind::Words(_) | OptionKind::Text,
                ) => OptionValue::Text(value.to_owned()),
            };
            return self.set_open(option, value);
        }
        match name {
            "digest" => self.digest = optional(name, value)?,
            "construction" => self.construction = optional(name, value)?,
            "salt" | "key" => match value {
                None if name == "salt" => self.salt = Salt::EMPTY,
                None => self.key = None,
                Some(_) => return Err(is_bytes(name)),
            },
            _ => match (value, name) {
                (Some(value), name) if NUMBERS.contains(&name) => {
                    return self.set_number(name, number(name, value)?);
                }
                (None, "partition") => self.partition = None,
                (None, "offset") => self.offset = None,
                (None, "length") => self.length = None,
                (None, "block-size") => self.block_size = None,
                (None, "threads") => self.threads = None,
                (None, "limit") => self.limit = None,
                _ => return Err(unknown(name)),
            },
        }
        Ok(())
    }

    /// Sets an option to a number.
    pub(crate) fn set_number(&mut self, name: &str, value: u64) -> Result<(), Failure> {
        let size = || usize::try_from(value).map_err(|error| refused(name, error));
        if let Some(option) = OpenOption::find(name) {
            let value = match option.kind() {
                OptionKind::Size => OptionValue::Size(value),
                OptionKind::Seconds => OptionValue::Duration(Duration::from_secs(value)),
                OptionKind::Flag if value <= 1 => OptionValue::Flag(value == 1),
                OptionKind::Flag => return Err(refused(name, "must be 0 or 1")),
                OptionKind::Format { .. }
                | OptionKind::Words(_)
                | OptionKind::Text
                | OptionKind::File
                | OptionKind::Folder
                | OptionKind::Program
                | OptionKind::Secret => return Err(refused(name, "is no number")),
            };
            return self.set_open(option, value);
        }
        match name {
            "partition" => {
                self.partition = Some(u32::try_from(value).map_err(|error| refused(name, error))?);
            }
            "offset" => self.offset = Some(value),
            "length" => self.length = Some(value),
            "block-size" => {
                let size = BlockSize::try_from(value).map_err(|error| refused(name, error))?;
                self.block_size = Some(size);
            }
            "threads" if (1..=MAX_THREADS).contains(&value) => self.threads = Some(size()?),
            "threads" => return Err(refused(name, format!("must be from 1 to {MAX_THREADS}"))),
            "limit" => self.limit = Some(size()?),
            _ if OTHERS.contains(&name) => return Err(refused(name, "is no number")),
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Sets an option to bytes.
    pub(crate) fn set_bytes(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        match (name, OpenOption::find(name)) {
            ("salt", _) => {
                self.salt = Salt::try_from(value).map_err(|error| refused(name, error))?;
            }
            ("key", _) => {
                let key = Key::new(value.to_vec());
                let message = format!("must have {} to {} bytes", Key::MIN, Key::MAX);
                self.key = Some(key.ok_or_else(|| refused(name, message))?);
            }
            (_, Some(option)) if option.kind() == OptionKind::Secret => {
                return self.set_open(option, OptionValue::Secret(Secret::new(value)));
            }
            _ => return Err(refused(name, "is not set to bytes")),
        }
        Ok(())
    }

    fn set_open(&mut self, option: OpenOption, value: OptionValue) -> Result<(), Failure> {
        let checked = OpenOptions::new().set(option, value.clone());
        checked.map_err(|reason| refused(option.name(), reason))?;
        self.open.retain(|(set, _)| *set != option);
        self.open.push((option, value));
        Ok(())
    }

    /// Returns the options for opening images.
    pub(crate) fn open(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        for (option, value) in &self.open {
            // Setting it once has shown that this succeeds.
            let _ = options.set(*option, value.clone());
        }
        options
    }

    /// Returns the part of an image.
    pub(crate) fn part(&self) -> Result<Option<Part>, Failure> {
        match (self.partition, self.offset, self.length) {
            (None, None, None) => Ok(None),
            (Some(number), None, None) => Ok(Some(Part::Partition(number))),
            (None, offset, length) => Ok(Some(Part::Range { offset: offset.unwrap_or(0), length })),
            _ => Err(Failure::argument("partition cannot be used with offset and length")),
        }
    }

    /// Returns what determines the value of a checksum.
    pub(crate) fn parameters(&self) -> Result<Parameters, Failure> {
        let default = Parameters::default();
        let construction = self.construction.unwrap_or(default.construction());
        let block_size = self.block_size.unwrap_or(construction.default_block_size());
        Parameters::new(self.digest.unwrap_or(default.algorithm()), construction, block_size)
            .and_then(|parameters| parameters.with_salt(self.salt))
            .map_err(|error| Failure::argument(error.to_string()))
    }

    /// Returns what is tried for a value.
    pub(crate) fn search(&self) -> Search {
        let algorithms = self.digest.into_iter().collect();
        let (construction, block_size) = (self.construction, self.block_size);
        Search { algorithms, construction, block_size, limits: Limits::NONE }
    }

    /// Returns the size of the blocks of a comparison.
    pub(crate) fn block_size(&self) -> BlockSize {
        self.block_size.unwrap_or_default()
    }

    /// Returns the header of a map.
    pub(crate) fn header(&self) -> Result<Header, Failure> {
        let algorithm = self.digest.unwrap_or(Parameters::default().algorithm());
        if !Header::accepts(algorithm) {
            return Err(Failure::argument(format!("there are no maps with digest {algorithm}")));
        }
        Header::new(algorithm, self.block_size(), self.salt)
            .map_err(|error| Failure::new(Kind::Other, error.to_string()))
    }

    /// Returns the key that seals maps.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Returns the maximum number of extents that differ: a small map can claim very many.
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    /// Returns the settings of a verification of file systems.
    pub(crate) fn btrfs(&self) -> blkbtrfs::Options {
        let limit = self.limit.map_or(DEFAULT_FINDINGS, |limit| limit as u64);
        let options = blkbtrfs::Options::default().with_max_findings(Some(limit));
        match self.threads {
            Some(threads) => options.with_threads(threads),
            None => options,
        }
    }

    /// Returns the settings of a check.
    pub(crate) fn check(&self) -> blkcheck::Options {
        let limit = self.limit.map_or(DEFAULT_FINDINGS, |limit| limit as u64);
        let options = blkcheck::Options::default().with_max_findings(Some(limit));
        match self.threads {
            Some(threads) => options.with_threads(threads),
            None => options,
        }
    }

    /// Returns the settings of a pass.
    pub(crate) fn tuning(&self) -> Tuning {
        let tuning = Tuning::default().with_max_zeros(self.open().max_zeros);
        match self.threads {
            Some(threads) => tuning.with_threads(threads),
            None => tuning,
        }
    }
}

fn optional<T: FromStr<Err: Display>>(
    name: &str,
    value: Option<&str>,
) -> Result<Option<T>, Failure> {
    value.map(str::parse).transpose().map_err(|error| refused(name, error))
}

fn number(name: &str, value: &str) -> Result<u64, Failure> {
    let is_decimal = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = if is_decimal { value.parse().ok() } else { None };
    parsed.ok_or_else(|| refused(name, "is no number in decimal"))
}

fn refused(name: &str, why: impl Display) -> Failure {
    Failure::argument(format!("{name}: {why:#}"))
}

fn is_bytes(name: &str) -> Failure {
    Failure::argument(format!("{name} is set with blksum_opts_set_bytes()"))
}

fn unknown(name: &str) -> Failure {
    Failure::argument(format!("there is no option '{}'", name.escape_debug()))
}

/// Options of work that are numbers.
const NUMBERS: [&str; 6] = ["partition", "offset", "length", "block-size", "threads", "limit"];

/// Options of work that are not.
const OTHERS: [&str; 4] = ["digest", "construction", "salt", "key"];

/// Default maximum number of extents that differ, which take 8 MiB. A small map can claim very
/// many.
/// Limit in extents.
const DEFAULT_LIMIT: usize = 1 << 18;

/// Default maximum number of findings that are kept, each of which has names of files.
/// Limit in findings.
const DEFAULT_FINDINGS: u64 = 100;

const MAX_THREADS: u64 = 1024;
