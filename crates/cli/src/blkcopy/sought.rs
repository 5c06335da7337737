//! What a value of `--expect` is of, where nothing says how it was made. [`Search`] lists what it can be.
//!
//! What is likely costs nothing in the pass that copies: the constructions over blocks share their digests. `linear` is
//! computed as the destination is read back, if nothing before is equal, and what is left in further passes over the source,
//! each of which must be of the same content.

use std::ffi::OsStr;

use blkhash::{Algorithm, Construction, Digest, Parameters};
use blkimage::Source;
use blksum::expect::{Doubt, Found, Pass, Search, Shape, Subject, Value};
use blksum::{Progress, Selected, Tuning};

use super::args::Args;
use super::source::Bytes;
use crate::blksum::found::{self, Reading};
use crate::blksum::search::{Amount, Budget};
use crate::problem::{Outcome, Problem};

/// A value that nothing says the parameters of.
pub struct Sought {
    value: Value,
    search: Search,
    passes: Vec<Pass>,
}

/// What was copied, as far as it can be read again.
pub enum Copied<'a> {
    Image(&'a Selected),
    /// A stream, and whether it was the bytes of a file.
    Stream(Shape, bool),
    /// A part, or a delta.
    Part,
}

/// The checksum that was expected.
pub struct Match {
    pub checksum: (Parameters, Digest),
    /// Whether the value is that of the bytes of the file, and the checksum is that of the content.
    pub is_of_bytes: bool,
}

impl Sought {
    /// Begins a search, unless the options name the construction.
    pub fn new(args: &Args, value: &Value) -> Option<Self> {
        let (algorithms, block_size) = (args.digest.into_iter().collect(), args.block_size);
        let search = Search { algorithms, construction: None, block_size };
        let passes = search.passes(std::slice::from_ref(value));
        let is_open = args.construction.is_none() && value.parts.is_none() && !passes.is_empty();
        is_open.then(|| Self { value: value.clone(), search, passes })
    }

