//! The `counterproof` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterproof::run(std::env::args_os()).into()
}
