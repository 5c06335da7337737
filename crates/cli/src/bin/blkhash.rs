//! The command blkhash.

use std::process::ExitCode;

fn main() -> ExitCode {
    blkhash_cli::blkhash::main()
}
