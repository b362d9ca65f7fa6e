//! The project's own commands: `cargo xtask …`. They need only cargo. The program itself depends on no crate of the project.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod import_cycles;
mod bench_guard;
mod bench_report;
mod bench_safe_run;
mod bench_trust;
mod browser;
mod check;
mod cross;
mod interop;
mod language;
mod machine;
mod readers;
mod samples;
mod step;
mod torture;
mod tree;
mod width;
mod workspace;

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
        /// Arguments for `cargo test`, such as the name of a test.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Format all code.
    Fmt,
    /// Run all checks that are not tests: import cycles, wording, formatting, clippy, documentation, licences, samples.
    Check,
    /// Run the part of `check` that needs no compiler: import cycles, wording, width of documents.
    Source,
    /// Run what CI runs: `check`, `cross`, `test`, one minute of `torture`, `browser` and `interop`.
    Ci,
    /// Measure the runner against a trivial local server. Takes about two minutes.
    BenchRunner,
    /// Measure the cost of a comparison relative to reading and parsing. Takes several minutes.
    BenchCompare {
        /// Number of case pairs [default: 10000 and 100000]
        cases: Vec<usize>,
    },
    /// Measure the search for secrets on texts of several kinds. Takes about two minutes.
    BenchRedaction,
    /// Measure the cost of safe-run relative to the bare command and to `cat`. Takes about a minute.
    BenchSafeRun,
    /// Measure the store of contracts against plain synced files, and the evaluation of expressions. Takes about two minutes
    /// and 1 GB of disk.
    BenchContracts,
    /// Measure the guard against a direct connection, a relay and another gateway, and compare their behaviour. Takes about four
    /// minutes. A gateway that cannot be installed is skipped.
    BenchGuard,
    /// Measure the size of reports of generated runs and the time until a browser can use them. 100,000 cases need about
    /// 10 GB of disk and 10 minutes.
    BenchReport {
        /// Number of case pairs [default: 1000, 10000 and 100000]
        cases: Vec<usize>,
    },
    /// Measure the error rates and the power of the gate on simulated nights, and the rankings and causes on a corpus of real
    /// runs.
    BenchTrust(bench_trust::Args),
    /// Attack the programs at random: kills, full disks, signals, servers, damaged folders and encoded secrets. Fails on any
    /// fault, which prints how to repeat it.
    Torture {
        /// Time for all attacks, in minutes
        #[arg(long, default_value_t = 30.0)]
        minutes: f64,
        /// Number that the random choices follow from [default: the time of day]
        #[arg(long)]
        seed: Option<u64>,
        /// Kinds of attack, or single attempts such as `kill:17` [default: all kinds]
        kinds: Vec<String>,
    },
    /// Test reports in Chromium: links, keys, filters, accessibility, injections. Installs its dependencies, and is skipped
    /// if that fails.
    Browser {
        /// Another report to test, in addition to the generated ones; may be repeated
        #[arg(long = "report", value_name = "DIR")]
        reports: Vec<camino::Utf8PathBuf>,
    },
    /// Check that safe-run compiles for Windows and macOS. A target that is not installed and cannot be added is skipped.
    Cross,
    /// Regenerate `docs/cli.md` from the help of the program.
    Docs,
    /// Test against third-party software, which is installed into `target/interop/`: both OpenAI protocols against litellm,
    /// expressions against the conformance tests of CEL and another implementation, the guard between clients and servers of
    /// the Model Context Protocol, and the ledger in PostgreSQL. A part that cannot be installed is skipped.
    Interop(interop::Options),
    /// Regenerate `sample-runs/`.
    Samples {
        /// Change nothing, and fail if the checked-in files differ from a new recording
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
        Command::Source => check::source(),
        Command::Ci => {
            check::all()?;
            cross::run()?;
            test(&[])?;
            torture::run(torture::SHORT, None, Vec::new())?;
            browser::run(&[])?;
            interop::run(&interop::Options::default())
        }
        Command::BenchRunner => bench("counterproof-runner", "bench", &[]),
        Command::BenchCompare { cases } => {
            let cases: Vec<_> = cases.iter().map(usize::to_string).collect();
            bench("counterproof-report", "bench_compare", &cases)
        }
        Command::BenchRedaction => bench("counterproof-redaction", "throughput", &[]),
        Command::BenchSafeRun => bench_safe_run::run(),
        Command::BenchContracts => {
            bench("counterproof-contracts", "bench_contracts", &[])?;
            bench("counterproof-expression", "bench_expression", &[])
        }
        Command::BenchGuard => bench_guard::run(),
        Command::BenchReport { cases } => bench_report::run(&cases),
        Command::BenchTrust(args) => bench_trust::run(&args),
        Command::Torture { minutes, seed, kinds } => torture::run(minutes, seed, kinds),
        Command::Browser { reports } => browser::run(&reports),
        Command::Cross => cross::run(),
        Command::Docs => {
            let test = ["test", "--package", "counterproof-tests", "--test", "e2e", "help::"];
            Step::cargo(test).env("UPDATE_DOCS", "1").run()
        }
        Command::Interop(options) => interop::run(&options),
        Command::Samples { check: false } => samples::record(),
        Command::Samples { check: true } => samples::check(),
    }
}

/// Runs a benchmark, which is an example of its package. Prints the machine first.
fn bench(package: &str, example: &str, arguments: &[String]) -> Result<(), Failure> {
    let _ = writeln!(io::stdout(), "machine: {}", machine::notes());
    let run = ["run", "--quiet", "--release", "--package", package, "--example", example, "--"];
    Step::cargo(run).with(arguments).run()
}

/// Builds the programs first: the end-to-end tests start them, and `cargo test` alone does not build them. This program is
/// excluded, because some systems do not allow a running program to be replaced.
fn test(arguments: &[String]) -> Result<(), Failure> {
    Step::cargo(["build", "--workspace", "--exclude", "xtask", "--bins", "--locked"]).run()?;
    Step::cargo(["test", "--workspace", "--locked"]).with(arguments).run()
}
