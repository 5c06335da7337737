//! The option `--progress` of `blkhash`.

use super::reporter::When;
use crate::values::Named;

/// When progress is shown.
#[derive(Clone, Debug, clap::Args)]
pub struct ProgressArgs {
    /// Show progress on the terminal: auto, always or never; json writes an object a second.
    /// The default is auto, where it takes longer than a second, and without a value always
    #[arg(
        short, long, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
        value_parser = Named::<When>::of(When::names), hide_possible_values = true
    )]
    progress: Option<When>,
}

impl ProgressArgs {
    /// Returns what was asked for, or the default.
    pub fn when(&self) -> When {
        self.progress.unwrap_or_default()
    }
}
