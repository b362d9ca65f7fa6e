//! Measures the cost of a comparison relative to reading and parsing (`cargo xtask bench-compare`), and the size of a report
//! (`cargo xtask bench-report`). It checks no limits, and its figures are comparable only within one invocation.
//!
//! Every stage runs in a separate process of this program, so that its processor time and memory can be measured. The runs
//! are generated from a seed and deleted at the end.

mod agent;
mod generate;
mod machine;
mod random;
mod stages;

use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use counterproof_evaluator::PageSelection;
use mimalloc::MiMalloc;

// The allocator of the program, so that the stages cost what they cost there; the floor uses it too.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Default numbers of case pairs.
const SIZES: [usize; 2] = [10_000, 100_000];

const SEED: u64 = 20_260_303;

/// The stages: the argument of their process, and the name in the table. The first only warms the cache of the system.
const STAGES: [(&str, &str); 6] = [
    ("read", ""),
    ("read", "read all files"),
    ("parse", "read and parse them (the floor)"),
    ("validate", "validate both runs"),
    ("compare", "compare, without pages"),
    ("compare-all", "compare, with all pages"),
];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", root, cases] => generate::write_runs(Utf8Path::new(root), SEED, cases.parse()?),
        ["read", root] => stages::read(Utf8Path::new(root), false),
        ["parse", root] => stages::read(Utf8Path::new(root), true),
        ["validate", root] => stages::validate(Utf8Path::new(root)),
        ["compare", root] => stages::compare(Utf8Path::new(root), PageSelection::None),
        ["compare-all", root] => stages::compare(Utf8Path::new(root), PageSelection::All),
        ["report", root, cases] => stages::report(Utf8Path::new(root), SEED, cases.parse()?),
        [] => SIZES.into_iter().try_for_each(measure),
        sizes => sizes.iter().try_for_each(|size| measure(size.parse()?)),
    }
}

/// Generates this number of case pairs, and prints a table of the cost of each stage.
fn measure(cases: usize) -> Outcome {
    let here = camino::Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let folder = tempfile::tempdir_in(here.parent().ok_or("the path of this program has no parent")?)?;
    let root = Utf8Path::from_path(folder.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    print_line(&format!("{cases} case pairs of seed {SEED}\n"))?;
    run_stage(&["generate", root.as_str(), &cases.to_string()])?;
    print_line("| stage | CPU, s | of the floor | peak memory, MiB | |")?;
    print_line("|---|---|---|---|---|")?;
    let mut measured = Vec::new();
    for (stage, _) in STAGES {
        measured.push(Measured::from(&run_stage(&[stage, root.as_str()])?)?);
    }
    // A comparison cannot cost less than reading and parsing its input, so the table shows multiples of that.
    let floor = measured[2].cpu;
    for ((_, name), stage) in STAGES.iter().zip(&measured).skip(1) {
        let share = stage.cpu / floor;
        print_line(&format!("| {name} | {:.2} | {share:.2} × | {:.0} | {} |", stage.cpu, stage.peak, stage.what))?;
    }
    print_line("")
}

/// The figures that a stage prints.
struct Measured {
    cpu: f64,
    peak: f64,
    what: String,
}

impl Measured {
    fn from(line: &str) -> Outcome<Self> {
        let mut parts = line.trim().splitn(3, ' ');
        let mut next = || parts.next().ok_or("the output of the stage has another format");
        Ok(Self { cpu: next()?.parse()?, peak: next()?.parse()?, what: next()?.to_owned() })
    }
}

/// Runs a stage in another process of this program. Returns its output.
fn run_stage(arguments: &[&str]) -> Outcome<String> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Prints a line on standard output.
fn print_line(line: &str) -> Outcome {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
