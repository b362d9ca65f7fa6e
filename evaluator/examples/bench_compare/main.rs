//! Measures what comparing costs beyond reading and parsing, `cargo xtask bench-compare`, and what a report weighs,
//! `cargo xtask bench-report`. Not a test: it holds nothing
//! against a limit, and its figures mean something only beside each other.
//!
//! Every stage is a process of its own, so that each has its own processor time and memory; all are this program. What
//! they work on is generated from a seed, and gone when the bench ends.

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

/// How many case pairs are compared, where the caller does not say.
const SIZES: [usize; 2] = [10_000, 100_000];

const SEED: u64 = 20_260_303;

/// The stages, by the word that their process is started with. The first only warms the system's cache.
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

/// Generates so many case pairs, and prints the table of what each stage took.
fn measure(cases: usize) -> Outcome {
    let here = camino::Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let folder = tempfile::tempdir_in(here.parent().ok_or("this program is nowhere")?)?;
    let root = Utf8Path::from_path(folder.path()).ok_or("the folder's name is not UTF-8")?;
    say(&format!("{cases} case pairs of seed {SEED}\n"))?;
    role(&["generate", root.as_str(), &cases.to_string()])?;
    say("| stage | CPU, s | of the floor | peak memory, MiB | |")?;
    say("|---|---|---|---|---|")?;
    let mut measured = Vec::new();
    for (stage, _) in STAGES {
        measured.push(Measured::from(&role(&[stage, root.as_str()])?)?);
    }
    let floor = measured[2].cpu;
    for ((_, name), stage) in STAGES.iter().zip(&measured).skip(1) {
        let share = stage.cpu / floor;
        say(&format!("| {name} | {:.2} | {share:.2} × | {:.0} | {} |", stage.cpu, stage.peak, stage.what))?;
    }
    say("")
}

/// What a stage says of itself.
struct Measured {
    cpu: f64,
    peak: f64,
    what: String,
}

impl Measured {
    fn from(line: &str) -> Outcome<Self> {
        let mut parts = line.trim().splitn(3, ' ');
        let mut next = || parts.next().ok_or("the stage said something else");
        Ok(Self { cpu: next()?.parse()?, peak: next()?.parse()?, what: next()?.to_owned() })
    }
}

/// Runs this program as another process with a role of its own, and gives what it said.
fn role(arguments: &[&str]) -> Outcome<String> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Says a line on standard output.
fn say(line: &str) -> Outcome {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
