//! Other uses of a device or file.

/// The other uses of a device or file. The texts name what the system reports, and may hold any character.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Description of a possible writer.
    pub writer: Option<String>,
    /// Warnings for the user, each a sentence about the device.
    pub others: Vec<String>,
}
