//! The programs and examples, built with one command and then started by their paths.
//!
//! `cargo run --package` would build most of the shared dependencies again, with the features of that package only.

use std::process::Command;

use camino::Utf8PathBuf;

use crate::step::{Failure, Step, root};

/// Builds the programs and the examples with the features of the tests. This program is excluded, because some systems do not
/// allow a running program to be replaced.
pub(crate) fn build() -> Result<(), Failure> {
    Step::cargo(["build", "--workspace", "--exclude", "xtask", "--bins", "--examples", "--locked"]).run()
}

pub(crate) fn counterproof() -> Utf8PathBuf {
    debug_folder().join(format!("counterproof{}", std::env::consts::EXE_SUFFIX))
}

/// Returns the path of another program of the build, such as `examples/NAME`.
pub(crate) fn test_program(name: &str) -> Utf8PathBuf {
    debug_folder().join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

pub(crate) fn example(name: &str, arguments: &[String]) -> Result<(), Failure> {
    let program = debug_folder().join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    Step::new(name.to_owned(), Command::new(program)).with(arguments).run()
}

fn debug_folder() -> Utf8PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| "target".into(), Utf8PathBuf::from);
    root().join(target).join("debug")
}
