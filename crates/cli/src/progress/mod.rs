//! The progress of a run: a line on the terminal, objects for programs, and an answer to SIGUSR1.
//!
//! [`reporter`] knows the run and says when something is shown, [`snapshot`] what there is to say,
//! [`line`] how that fits a terminal, [`pace`] how long it will take.

mod args;
mod line;
mod pace;
mod reporter;
mod snapshot;
mod steps;

pub use self::args::ProgressArgs;
pub use self::pace::{Amount, Counts};
pub use self::reporter::{Reporter, Watch, When};
pub use self::snapshot::Pass;
pub use self::steps::Steps;
