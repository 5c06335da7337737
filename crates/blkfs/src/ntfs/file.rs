//! What a file of the MFT owns, and its names.

use std::collections::HashMap;

use super::attribute::{
    Attribute, Body, FileName, NonResident, attributes, is_name, kind, push_utf8,
};
use super::index::{DIRECTORY, entries_of_root, root_defect};
use super::mft::number;
use super::record::{Header, Reference};
use super::state::is_directory;
use super::walk::Walk;
use crate::visitor::{Entry, EntryKind, ObjectId, Owner, Problem, ProblemKind};

/// A file whose attributes are looked at.
struct File<'a> {
    number: u64,
    sequence: u16,
    /// Numbers of the streams that were found, by name in UTF-16.
    streams: HashMap<&'a [u8], u64>,
    /// Whether attributes may be in several records, so that parts of a stream have to be found by its name.
    has_list: bool,
    stream_count: u64,
    /// The short name, as long as there is no other one.
    short: Option<FileName<'a>>,
    has_name: bool,
    /// Whether it is the journal of changes.
    is_change_journal: bool,
    has_index: bool,
    /// Whether a part is known to be damaged, so that other defects are no news.
    is_torn: bool,
}

impl Walk<'_> {
    /// Reports a file, whose first record is given.
    pub fn file(&mut self, number: u64, first: &[u8], is_torn: bool) {
        let has_list = attributes(first)
            .map_while(Result::ok)
            .take_while(|it| it.kind <= kind::ATTRIBUTE_LIST)
            .any(|it| it.kind == kind::ATTRIBUTE_LIST);
        if !has_list {
            self.records(number, &[first], false, is_torn);
            return;
        }
        let found = self.disk.records_of(number, first, &mut self.budget);
        if let Some(reason) = &found.problem
            && self.state.is_clean()
            && !is_torn
        {
            let reason = format!("the attribute list has {reason}");
            self.damaged("MFT record", self.mft_offset(number), Some(number), &reason);
        }
        self.records(number, &found.slices(), true, is_torn);
    }

    fn records(&mut self, number: u64, records: &[&[u8]], has_list: bool, is_torn: bool) {
        let mut file = File {
            number,
            sequence: records.first().and_then(|it| Header::parse(it)).map_or(0, |it| it.sequence),
            streams: HashMap::new(),
            has_list,
            stream_count: 0,
            short: None,
            has_name: false,
            is_change_journal: false,
            has_index: false,
            is_torn,
        };
        for attribute in records.iter().flat_map(|record| attributes(record)) {
            match attribute {
                Ok(attribute) => self.attribute(&mut file, &attribute),
                Err(reason) => self.bad_attribute(&file, reason),
            }
        }
        if let Some(short) = file.short
            && !file.has_name
        {
            self.name(&file, &short);
        }
        if self.wanted.checks && file.has_index {
            self.check_indexes(number, records, is_torn);
        }
    }

    fn attribute<'a>(&mut self, file: &mut File<'a>, attribute: &Attribute<'a>) {
        let Attribute { kind, name, body } = *attribute;
        match (kind, body) {
            (kind::FILE_NAME, Body::Resident(value)) => match FileName::parse(value) {
                Some(name) => self.file_name(file, name),
                None => self.bad_attribute(file, "an impossible name"),
            },
            (kind::DATA, Body::Resident(_)) if !name.is_empty() => {
                self.stream(file, name, true);
            }
            (kind::INDEX_ROOT, Body::Resident(root)) => self.root(file, root, name == DIRECTORY),
            (kind::INDEX_ALLOCATION, Body::NonResident(part)) => {
                file.has_index = true;
                self.runs(file, attribute, &part);
            }
            (_, Body::NonResident(part)) => self.runs(file, attribute, &part),
            _ => {}
        }
    }

    fn file_name<'a>(&mut self, file: &mut File<'a>, name: FileName<'a>) {
        file.is_change_journal |=
            name.parent.number == number::EXTEND && is_name(name.name, "$UsnJrnl");
        if let Some(balance) = &mut self.balance {
            balance.add(Reference { number: file.number, sequence: file.sequence }, &name);
        }
        if name.is_short() {
            file.short = Some(name);
        } else {
            file.has_name = true;
            self.name(file, &name);
        }
    }

    /// Verifies the root of an index.
    fn root(&mut self, file: &File<'_>, root: &[u8], is_directory: bool) {
        if !self.wanted.checks {
            return;
        }
        match root_defect(root, is_directory) {
            Some(reason) => self.bad_attribute(file, &format!("an index root with {reason}")),
            None if is_directory => self.names_in_index(file.number, entries_of_root(root)),
            None => {}
        }
    }

    fn name(&mut self, file: &File<'_>, name: &FileName<'_>) {
        let (parent, object) = (name.parent.number, file.number);
        // The top directory is in itself.
        if self.wanted.names && object != number::ROOT {
            self.entry(parent, object, name.name, EntryKind::Child);
        }
    }

    fn entry(&mut self, parent: ObjectId, object: ObjectId, name: &[u8], kind: EntryKind) {
        self.text.clear();
        push_utf8(name, &mut self.text);
        self.visitor.entry(Entry { parent, object, name: &self.text, kind });
    }

    /// Returns the number of a stream, and reports its name the first time.
    fn stream<'a>(
        &mut self,
        file: &mut File<'a>,
        name: &'a [u8],
        is_first: bool,
    ) -> Option<ObjectId> {
        if let Some(known) = file.streams.get(name) {
            return Some(*known);
        }
        let count = file.stream_count + 1;
        if count > MAX_STREAMS {
            // Says it once.
            if count == MAX_STREAMS + 1 {
                file.stream_count += 1;
                let (kind, reason) = (ProblemKind::Skipped, "too many streams".to_owned());
                let (offset, object) = (self.mft_offset(file.number), Some(file.number));
                let structure = "MFT record";
                self.problem(Problem { kind, structure, offset, object, reason });
            }
            return None;
        }
        let object = file.number | count << 48;
        file.stream_count = count;
        if file.has_list || !is_first {
            file.streams.insert(name, object);
        }
        if self.wanted.names {
            self.entry(file.number, object, name, EntryKind::Stream);
        }
        Some(object)
    }

    /// Reports the clusters of an attribute, or of a part of it.
    fn runs<'a>(&mut self, file: &mut File<'a>, attribute: &Attribute<'a>, part: &NonResident<'_>) {
        let Some(use_) = self.use_of(file, attribute, part) else { return };
        let boot = &self.disk.boot;
        for run in part.runs(boot.clusters) {
            match run {
                Ok(run) => {
                    let Some(lcn) = run.lcn else { continue };
                    let owner = match use_ {
                        Use::Content(object) => {
                            let offset = run.vcn.saturating_mul(boot.cluster);
                            Owner::File { object, offset }
                        }
                        Use::Other(owner) => owner,
                    };
                    if self.wanted.extents {
                        self.extent(lcn * boot.cluster, run.length * boot.cluster, owner);
                    }
                }
                Err(reason) => self.bad_attribute(file, reason),
            }
        }
    }

    /// Returns what the clusters of an attribute are used for. `None` if they are reported elsewhere.
    fn use_of<'a>(
        &mut self,
        file: &mut File<'a>,
        attribute: &Attribute<'a>,
        part: &NonResident<'_>,
    ) -> Option<Use> {
        let Attribute { kind, name, .. } = *attribute;
        let number = file.number;
        let structure = |structure| Use::structure(structure, number);
        Some(match kind {
            kind::DATA => {
                let object = match name {
                    [] => number,
                    _ => self.stream(file, name, part.lowest == 0).unwrap_or(number),
                };
                match number {
                    number::MFT if name.is_empty() => return None,
                    number::LOG_FILE => Use::Other(Owner::Journal),
                    _ => match system_file(number) {
                        Some(structure) => Use::structure(structure, object),
                        None if file.is_change_journal => Use::structure("change journal", object),
                        None => Use::Content(object),
                    },
                }
            }
            kind::INDEX_ALLOCATION if is_directory(name) => {
                Use::Other(Owner::Directory { object: number })
            }
            kind::INDEX_ALLOCATION if number == number::SECURE => structure("security descriptors"),
            kind::INDEX_ALLOCATION => structure("index"),
            kind::BITMAP if number == number::MFT => structure("MFT bitmap"),
            kind::BITMAP => structure("index bitmap"),
            kind::ATTRIBUTE_LIST => structure("attribute list"),
            kind::SECURITY_DESCRIPTOR => structure("security descriptors"),
            kind::REPARSE_POINT => structure("reparse point"),
            kind::EA => structure("extended attributes"),
            kind::LOGGED_UTILITY_STREAM => structure("logged utility stream"),
            _ => structure("attribute"),
        })
    }

    fn bad_attribute(&mut self, file: &File<'_>, reason: &str) {
        if !file.is_torn {
            let number = file.number;
            self.damaged("MFT record", self.mft_offset(number), Some(number), reason);
        }
    }
}

/// The use of clusters.
#[derive(Clone, Copy)]
enum Use {
    /// Content of a file or stream.
    Content(ObjectId),
    /// Anything else.
    Other(Owner),
}

impl Use {
    fn structure(structure: &'static str, object: ObjectId) -> Self {
        Self::Other(Owner::Metadata { structure, object: Some(object) })
    }
}

/// Returns the name of the content of the file system's own files.
fn system_file(number: u64) -> Option<&'static str> {
    Some(match number {
        number::MFT => "MFT",
        number::MIRROR => "MFT mirror",
        number::VOLUME => "volume information",
        number::ATTRIBUTE_DEFINITIONS => "attribute definitions",
        number::ROOT => "root directory",
        number::BITMAP => "bitmap",
        number::BOOT => "boot file",
        number::BAD_CLUSTERS => "bad clusters",
        number::SECURE => "security descriptors",
        number::UPCASE => "upcase table",
        _ => return None,
    })
}

/// Maximum number of streams of a file that have a number of their own.
/// Limit in streams.
const MAX_STREAMS: u64 = (1 << 16) - 1;
