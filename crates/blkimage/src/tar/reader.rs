//! Reads the headers of an archive.

use super::entry::{Entry, Node};
use super::extended::Extended;
use super::header::{BLOCK, Header, Kind, NAME, TYPE, decimal, is_zero, number};
use super::sparse::{MAX_PARTS, Pairs, Records, Sparse, pairs};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// Reads the headers of an archive one after another.
pub(crate) struct Reader<'a> {
    file: &'a HostFile,
    at: u64,
    headers: u32,
    max_headers: u32,
    /// Whether container runtimes read the archive, which are written in Go.
    is_for_runtimes: bool,
    /// Whether the padding of the last member must be there.
    needs_padding: bool,
    reads_sparse: bool,
    /// Number of parts of files with holes in what was read.
    parts: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader that fails at an archive of more than `max_headers` headers.
    pub fn new(file: &'a HostFile, max_headers: u32) -> Self {
        Self {
            file,
            at: 0,
            headers: 0,
            max_headers,
            is_for_runtimes: false,
            needs_padding: true,
            reads_sparse: false,
            parts: 0,
        }
    }

    /// Continues after a member, after `headers` headers.
    #[cfg(feature = "compressed")]
    pub fn behind(self, entry: &Entry, headers: u32) -> Self {
        let at = entry.offset + entry.size.next_multiple_of(BLOCK);
        Self { at, headers, ..self }
    }

    /// Accepts files with holes, as GNU tar writes them.
    pub fn with_sparse(self) -> Self {
        Self { reads_sparse: true, ..self }
    }

    /// Refuses what the tar reader of Go refuses, too, and what container runtimes read differently. Returns global headers
    /// like members.
    pub fn for_runtimes(self) -> Self {
        Self { is_for_runtimes: true, ..self }
    }

    /// Accepts an archive that ends with the content of its last member, as those that programs in Go do not finish.
    #[cfg(feature = "oci")]
    pub fn without_padding(self) -> Self {
        Self { needs_padding: false, ..self }
    }

    /// Returns the number of headers that were read.
    #[cfg(feature = "compressed")]
    pub fn headers(&self) -> u32 {
        self.headers
    }

    /// Returns the next member, or `None` at the end.
    pub fn entry(&mut self) -> Result<Option<Entry>> {
        let mut extended = Extended::default();
        loop {
            let start = self.at;
            let Some(block) = self.block()? else {
                return match extended.is_empty() {
                    true => Ok(None),
                    false => {
                        Err(self.file.corrupt("lacks the member of its last header").at(start))
                    }
                };
            };
            let header = Header(&block);
            if !header.is_valid() {
                return Err(self.file.corrupt("is not a header of a tar archive").at(start));
            }
            if self.is_for_runtimes && !header.has_valid_numbers() {
                return Err(self.file.corrupt("has no valid number in a tar header").at(start));
            }
            let kind = header.kind();
            let size = match (kind, extended.size) {
                (Kind::File | Kind::Folder, Some(size)) => header.size().and(Some(size)),
                (Kind::Other, _) => Some(0),
                _ => header.size(),
            };
            let mut old_map = None;
            if kind == Kind::Sparse && self.reads_sparse && size.is_some() {
                old_map = Some(self.map_in_header(&block)?);
            }
            let content = self.at;
            let next = size
                .and_then(|size| size.checked_next_multiple_of(BLOCK))
                .and_then(|size| content.checked_add(size));
            let (Some(size), Some(next)) = (size, next) else {
                return Err(self.file.corrupt("has no valid size in a tar header").at(start));
            };
            let is_last = !self.needs_padding && content + size <= self.file.size();
            let next = if is_last { next.min(self.file.size()) } else { next };
            if next > self.file.size() {
                let reason = "member lies past the end of the file, which was probably cut off";
                return Err(self.file.corrupt(reason).at(start));
            }
            self.at = next;
            match kind {
                Kind::Sparse if old_map.is_none() => {
                    return Err(self.unsupported(SPARSE, start));
                }
                Kind::File | Kind::Folder | Kind::Other | Kind::Sparse => {
                    let records = std::mem::take(&mut extended.sparse);
                    let has_records = extended.has_records;
                    let mut entry = self.member(&header, extended, content, size)?;
                    match old_map {
                        Some(map) if header.is_gnu() && !has_records => {
                            self.add_old_map(&mut entry, map)?;
                        }
                        None if records.is_empty() => {}
                        None if header.is_pax() => self.add_map(&mut entry, &records)?,
                        Some(_) | None => return Err(self.odd_map(&entry, start)),
                    }
                    return Ok(Some(entry));
                }
                Kind::Global => {
                    self.check_global(&extended, content, size)?;
                    if self.is_for_runtimes {
                        let name = self.name(&header, Extended::default(), start)?;
                        let node = Node::Global;
                        let (target, sparse) = (None, None);
                        let entry = Entry { name, offset: content, size, node, target, sparse };
                        return Ok(Some(entry));
                    }
                }
                Kind::LongName | Kind::LongLink | Kind::Pax => {
                    let text = self.text(content, size)?;
                    if let Err(reason) = self.extend(&mut extended, kind, &text, size as usize) {
                        return Err(self.unsupported(reason, start));
                    }
                }
            }
        }
    }

    /// Takes over the text of a header before a member, whose first `size` bytes it is. Fails with the reason if it is not read.
    fn extend(
        &self,
        extended: &mut Extended,
        kind: Kind,
        text: &[u8],
        size: usize,
    ) -> Result<(), &'static str> {
        match kind {
            Kind::LongName => return extended.set_long_name(text),
            Kind::LongLink => extended.set_long_link(text),
            _ => {
                if std::mem::replace(&mut extended.has_records, true) {
                    return Err("several PAX headers of one member");
                }
                let added = extended.add(text, size);
                if !extended.sparse.is_empty() && !self.reads_sparse {
                    return Err(SPARSE);
                }
                added?;
                if self.is_for_runtimes && extended.is_overlay {
                    return Err("attributes of an overlay");
                }
            }
        }
        Ok(())
    }

    /// Fails if the records about all members at `content` change what follows. `extended` is what other headers before say
    /// about the next member.
    fn check_global(&self, extended: &Extended, content: u64, size: u64) -> Result<()> {
        let start = content - BLOCK;
        // Go drops it.
        if !extended.is_empty() {
            let what = "a global header between the headers of a member";
            return Err(self.unsupported(what, start));
        }
        let mut global = Extended::default();
        let reason = global.add(&self.text(content, size)?, size as usize).err();
        let reason = reason.or((!global.sparse.is_empty()).then_some(SPARSE));
        let names_members = global.path.is_some() || global.size.is_some();
        match reason.or(names_members.then_some("names or sizes for all members")) {
            Some(reason) => Err(self.unsupported(reason, start)),
            None => Ok(()),
        }
    }

    /// Returns the member of a header, of which the headers before it say `extended`.
    fn member(
        &self,
        header: &Header<'_>,
        extended: Extended,
        offset: u64,
        size: u64,
    ) -> Result<Entry> {
        let start = offset - BLOCK;
        let target = extended.target(header);
        let stated = extended.size;
        let name = self.name(header, extended, start)?;
        // As in archives of V7, where folders have no type.
        let is_folder = name.ends_with(b"/") || header.is_folder_of_v7();
        let node = match (header.kind(), header.0[TYPE]) {
            // Container runtimes fail.
            (Kind::File, kind @ b'7') if self.is_for_runtimes => Node::Unknown(kind),
            (Kind::Other, kind @ (b'1' | b'2' | b'3' | b'4' | b'6')) => Node::Special(kind),
            (Kind::Other, kind) => Node::Unknown(kind),
            (Kind::File | Kind::Sparse, _) if !is_folder => Node::File,
            _ => Node::Folder,
        };
        let corrupt = |what: &str| {
            let reason = format!("has the member \"{}\", {what}", excerpt(&name));
            self.file.corrupt(reason).at(start)
        };
        // A folder in GNU tar, and an empty file in Go.
        let is_odd = header.kind() == Kind::File && !header.is_folder_in_go(&name);
        if self.is_for_runtimes && node == Node::Folder && is_odd {
            return Err(corrupt("a file with the name of a folder"));
        }
        // GNU tar skips what follows a symbolic link or a device of some size, and other programs do not. All skip nothing of a
        // hard link, whose header may have a size.
        let has_size = match node {
            Node::Special(b'1') => stated.is_some_and(|size| size > 0),
            Node::Special(_) => stated.is_some_and(|size| size > 0) || header.size() != Some(0),
            _ => false,
        };
        if has_size {
            return Err(corrupt("which is no file and has a size"));
        }
        // GNU tar skips the content of a folder, and other programs do not.
        if node == Node::Folder && (size > 0 || header.size() != Some(0)) {
            return Err(corrupt("which is no file and has a size"));
        }
        Ok(Entry { name, offset, size, node, target, sparse: None })
    }

    /// Returns the name of a member, whose header is at `start`.
    fn name(&self, header: &Header<'_>, extended: Extended, start: u64) -> Result<Vec<u8>> {
        let name = match (extended.path, extended.long_name) {
            (Some(_), Some(_)) => return Err(self.unsupported("members with two names", start)),
            (Some(name), None) | (None, Some(name)) => name,
            // GNU tar and Go take the bytes of such a prefix for something else, Python's tarfile for a part of
            // the name.
            (None, None) => header.name().ok_or_else(|| {
                let name = excerpt(header.text(NAME));
                let reason = format!(
                    "has a prefix of the name \"{name}\" in a tar header that is not ustar, which programs read \
                     differently"
                );
                self.file.error(ErrorKind::Unsupported, reason).at(start)
            })?,
        };
        self.check_name(&name, start)?;
        Ok(name)
    }

    /// Fails if no file can have the name of a member, whose header is at `start`.
    fn check_name(&self, name: &[u8], start: u64) -> Result<()> {
        if name.len() > MAX_NAME || name.contains(&0) {
            let reason =
                format!("has a member whose name is longer than {MAX_NAME} bytes or holds a NUL");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(start));
        }
        Ok(())
    }

    /// Reads the next block. Returns `None` at the end of the archive.
    fn block(&mut self) -> Result<Option<[u8; BLOCK as usize]>> {
        let left = self.file.size().saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        if left < BLOCK {
            return Err(self.file.corrupt("is cut off in a tar header").at(self.at));
        }
        let mut block = [0; BLOCK as usize];
        self.file.read_exact_at(&mut block, self.at)?;
        if is_zero(&block) {
            // Go fails, and other programs end there.
            if self.is_for_runtimes && left >= 2 * BLOCK {
                self.file.read_exact_at(&mut block, self.at + BLOCK)?;
                if !is_zero(&block) {
                    return Err(self.unsupported("blocks after a single one of zeros", self.at));
                }
            }
            return Ok(None);
        }
        self.headers += 1;
        if self.headers > self.max_headers {
            let reason = format!("has more than {} headers of members", self.max_headers);
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(self.at));
        }
        self.at += BLOCK;
        Ok(Some(block))
    }

    /// Reads the content of an extended header, with its padding.
    fn text(&self, offset: u64, size: u64) -> Result<Vec<u8>> {
        if size > MAX_TEXT {
            let reason = format!("has an extended tar header of more than {MAX_TEXT} bytes");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(offset));
        }
        let mut text = vec![0; size.next_multiple_of(BLOCK) as usize];
        self.file.read_exact_at(&mut text, offset)?;
        Ok(text)
    }

    /// Reads the map of a file with holes in its header and in the blocks after it. Returns it with the size of the
    /// file. `None` if it is none, or one that programs read differently.
    fn map_in_header(&mut self, header: &[u8; BLOCK as usize]) -> Result<OldMap> {
        let mut map = Vec::new();
        let mut found = pairs(&header[386..482], &mut map);
        let mut goes_on = header[482] != 0;
        while goes_on && found == Pairs::All {
            let mut block = [0; BLOCK as usize];
            self.file.read_exact_at(&mut block, self.at)?;
            self.at += BLOCK;
            goes_on = block[504] != 0;
            found = pairs(&block[..504], &mut map);
            if map.len() > 2 * MAX_PARTS {
                return Err(self.too_many(self.at - BLOCK));
            }
        }
        // GNU tar stops at the first field without a length, and leaves the blocks after it.
        let is_whole = found != Pairs::Invalid && !goes_on;
        Ok(number(&header[483..495]).filter(|_| is_whole).map(|size| (size, map)))
    }

    /// Completes a file with holes by the map in its header.
    fn add_old_map(&mut self, entry: &mut Entry, map: OldMap) -> Result<()> {
        let start = entry.header();
        let sparse = map.and_then(|(size, map)| Sparse::of_map(size, &map, entry.size));
        let sparse = sparse.filter(|_| entry.is_file());
        self.count_parts(sparse.ok_or_else(|| self.odd_map(entry, start))?, entry, start)
    }

    /// Completes a file with holes by its records, or by the map in front of its bytes that they announce.
    fn add_map(&mut self, entry: &mut Entry, records: &Records) -> Result<()> {
        let start = entry.header();
        if !entry.is_file() {
            return Err(self.odd_map(entry, start));
        }
        let sparse = if records.announce_map() {
            let found = self.map_in_front(entry)?;
            found.and_then(|(map, taken)| {
                entry.size = entry.size.checked_sub(taken)?;
                entry.offset += taken;
                Sparse::of_map(records.real_size()?, &map, entry.size)
            })
        } else {
            records.map().and_then(|(size, map)| Sparse::of_map(size, map, entry.size))
        };
        let sparse = sparse.ok_or_else(|| self.odd_map(entry, start))?;
        if let Some(name) = records.name() {
            self.check_name(name, start)?;
            entry.name = name.to_vec();
        }
        self.count_parts(sparse, entry, start)
    }

    /// Reads the map in front of the bytes of a member: a count and that many pairs, each number on a line, up to the end of a
    /// block. Returns it with its length. `None` if it is none.
    fn map_in_front(&self, entry: &Entry) -> Result<Option<(Vec<u64>, u64)>> {
        let (mut taken, mut line, mut map) = (0, Vec::new(), Vec::new());
        let mut wanted = None;
        while taken + BLOCK <= entry.size.next_multiple_of(BLOCK) {
            let mut block = [0; BLOCK as usize];
            self.file.read_exact_at(&mut block, entry.offset + taken)?;
            taken += BLOCK;
            for byte in block {
                if byte != b'\n' {
                    line.push(byte);
                    if line.len() > MAX_DIGITS {
                        return Ok(None);
                    }
                    continue;
                }
                let Some(number) = decimal(&line) else { return Ok(None) };
                line.clear();
                match wanted {
                    None if number > MAX_PARTS as u64 => {
                        return Err(self.too_many(entry.header()));
                    }
                    None => wanted = Some(2 * number as usize),
                    Some(_) => map.push(number),
                }
                if wanted == Some(map.len()) {
                    return Ok(Some((map, taken)));
                }
            }
        }
        Ok(None)
    }

    fn count_parts(&mut self, sparse: Sparse, entry: &mut Entry, start: u64) -> Result<()> {
        self.parts += sparse.parts.len();
        if self.parts > MAX_PARTS {
            return Err(self.too_many(start));
        }
        entry.sparse = Some(sparse.into());
        Ok(())
    }

    fn odd_map(&self, entry: &Entry, start: u64) -> Error {
        let name = excerpt(&entry.name);
        let reason = format!(
            "has the sparse member \"{name}\", whose map is damaged, or one that programs read differently"
        );
        self.file.corrupt(reason).at(start)
    }

    fn too_many(&self, at: u64) -> Error {
        let reason = format!("has sparse members of more than {MAX_PARTS} parts");
        self.file.error(ErrorKind::Unsupported, reason).at(at)
    }

    fn unsupported(&self, what: &str, at: u64) -> Error {
        let reason = format!("has {what} in a tar archive, which are not read");
        self.file.error(ErrorKind::Unsupported, reason).at(at)
    }
}

/// Maximum size of an extended header of a tar archive.
/// Limit in bytes.
const MAX_TEXT: u64 = 64 << 10;

/// Maximum length of the name of a member: as of a path in Linux. Limit in bytes.
const MAX_NAME: usize = 4096;

/// The size of a file with holes and the map of its header, offsets and lengths in turn. `None` if it is not read.
type OldMap = Option<(u64, Vec<u64>)>;

/// Maximum number of digits of a number in a map.
const MAX_DIGITS: usize = 20;

/// Part of a reason.
const SPARSE: &str = "sparse members";
