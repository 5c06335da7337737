//! The place of a layer on a disk.

use std::fmt;

/// The way from a disk to one of its layers. No step is the disk itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place(pub Vec<Step>);

/// A step from a layer into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The image that stores the disk.
    Image,
    /// A partition, by its number.
    Partition(u32),
    /// A logical volume, by its name.
    Volume(String),
    /// Everything from this byte on.
    From(u64),
}

impl Place {
    /// Returns the place of a part of this one.
    #[must_use]
    pub fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// Returns the number of the partition, if the place is a whole one.
    pub fn partition(&self) -> Option<u32> {
        match self.0.as_slice() {
            [Step::Partition(number)] => Some(*number),
            _ => None,
        }
    }
}

/// Such as `partition 2: LV root`. Names are as the disk has them.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("disk");
        }
        for (index, step) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { ": " } else { "" })?;
            match step {
                Step::Image => f.write_str("image")?,
                Step::Partition(number) => write!(f, "partition {number}")?,
                Step::Volume(name) => write!(f, "LV {name}")?,
                Step::From(offset) => write!(f, "at {offset}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_displayed() {
        let place = Place::default();
        assert_eq!(place.to_string(), "disk");
        let partition = place.then(Step::Partition(2));
        assert_eq!(partition.partition(), Some(2));
        let volume = partition.then(Step::Volume("root".to_owned()));
        assert_eq!(volume.to_string(), "partition 2: LV root");
        assert_eq!(volume.partition(), None);
    }
}
