//! The project's own commands: `cargo xtask …`. They need only cargo. The program itself depends on no crate of the project.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};

mod browser;
mod check;
mod cluster;
mod dist;
mod folders;
mod import_cycles;
mod interop;
mod language;
mod programs;
mod readers;
mod samples;
mod step;
mod test_runs;
mod workspace;

use step::{Failure, Step};
use test_runs::{acceptance, bench_scale, bench_trust, cross, docs, test, torture};

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
    /// Run the acceptance tests of workflows with a scripted model. Skipped without Python 3.10.
    Acceptance {
        /// Parts of the names of tests [default: all tests]
        names: Vec<String>,
    },
    /// Run what CI runs: `check`, `cross`, `test`, `acceptance`, `dist`, one minute of `torture`, `browser` and `interop`.
    Ci,
    /// Measure how far verdicts can be trusted: false alarms and power over simulated nights, and a corpus of real runs if there is
    /// one. Hours with the default number of nights.
    BenchTrust {
        /// Arguments for the benchmark `trust`, such as `simulations --nights 100 --only 5/5`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure a comparison in shards against one process: processor time, memory and files. 10 minutes and 3 GB of disk with the
    /// default number of pairs.
    BenchScale {
        /// Number of case pairs [default: 100000]
        pairs: Option<u32>,
    },
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
    /// Run the files of `counterproof batch` on Slurm, Dask and the schemas of Kubernetes. A part that cannot be installed is skipped.
    Cluster(cluster::Options),
    /// Check that safe-run compiles for Windows and macOS. A target that is not installed and cannot be added is skipped.
    Cross,
    /// Build what is published into `dist/`: archives, a wheel, packages of npm, an SBOM and checksums. What this machine cannot build
    /// is skipped.
    Dist(dist::Options),
    /// Regenerate `docs/cli.md` from the help of the program.
    Docs,
    /// Test against third-party software, which is installed into the cache folder of the user: both OpenAI protocols against litellm,
    /// expressions against the conformance tests of CEL and another implementation, the guard between clients and servers of
    /// the Model Context Protocol, the recording proxy between the official clients of OpenAI and Anthropic and a scripted server,
    /// exports and CI files with published schemas and linters, the agents of `examples/` with the packages of their frameworks, and
    /// the ledger in PostgreSQL. A part that cannot be installed is skipped.
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
        Command::Acceptance { names } => acceptance(&names),
        Command::Ci => ci(),
        Command::BenchTrust { arguments } => bench_trust(&arguments),
        Command::BenchScale { pairs } => bench_scale(pairs),
        Command::Torture { minutes, seed, kinds } => torture(minutes, seed, kinds),
        Command::Browser { reports } => browser::run(&reports),
        Command::Cluster(options) => cluster::run(options),
        Command::Cross => cross(),
        Command::Dist(options) => dist::run(options),
        Command::Docs => docs(),
        Command::Interop(options) => interop::run(&options),
        Command::Samples { check: false } => samples::record(),
        Command::Samples { check: true } => samples::check(),
    }
}

/// Runs everything.
fn ci() -> Result<(), Failure> {
    thread::scope(|scope| {
        // Downloads wait for the network, so they run next to the compiler.
        let downloads = scope.spawn(|| browser::install().and_then(|_| interop::prepare()));
        check::all()?;
        cross()?;
        test(&[])?;
        acceptance(&[])?;
        // For this machine and with the profile of the tests, which have built most of it.
        dist::run(dist::Options { debug: true, host: true, check: true })?;
        joined(downloads)
    })?;
    thread::scope(|scope| {
        // The attacks have a fixed time, so they run next to the suites of other programs. One seed: a fault that only another
        // seed finds is not caused by the change that CI judges.
        let attacks = scope.spawn(|| torture(test_runs::SHORT_TORTURE, Some(1), Vec::new()));
        let suites = browser::run(&[]).and_then(|()| interop::run(&interop::Options::default()));
        joined(attacks).and(suites)
    })
}

fn joined(thread: thread::ScopedJoinHandle<'_, Result<(), Failure>>) -> Result<(), Failure> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
