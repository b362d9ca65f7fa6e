//! The project's own commands: `cargo xtask …`. Needs nothing but cargo, and builds none of the project to start.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench_report;
mod bench_safe_run;
mod browser;
mod check;
mod cross;
mod interop;
mod machine;
mod samples;
mod step;
mod tree;

use step::{Failure, Step};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the programs and run all tests.
    Test {
        /// Passed on to `cargo test`, such as the name of a test.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Format all code.
    Fmt,
    /// Hold everything but the tests against the rules: formatting, clippy, documentation, licences, samples.
    Check,
    /// What the CI does: `check`, then `cross`, then `test`, then `browser`, then `interop`.
    Ci,
    /// Measure the runner against a trivial local server. Takes about two minutes; `docs/performance.md` has the figures.
    BenchRunner,
    /// Measure what comparing costs beyond reading and parsing. Takes some minutes; `docs/performance.md` has the figures.
    BenchCompare {
        /// How many case pairs: 10000 and 100000 where nothing is said.
        cases: Vec<usize>,
    },
    /// Measure what safe-run costs beside running a command bare, and beside `cat`. Takes about a minute; `docs/performance.md`
    /// has the figures.
    BenchSafeRun,
    /// Write reports of generated runs, weigh them, and open them in a browser. 100,000 cases take some ten GB of disk and as
    /// many minutes; `docs/performance.md` has the figures.
    BenchReport {
        /// How many case pairs: 1000, 10000 and 100000 where nothing is said.
        cases: Vec<usize>,
    },
    /// Open reports from disk in Chromium: links, keys, filters, accessibility, injections. Installs what it needs; skipped
    /// where that cannot be.
    Browser {
        /// Another report to open, beside those that it writes itself; can be given several times.
        #[arg(long = "report", value_name = "DIR")]
        reports: Vec<camino::Utf8PathBuf>,
    },
    /// Check that safe-run compiles for Windows and macOS; a target that is not there and cannot be added is skipped.
    Cross,
    /// Write `docs/cli.md` again, from the program's own help.
    Docs,
    /// Install litellm into `target/interop/` and run both OpenAI forms against its mock server; skipped where that cannot be.
    Interop,
    /// Record `sample-runs/` again.
    Samples {
        /// Change nothing; fail where what is checked in would come out different.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Test { arguments } => test(&arguments),
        Command::Fmt => Step::cargo(["fmt", "--all"]).run(),
        Command::Check => check::all(),
        Command::Ci => {
            check::all()?;
            cross::run()?;
            test(&[])?;
            browser::run(&[])?;
            interop::run()
        }
        Command::BenchRunner => bench("counterproof-runner", "bench", &[]),
        Command::BenchCompare { cases } => {
            let cases: Vec<_> = cases.iter().map(usize::to_string).collect();
            bench("counterproof-evaluator", "bench_compare", &cases)
        }
        Command::BenchSafeRun => bench_safe_run::run(),
        Command::BenchReport { cases } => bench_report::run(&cases),
        Command::Browser { reports } => browser::run(&reports),
        Command::Cross => cross::run(),
        Command::Docs => {
            let test = ["test", "--package", "counterproof-tests", "--test", "e2e", "help::"];
            Step::cargo(test).env("UPDATE_DOCS", "1").run()
        }
        Command::Interop => interop::run(),
        Command::Samples { check: false } => samples::record(),
        Command::Samples { check: true } => samples::check(),
    }
}

/// Runs a benchmark, an example of its package, and says first on what.
fn bench(package: &str, example: &str, arguments: &[String]) -> Result<(), Failure> {
    let _ = writeln!(io::stdout(), "machine: {}", machine::notes());
    let run = ["run", "--quiet", "--release", "--package", package, "--example", example, "--"];
    Step::cargo(run).with(arguments).run()
}

/// The end-to-end tests start the programs, which `cargo test` alone would not build. This program is left out: it runs,
/// and some systems do not let a running program be replaced.
fn test(arguments: &[String]) -> Result<(), Failure> {
    Step::cargo(["build", "--workspace", "--exclude", "xtask", "--bins", "--locked"]).run()?;
    Step::cargo(["test", "--workspace", "--locked"]).with(arguments).run()
}
