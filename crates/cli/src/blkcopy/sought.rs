//! What a value of `--expect` is of, where nothing says how it was made. [`Search`] lists what it can be.
//!
//! What is likely costs nothing in the pass that copies: the constructions over blocks share their digests. `linear` is
//! computed as the destination is read back, if nothing before is equal, and what is left in further passes over the source,
//! each of which must be of the same content.

use std::ffi::OsStr;

use blkhash::{Algorithm, Construction, Digest, Parameters};
use blkimage::Source;
use blksum::expect::{
    Amount, Candidates, Doubt, Found, Limits, Pass, Search, Shape, Subject, Value,
};
use blksum::{Progress, Selected, Tuning};

use super::args::Args;
use super::source::Bytes;
use crate::problem::{Outcome, Problem};
use crate::value::verdict;

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
    /// Whether the value belongs to the bytes of the file, and the checksum to the content.
    pub is_of_bytes: bool,
}

impl Sought {
    /// Begins a search, unless the options name the construction.
    pub fn new(args: &Args, value: &Value) -> Option<Self> {
        let (algorithms, block_size) = (args.digest.into_iter().collect(), args.block_size);
        let limits = Limits::SHORT.unless_set(args.opening.open.max_zeros);
        let search = Search { algorithms, construction: None, block_size, limits };
        let passes = search.passes(std::slice::from_ref(value));
        let is_open = args.construction.is_none() && value.parts.is_none() && !passes.is_empty();
        is_open.then(|| Self { value: value.clone(), search, passes })
    }

    /// Returns the likeliest digest.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.search.digests(&self.value).first().copied()
    }

    /// Returns `own` and the checksums that are computed with it, over blocks. Not all can be judged where only a part
    /// of the content is available.
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
    ) -> Vec<Parameters> {
        let known: Vec<_> = checksums.iter().map(|(parameters, _)| *parameters).collect();
        if checksums.iter().any(|(_, digest)| digest.as_bytes() == self.value.digest) {
            return known;
        }
        let parameters = self.all(known[0]).into_iter().filter(|it| !known.contains(it)).collect();
        let pass = Pass { subject: Subject::Content, parameters };
        let (values, amount) = (std::slice::from_ref(&self.value), Amount { size, zeros });
        let left = self.search.within(values, pass, amount, &mut Vec::new());
        [known, left.parameters].concat()
    }

    /// Returns the checksum of the content that was expected, of which these are known. The first is the one to print.
    pub fn find(
        &self,
        name: &OsStr,
        checksums: &[(Parameters, Digest)],
        copied: &Copied<'_>,
        zeros: u64,
        bytes: Option<&Bytes>,
        tuning: &Tuning,
    ) -> Result<Match, Problem> {
        let of_source = |error: blksum::Error| Problem::of_pass(&error, name).about(name);
        let own = checksums[0];
        let mut candidates = Candidates::new(&self.search, std::slice::from_ref(&self.value));
        let doubt = |it: &Parameters| copied.doubt(it);
        if candidates.take(Subject::Content, checksums, doubt).map_err(of_source)? {
            return decided(candidates.found(), checksums, own, name);
        }
        let source = |subject| -> Option<(&dyn Source, Amount)> {
            match (subject, copied, bytes) {
                (Subject::Content, Copied::Image(selected), _) => {
                    Some((selected.source(), Amount { size: selected.size(), zeros }))
                }
                (Subject::Bytes, _, Some(bytes)) => Some((bytes.image(), bytes.amount())),
                _ => None,
            }
        };
        while let Some(Pass { subject, mut parameters }) =
            candidates.next(|pass| source(pass.subject).map(|(_, amount)| amount))
        {
            let (source, _) = source(subject).expect("it has an amount");
            let is_content = subject == Subject::Content;
            if is_content {
                parameters.insert(0, own.0);
            }
            let digests = blksum::checksums(source, &parameters, tuning, &Progress::new());
            let digests = digests.map_err(of_source)?;
            if is_content && digests[0] != own.1 {
                let changed = Problem::new("has other content than when it was copied");
                return Err(changed.with_outcome(Outcome::Useless).about(name));
            }
            let all: Vec<_> = parameters.into_iter().zip(digests).collect();
            let doubt = |it: &Parameters| if is_content { copied.doubt(it) } else { Ok(None) };
            if candidates.take(subject, &all, doubt).map_err(of_source)? {
                if !is_content && copied.has_other_files() {
                    return Err(Problem::new(UNCOVERED).with_outcome(Outcome::Errors).about(name));
                }
                return decided(candidates.found(), &all, own, name);
            }
        }
        let found = candidates.found();
        let untried = found.untried.first().map(verdict::why);
        let untried = untried.map(|why| format!("; not everything was: {why}"));
        let reason = format!("has the checksum {}, and not the one of --expect", own.1);
        let tried = format!("tried as {}{}", found.describe_tried(), untried.unwrap_or_default());
        Err(Problem::new(reason).with_outcome(Outcome::Errors).with_hint(tried))
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
    if let Some((reading, doubt)) = &found.doubted {
        let reason = verdict::describe_doubt(reading, *doubt);
        return Err(Problem::new(reason).with_outcome(Outcome::Errors).about(name));
    }
    let reading = found.matched.map(|it| it.reading);
    if reading.is_some_and(|it| it.subject == Subject::Bytes) {
        return Ok(Match { checksum: own, is_of_bytes: true });
    }
    let is_equal =
        |it: &&(Parameters, Digest)| reading.is_some_and(|found| found.parameters == it.0);
    let checksum = all.iter().find(is_equal).copied().unwrap_or(own);
    Ok(Match { checksum, is_of_bytes: false })
}

const UNCOVERED: &str =
    "has the checksum of --expect in the bytes of this file, and its content is in other files too";
