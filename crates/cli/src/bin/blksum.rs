//! The command blksum.

use std::process::ExitCode;

fn main() -> ExitCode {
    blkhash_cli::blksum::main()
}
