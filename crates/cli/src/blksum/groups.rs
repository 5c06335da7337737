//! Groups the lines of check files by image, so that each image is read once for all of its lines.

use std::collections::{HashMap, HashSet};

use blkhash::Parameters;
use blksum::check_file::{Entry, Parser};
use blksum::{Content, Tag};

use super::check_files::Held;
use super::lines::{self, Item};
use super::recorded;

/// The subject of a checksum: the name of an image, and the content. `None` is the file's own bytes.
pub type Subject = (Vec<u8>, Option<Content>);

/// The tags of each image that has several.
pub struct Groups {
    tags: HashMap<Subject, Vec<Option<Tag>>>,
    lines: Option<u64>,
}

/// The checksums that are computed for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The checksum of the line.
    Own,
    /// The checksums of all lines about the image. This line is the first of them.
    All(Vec<Option<Tag>>),
    /// Nothing, because an earlier line covers this one.
    Nothing,
}

impl Groups {
    /// Groups the lines of all check files, given by their complete contents.
    pub fn new<'a>(contents: impl Iterator<Item = Held<'a>>, parser: Parser) -> Self {
        let mut tags: HashMap<Subject, Vec<Option<Tag>>> = HashMap::new();
        let mut lines = 0;
        for entry in lines::entries(contents, parser) {
            lines += 1;
            let group = tags.entry(subject(&entry)).or_default();
            if group.len() < MAX_AT_ONCE && !group.contains(&entry.tag) {
                group.push(entry.tag);
            }
        }
        tags.retain(|_, group| group.len() > 1);
        Self { tags, lines: Some(lines) }
    }

    /// Creates an empty set of groups, so that each line is computed alone.
    pub fn none() -> Self {
        Self { tags: HashMap::new(), lines: None }
    }

    /// The number of lines that name an image, where it is known.
    pub fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// Pairs each item, in order, with the checksums that are computed for it.
    pub fn assign(
        self,
        items: impl Iterator<Item = Item> + Send,
    ) -> impl Iterator<Item = (Item, Wanted)> + Send {
        let mut begun = HashSet::new();
        items.map(move |item| {
            let wanted = match &item {
                Item::Entry(entry) => self.wanted(entry, &mut begun),
                Item::Malformed { .. } | Item::Read(_) | Item::End(_) => Wanted::Nothing,
            };
            (item, wanted)
        })
    }

    fn wanted(&self, entry: &Entry, begun: &mut HashSet<Subject>) -> Wanted {
        let subject = subject(entry);
        match self.tags.get(&subject) {
            Some(tags) if tags.contains(&entry.tag) => match begun.insert(subject) {
                true => Wanted::All(tags.clone()),
                false => Wanted::Nothing,
            },
            _ => Wanted::Own,
        }
    }
}

/// Returns the subject of an entry's checksum.
pub fn subject(entry: &Entry) -> Subject {
    let content = match &entry.tag {
        Some(Tag::File(_)) => None,
        Some(Tag::Image(tag)) => Some(tag.content.clone()),
        None => Some(Content::default()),
    };
    (entry.name.clone(), content)
}

/// Returns the parameters for a tag. `given` is for lines without a tag.
pub fn parameters(tag: Option<&Tag>, given: &Parameters) -> Parameters {
    match tag {
        None => *given,
        Some(tag) => recorded::parameters(tag),
    }
}

/// Maximum number of checksums of one image at a time, because each needs memory.
/// Limit in checksums.
const MAX_AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use blkhash::Algorithm;
    use blksum::check_file::Line;

    use super::*;

    #[test]
    fn lines_of_one_image_are_computed_with_the_first() {
        let (long, short) = ("0".repeat(64), "0".repeat(32));
        let content = format!(
            "SHA256 (a) = {long}\nMD5 (a) = {short}\n{long}  a\nSHA256 (b) = {long}\n\
             MD5 (a) = {short}\nBLKSUM-MD5-FLAT-64K (a) = {short}\n\
             BLKSUM-MD5-FLAT-64K/PARTITION=1 (a) = {short}\n\
             BLKSUM-MD5-CONCAT-64K/PARTITION=1 (a) = {short}\n\
             BLKSUM-MD5-FLAT-64K/PARTITION=2 (a) = {short}\n"
        );
        let mut parser = Parser::new(Algorithm::Sha256);
        let held = Held { content: content.as_bytes(), base: None };
        let groups = Groups::new([held].into_iter(), parser.clone());
        let items = content.lines().map(|line| match parser.parse(line.as_bytes()) {
            Line::Entry(entry) => Item::Entry(entry),
            other => panic!("{other:?}"),
        });
        let items: Vec<_> = items.collect();
        let wanted: Vec<_> = groups.assign(items.into_iter()).map(|(_, wanted)| wanted).collect();
        let file = |algorithm| Some(Tag::File(algorithm));
        let flat = "BLKSUM-MD5-FLAT-64K".parse().ok();
        let expected = [
            Wanted::All(vec![file(Algorithm::Sha256), file(Algorithm::Md5)]),
            Wanted::Nothing,
            Wanted::All(vec![None, flat]),
            Wanted::Own,
            Wanted::Nothing,
            Wanted::Nothing,
            Wanted::All(vec![
                "BLKSUM-MD5-FLAT-64K/PARTITION=1".parse().ok(),
                "BLKSUM-MD5-CONCAT-64K/PARTITION=1".parse().ok(),
            ]),
            Wanted::Nothing,
            Wanted::Own,
        ];
        assert_eq!(wanted, expected);
    }
}