    /// Returns the likeliest digest.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.search.digests(&self.value).first().copied()
    }

    /// Returns `own` and the checksums that are computed beside it: those over blocks. Not all can be judged where only a part of
    /// the content is at hand.
    pub fn likely(&self, own: Parameters, is_part: bool) -> Vec<Parameters> {
        let is_wanted = |it: &Parameters| {
            it.construction().has_blocks()
                && !(is_part && it.construction() == Construction::Concat)
        };
        let first = self.passes.first().map_or(&[][..], |pass| &pass.parameters);
        let others = first.iter().filter(|it| is_wanted(it) && **it != own);
        std::iter::once(own).chain(others.copied()).collect()
    }

    /// Returns the checksums to compute where the content cannot be read once more: also those that hash all zeros.
    pub fn all(&self, own: Parameters) -> Vec<Parameters> {
        let mut all = self.likely(own, false);
        for it in self.passes.iter().take(2).flat_map(|pass| &pass.parameters) {
            if !all.contains(it) {
                all.push(*it);
            }
        }
        all
    }

    /// Returns what to compute as a copy of `size` bytes is read back, whose checksums so far are these.
    pub fn read_back(
        &self,
        checksums: &[(Parameters, Digest)],
        size: u64,
        zeros: u64,
        args: &Args,
    ) -> Vec<Parameters> {
        let known: Vec<_> = checksums.iter().map(|(parameters, _)| *parameters).collect();
        if checksums.iter().any(|(_, digest)| digest.as_bytes() == self.value.digest) {
            return known;
        }
        let left = self.all(known[0]).into_iter().filter(|it| !known.contains(it)).collect();
        let amount = Amount { subject: Subject::Content, size, zeros };
        let left = self.budget(args).within(
            std::slice::from_ref(&self.value),
            left,
            &amount,
            &mut Vec::new(),
        );
        [known, left].concat()
    }

    /// Returns the checksum of the content that was expected, of which these are known. The first is the one to print.
    pub fn find(
        &self,
        args: &Args,
        checksums: &[(Parameters, Digest)],
        copied: &Copied<'_>,
        zeros: u64,
        bytes: Option<&Bytes>,
        tuning: &Tuning,
    ) -> Result<Match, Problem> {
        let name = &*args.source;
        let of_source = |error: &blksum::Error| Problem::of_pass(error, name).about(name);
        let own = checksums[0];
        let known: Vec<_> = checksums.iter().map(|(parameters, _)| *parameters).collect();
        let doubt = |it: &Parameters| copied.doubt(it);
        let found = Found::among(&self.value, &self.search, Subject::Content, checksums, doubt);
        if let Some(found) = found.map_err(|error| of_source(&error))? {
            return decided(&found, checksums, own, name);
        }
        let mut tried: Vec<_> = known.iter().copied().map(Reading::of_content).collect();
        let mut untried = Vec::new();
        for Pass { subject, parameters } in &self.passes {
            let is_new = |it: &Parameters| *subject == Subject::Bytes || !known.contains(it);
            let left: Vec<_> = parameters.iter().copied().filter(is_new).collect();
            let (source, amount): (&dyn Source, _) = match (subject, copied, bytes) {
                (Subject::Content, Copied::Image(selected), _) => {
                    let size = selected.size();
                    (selected.source(), Amount { subject: *subject, size, zeros })
                }
                (Subject::Bytes, _, Some(bytes)) => (bytes.image(), bytes.amount()),
                _ => continue,
            };
            let values = std::slice::from_ref(&self.value);
            let mut left = self.budget(args).within(values, left, &amount, &mut untried);
            if left.is_empty() {
                continue;
            }
            tried.extend(left.iter().map(|it| Reading { subject: *subject, parameters: *it }));
            if *subject == Subject::Content {
                left.insert(0, own.0);
            }
            let digests = blksum::checksums(source, &left, tuning, &Progress::new());
            let digests = digests.map_err(|error| of_source(&error))?;
            if *subject == Subject::Content && digests[0] != own.1 {
                let changed = Problem::new("has other content than when it was copied");
                return Err(changed.with_outcome(Outcome::Useless).about(name));
            }
            let all: Vec<_> = left.into_iter().zip(digests).collect();
            let doubt = |it: &Parameters| match subject {
                Subject::Content => copied.doubt(it),
                Subject::Bytes => Ok(None),
            };
            let found = Found::among(&self.value, &self.search, *subject, &all, doubt);
            if let Some(found) = found.map_err(|error| of_source(&error))? {
                if *subject == Subject::Bytes && copied.has_other_files() {
                    return Err(Problem::new(UNCOVERED).with_outcome(Outcome::Errors).about(name));
                }
                return decided(&found, &all, own, name);
            }
        }
        Err(self.missing(&own.1, &tried, &untried))
    }

    fn missing(&self, own: &Digest, tried: &[Reading], untried: &[String]) -> Problem {
        let untried = untried.first().map(|why| format!("; not everything was: {why}"));
        let reason = format!("has the checksum {own}, and not that of --expect");
        let tried = format!("tried as {}{}", found::describe(tried), untried.unwrap_or_default());
        Problem::new(reason).with_outcome(Outcome::Errors).with_hint(tried)
    }

    fn budget(&self, args: &Args) -> Budget<'_> {
        let has_limit = args.opening.open.max_zeros.is_none();
        Budget { search: &self.search, is_patient: false, has_limit }
    }
}

impl Copied<'_> {
    fn has_other_files(&self) -> bool {
        match self {
            Self::Image(selected) => selected.image().files().nth(1).is_some(),
            Self::Stream(..) | Self::Part => false,
        }
    }

    /// Returns why a checksum proves nothing.
    fn doubt(&self, parameters: &Parameters) -> Result<Option<Doubt>, blksum::Error> {
        match self {
            Self::Image(selected) => {
                let image = selected.image();
                let is_file = image.format() == blkimage::Format::Raw && !image.is_decompressed();
                Ok(Shape::of(selected.source())?.doubt(parameters, is_file))
            }
            Self::Stream(shape, is_file) => Ok(shape.doubt(parameters, *is_file)),
            Self::Part => Ok(None),
        }
    }
}

/// Returns the checksum that was found, if it proves something.
fn decided(
    found: &Found,
    all: &[(Parameters, Digest)],
    own: (Parameters, Digest),
    name: &OsStr,
) -> Result<Match, Problem> {
    if let Some((subject, parameters, doubt)) = found.doubted {
        let reason = found::describe_doubt(&Reading { subject, parameters }, doubt);
        return Err(Problem::new(reason).with_outcome(Outcome::Errors).about(name));
    }
    let is_of = |(subject, parameters): (Subject, Parameters)| {
        let checksum = all.iter().find(|(own, _)| *own == parameters).copied();
        match subject {
            Subject::Content => Match { checksum: checksum.unwrap_or(own), is_of_bytes: false },
            Subject::Bytes => Match { checksum: own, is_of_bytes: true },
        }
    };
    Ok(found.matched.map_or(Match { checksum: own, is_of_bytes: false }, is_of))
}

const UNCOVERED: &str =
    "has the checksum of --expect in the bytes of this file, and its content is in other files too";
