//! The checksum that is computed, and the one that is expected.

use blkhash::{Parameters, Salt};
use blkmap::Header;
use blksum::Tag;

use super::args::Args;
use super::sought::Sought;
use crate::value::digest::DigestName;
use crate::value::expected::{self, Expected};

/// The checksum that is computed.
pub struct Wanted {
    pub parameters: Parameters,
    /// The value of `--expect`.
    pub expected: Option<Vec<u8>>,
    /// What the value can be, if nothing says how it was made.
    pub sought: Option<Sought>,
}

impl Wanted {
    /// Returns what the options say, and the value of `--expect`. The error is a message.
    pub fn new(args: &Args) -> Result<Self, String> {
        let expected = args.expect.as_deref().map(expected::parse).transpose()?;
        let tag = expected.as_ref().and_then(|it| it.tag.as_ref());
        let stated = match tag {
            None => None,
            Some(Tag::File(algorithm)) => Some(Tag::linear(*algorithm)),
            Some(Tag::Image(tag)) => Some(tag.parameters),
        };
        let named = expected.as_ref().and_then(|it| it.value.algorithm);
        let unstated = expected.as_ref().filter(|it| it.tag.is_none());
        let sought = unstated.and_then(|it| Sought::new(args, &it.value));
        let algorithm = stated.map(|it| it.algorithm()).or(named);
        if let (Some(named), Some(digest)) = (algorithm, args.digest)
            && named != digest
        {
            return Err(format!("--expect is {named}, and --digest {digest}"));
        }
        let algorithm = args.digest.or(algorithm).or(sought.as_ref().and_then(Sought::algorithm));
        let algorithm = algorithm.unwrap_or(Parameters::default().algorithm());
        if algorithm.digest_size() == 0 {
            return Err(format!(
                "--digest: {algorithm} has no checksum, so nothing would be compared: --verify=none copies without one"
            ));
        }
        let construction = stated.map(|it| it.construction());
        let name = DigestName { algorithm, construction, is_bytes: false };
        let block_size = args.block_size.or(stated.map(|it| it.block_size()));
        let parameters =
            name.parameters(args.construction.unwrap_or_default(), block_size, None::<Salt>);
        let parameters = parameters.map_err(|error| error.to_string())?;
        if let Some(stated) = stated {
            check_stated(args, &parameters, &stated)?;
        }
        if let Some(expected) = &expected {
            check_length(expected, &parameters)?;
        }
        if args.map.is_some() && !Header::accepts(algorithm) {
            return Err(format!("--map: there are no maps of {algorithm}"));
        }
        Ok(Self { parameters, expected: expected.map(|it| it.value.digest), sought })
    }
}

/// Fails if a line says something else than the options.
fn check_stated(args: &Args, parameters: &Parameters, stated: &Parameters) -> Result<(), String> {
    if !stated.salt().is_empty() {
        return Err("--expect: the line has a salt, which blkcopy does not use".into());
    }
    let (own, other) = (stated.construction(), args.construction);
    if let Some(other) = other.filter(|other| *other != own) {
        return Err(format!("--expect is {own}, and --construction {other}"));
    }
    // Only a construction without blocks has none.
    if parameters != stated && own.has_blocks() {
        let size = stated.block_size().get();
        return Err(format!(
            "--expect has blocks of {size} bytes, and --block-size is another one"
        ));
    }
    Ok(())
}

fn check_length(expected: &Expected, parameters: &Parameters) -> Result<(), String> {
    let (value, algorithm) = (&expected.value, parameters.algorithm());
    let size = algorithm.digest_size();
    match () {
        () if value.parts.is_some() => {
            Err("--expect: the value is of the parts of a file: blksum --expect checks it".into())
        }
        () if value.digest.len() != size => Err(format!(
            "--expect: is no {algorithm}, which has {size} bytes: name it with --digest"
        )),
        () => Ok(()),
    }
}
