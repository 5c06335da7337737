//! The command blkcopy.

use std::process::ExitCode;

fn main() -> ExitCode {
    blkhash_cli::blkcopy::main()
}
