//! The state of a run at some moment, as parts of a line, as a sentence and as an object.

use std::ffi::OsStr;
use std::time::Duration;

use blkrecord::Name;

use super::pace::Counts;
use crate::records::progress::Progress;
use crate::size::Bytes;

/// A run at some moment. Bytes are one image's, times are the run's.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// The image that is worked on, or the one that was done last.
    pub name: &'a OsStr,
    /// Its number, from 1 on.
    pub number: u64,
    /// The number of all images, where it is known.
    pub images: Option<u64>,
    pub state: State,
    pub unit: Unit,
    pub counts: Counts,
    /// The pass, where there are several over one image.
    pub pass: Option<Pass>,
    /// The amount of work, if it is known.
    pub total: Option<u64>,
    /// The part of all images that is done; of this one where their number is not known.
    pub fraction: Option<f64>,
    /// Bytes of data in a second.
    pub rate: Option<f64>,
    pub elapsed: Duration,
    /// The estimated time for all images, unless it is too soon to tell.
    pub left: Option<Duration>,
}

/// The operation on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Opening,
    Working,
    Done,
}

/// A pass of a copy. The counts cover both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Write,
    ReadBack,
}

impl Pass {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::ReadBack => "read-back",
        }
    }
}

/// The unit of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    /// Parts of a whole that mean nothing to users.
    Steps,
}

impl Snapshot<'_> {
    /// Whether the run has other images, so that their number is of interest.
    pub fn is_one_of_several(&self) -> bool {
        self.images != Some(1)
    }

    /// Bytes done, of how many.
    pub fn amount(&self) -> Option<String> {
        let done = Bytes(self.counts.done);
        match (self.unit, self.state, self.total) {
            (Unit::Steps, ..) | (_, State::Opening, _) => None,
            (_, _, Some(total)) => Some(format!("{done:>#8} of {:#}", Bytes(total))),
            (_, _, None) => Some(format!("{done:>#8}")),
        }
    }

    /// What the pass does.
    pub fn pass(&self) -> Option<String> {
        let pass = self.pass.filter(|_| self.state == State::Working)?;
        Some(match pass {
            Pass::Write => "copying".to_owned(),
            Pass::ReadBack => "reading back".to_owned(),
        })
    }

    /// Bytes of data in a second.
    pub fn speed(&self) -> Option<String> {
        let rate = self.rate.filter(|_| self.unit == Unit::Bytes)?;
        Some(format!("{:>#8}/s", Bytes(rate as u64)))
    }

    /// The estimated time.
    pub fn time_left(&self) -> Option<String> {
        self.left.map(|left| format!("{:>5} left", time(left)))
    }

    /// All of it, for people, after the name.
    pub fn sentence(&self) -> String {
        let place = match self.images {
            Some(1) => None,
            Some(images) => Some(format!("image {} of {images}", self.number)),
            None => Some(format!("image {}", self.number)),
        };
        let state = match self.state {
            State::Opening => Some("opening".to_owned()),
            State::Working => {
                let total = self.total.filter(|total| *total > 0);
                total.map(|total| percent(self.counts.done as f64 / total as f64))
            }
            State::Done => Some("done".to_owned()),
        };
        let elapsed = Some(format!("after {}", time(self.elapsed)));
        let (pass, amount, speed) = (self.pass(), self.amount(), self.speed());
        let parts = [place, state, pass, amount, speed, elapsed, self.time_left()];
        let parts: Vec<String> =
            parts.iter().flatten().map(|part| part.trim().replace("  ", " ")).collect();
        parts.join(", ")
    }

    /// All of it, for programs.
    pub fn object(&self) -> String {
        let seconds = |duration: Duration| duration.as_millis() as f64 / 1000.0;
        let object = Progress {
            name: Name::new(self.name),
            image: self.number,
            images: self.images,
            done: self.counts.done,
            total: self.total,
            data: self.counts.data,
            pass: self.pass.map(Pass::name),
            seconds: seconds(self.elapsed),
            left: self.left.map(seconds),
        };
        crate::json::text(&object)
    }
}

/// A part of a whole: 100% is all of it.
pub fn percent(fraction: f64) -> String {
    format!("{}%", (fraction * 100.0) as u64)
}

/// A time in the two largest of its units: `5s`, `1m05s`, `3h00m`, `2d04h`.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if days > 0 => format!("{days}d{:02}h", hours % 24),
        () if hours > 0 => format!("{hours}h{:02}m", minutes % 60),
        () if minutes > 0 => format!("{minutes}m{:02}s", seconds % 60),
        () => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot<'static> {
        Snapshot {
            name: OsStr::new("disk"),
            number: 3,
            images: Some(12),
            state: State::Working,
            unit: Unit::Bytes,
            counts: Counts { done: 1 << 30, data: 1 << 20, read: 1 << 20 },
            pass: None,
            total: Some(4 << 30),
            fraction: Some(0.2),
            rate: Some(1e6),
            elapsed: Duration::from_millis(61_250),
            left: Some(Duration::from_millis(7_200_500)),
        }
    }

    #[test]
    fn sentences() {
        let several = snapshot();
        assert_eq!(
            several.sentence(),
            "image 3 of 12, 25%, 1.00 GiB of 4.00 GiB, 977 KiB/s, after 1m01s, 2h00m left"
        );
        let opening =
            Snapshot { images: None, state: State::Opening, rate: None, left: None, ..snapshot() };
        assert_eq!(opening.sentence(), "image 3, opening, after 1m01s");
        let stream = Snapshot { images: Some(1), total: None, left: None, ..snapshot() };
        assert_eq!(stream.sentence(), "1.00 GiB, 977 KiB/s, after 1m01s");
        let steps = Snapshot { images: Some(1), unit: Unit::Steps, ..snapshot() };
        assert_eq!(steps.sentence(), "25%, after 1m01s, 2h00m left");
        let copy =
            Snapshot { images: Some(1), pass: Some(Pass::ReadBack), left: None, ..snapshot() };
        assert_eq!(
            copy.sentence(),
            "25%, reading back, 1.00 GiB of 4.00 GiB, 977 KiB/s, after 1m01s"
        );
        let empty = Snapshot { total: Some(0), counts: Counts::default(), ..stream };
        assert_eq!(empty.sentence(), "0 B of 0 B, 977 KiB/s, after 1m01s");
    }

    #[test]
    fn objects() {
        assert_eq!(
            snapshot().object(),
            "{\"name\":\"disk\",\"image\":3,\"images\":12,\"done\":1073741824,\
             \"total\":4294967296,\"data\":1048576,\"seconds\":61.25,\"left\":7200.5}"
        );
        let unknown = Snapshot { images: None, total: None, left: None, ..snapshot() };
        assert_eq!(
            unknown.object(),
            "{\"name\":\"disk\",\"image\":3,\"images\":null,\"done\":1073741824,\
             \"total\":null,\"data\":1048576,\"seconds\":61.25,\"left\":null}"
        );
    }

    #[test]
    fn times() {
        let cases = [
            (0, "0s"),
            (59, "59s"),
            (65, "1m05s"),
            (3600, "1h00m"),
            (86_399, "23h59m"),
            (187_200, "2d04h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }
}
