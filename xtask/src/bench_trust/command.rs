//! The command: builds the program once, and runs the selected sections with it.

use std::io::{self, Write as _};

use camino::Utf8PathBuf;
use clap::ValueEnum;

use super::{corpus, simulations};
use crate::machine;
use crate::step::{Failure, Step, root};

/// The arguments of `cargo xtask bench-trust`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sections to run [default: simulations, and corpus if `--corpus` is given]
    #[arg(value_enum)]
    sections: Vec<Section>,

    /// Folder of the corpus of real runs
    #[arg(long, value_name = "DIR")]
    corpus: Option<Utf8PathBuf>,

    /// Program to measure [default: builds it in release mode]
    #[arg(long, value_name = "FILE")]
    program: Option<Utf8PathBuf>,

    /// Number of simulated nights per row
    #[arg(long, value_name = "N", default_value_t = 400)]
    nights: u32,

    /// Simulate only the rows whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// False alarms and power over nights of synthetic agents.
    Simulations,
    /// Severity, flags, divergence and causes on real runs.
    Corpus,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let program = args.program.clone().map_or_else(build, Ok)?;
    let _ = writeln!(io::stdout(), "machine: {}", machine::notes());
    let is_selected = |section| args.sections.is_empty() || args.sections.contains(&section);
    if is_selected(Section::Simulations) {
        simulations::run(&program, args.nights, args.only.as_deref())?;
    }
    if is_selected(Section::Corpus)
        && let Some(corpus) = &args.corpus
    {
        corpus::run(&program, corpus)?;
    }
    Ok(())
}

/// Builds the program in release mode, and returns its path.
fn build() -> Result<Utf8PathBuf, Failure> {
    Step::cargo(["build", "--release", "--package", "counterproof", "--bins", "--locked"]).run()?;
    let name = format!("counterproof{}", std::env::consts::EXE_SUFFIX);
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), Utf8PathBuf::from);
    Ok(root().join(target).join("release").join(name))
}
