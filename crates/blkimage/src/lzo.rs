//! Decompression of LZO1X, the form of LZO that btrfs and lzop store.
//!
//! A stream consists of instructions. Each copies literals from the stream, or repeats earlier content, and says how
//! many literals follow (<https://docs.kernel.org/staging/lzo.html>). An end marker is the last instruction.
//!
//! Any bytes give an error or content of at most `limit` bytes. The time is in proportion to the stream and the limit.

/// Reason why a stream is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The stream ends within an instruction.
    #[error("it is cut off")]
    CutOff,
    /// There is more content than the limit, in bytes.
    #[error("it has more than {0} bytes of content")]
    TooLong(usize),
    /// The distance of a repetition, in bytes.
    #[error("it repeats content {0} bytes before its end, where there is none")]
    Distance(usize),
    /// The length of the end marker. The kernel refuses the stream, liblzo2 does not.
    #[error("its end marker has length {0}, not 3")]
    EndMarker(usize),
    /// Number of bytes after the end marker.
    #[error("{0} bytes follow its end marker")]
    Rest(usize),
}

/// Returns the content of a stream, of at most `limit` bytes.
///
/// # Errors
///
/// Fails if the stream is not valid, or has more content.
pub fn decompress(stream: &[u8], limit: usize) -> Result<Vec<u8>, Defect> {
    let mut stream = Stream(stream);
    let mut content = Content { bytes: Vec::with_capacity(limit), limit };
    // Number of literals before the instruction. After 4 or more, an instruction below 16 has another meaning.
    let mut literals = 0_usize;
    if let Some(count @ 18..) = stream.0.first().copied() {
        stream.byte()?;
        literals = usize::from(count - 17);
        content.append(stream.take(literals)?)?;
    }
    loop {
        let instruction = stream.byte()?;
        let (distance, length, following) = match instruction {
            0..16 if literals == 0 => {
                literals = 3 + stream.length(instruction, 15)?;
                content.append(stream.take(literals)?)?;
                continue;
            }
            0..16 => {
                let (nearest, length) = if literals < 4 { (1, 2) } else { (2049, 3) };
                let distance = (stream.byte()? << 2) + (instruction >> 2) + nearest;
                (distance, length, instruction & 3)
            }
            16..32 => {
                let length = 2 + stream.length(instruction & 7, 7)?;
                let low = stream.two_bytes()?;
                let distance = ((instruction & 8) << 11) + (low >> 2);
                if distance == 0 {
                    return match (length, stream.0.len()) {
                        (3, 0) => Ok(content.bytes),
                        (3, rest) => Err(Defect::Rest(rest)),
                        _ => Err(Defect::EndMarker(length)),
                    };
                }
                (distance + (16 << 10), length, low & 3)
            }
            32..64 => {
                let length = 2 + stream.length(instruction & 31, 31)?;
                let low = stream.two_bytes()?;
                ((low >> 2) + 1, length, low & 3)
            }
            _ => {
                let distance = (stream.byte()? << 3) + ((instruction >> 2) & 7) + 1;
                (distance, (instruction >> 5) + 1, instruction & 3)
            }
        };
        content.repeat(distance, length)?;
        content.append(stream.take(following)?)?;
        literals = following;
    }
}

/// The rest of a stream.
struct Stream<'a>(&'a [u8]);

impl<'a> Stream<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Defect> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Defect::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<usize, Defect> {
        let (byte, rest) = self.0.split_first().ok_or(Defect::CutOff)?;
        self.0 = rest;
        Ok((*byte).into())
    }

    fn two_bytes(&mut self) -> Result<usize, Defect> {
        Ok(self.byte()? | self.byte()? << 8)
    }

    /// Returns a length. If `bits` of the instruction are zero, it is `most` plus the next byte that is not zero, plus
    /// 255 for each zero byte before it.
    fn length(&mut self, bits: usize, most: usize) -> Result<usize, Defect> {
        if bits != 0 {
            return Ok(bits);
        }
        let mut length = most;
        loop {
            match self.byte()? {
                0 => length += 255,
                byte => return Ok(length + byte),
            }
        }
    }
}

struct Content {
    bytes: Vec<u8>,
    limit: usize,
}

impl Content {
    fn append(&mut self, literals: &[u8]) -> Result<(), Defect> {
        self.expect_room(literals.len())?;
        self.bytes.extend_from_slice(literals);
        Ok(())
    }

    /// Appends `length` bytes that begin `distance` bytes before the end. They may be bytes that this appends.
    fn repeat(&mut self, distance: usize, length: usize) -> Result<(), Defect> {
        let start = self.bytes.len().checked_sub(distance).ok_or(Defect::Distance(distance))?;
        self.expect_room(length)?;
        let mut rest = length;
        while rest > 0 {
            let count = rest.min(distance);
            self.bytes.extend_from_within(start..start + count);
            rest -= count;
        }
        Ok(())
    }

    fn expect_room(&self, length: usize) -> Result<(), Defect> {
        if length > self.limit - self.bytes.len() {
            return Err(Defect::TooLong(self.limit));
        }
        Ok(())
    }
}
