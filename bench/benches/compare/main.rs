//! Measures the cost of a comparison relative to reading and parsing, and the size of a report. It checks no limits.
//!
//! `compare [PAIRS…]` measures the stages; `compare report [PAIRS…]` measures reports, and opens them in a browser if
//! `cargo xtask browser` has installed one; `compare scale [PAIRS]` compares in shards; `compare history [NIGHTS [CASES]]` measures
//! the history from facts.
//!
//! Every stage runs in a separate process of this program, so that its processor time and memory can be measured. The runs
//! are generated from a seed and deleted at the end.

mod agent;
mod generate;
mod history;
mod report;
mod shards;
mod stages;

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use counterproof_report::PageSelection;
use mimalloc::MiMalloc;

// The allocator of the program, so that the stages cost what they cost there; the floor uses it too.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

use counterproof_bench::{Outcome, arguments, machine};

/// Default numbers of case pairs.
const SIZES: [usize; 2] = [10_000, 100_000];

const SEED: u64 = 20_260_303;

/// A stage that is measured.
struct Stage {
    /// The argument of its process.
    argument: &'static str,
    /// The name in the table.
    name: &'static str,
    /// The argument of the stage that does the least work with the same input and output.
    floor: &'static str,
    /// The aim, in multiples of the floor.
    aim: Option<f64>,
}

/// The stages in the order of the table. The comparison with all pages writes the files that the stage after it copies.
const STAGES: [Stage; 6] = [
    Stage { argument: "read", name: "read all files", floor: "parse", aim: None },
    Stage { argument: "parse", name: "read and parse them (floor)", floor: "parse", aim: None },
    Stage { argument: "validate", name: "validate both runs", floor: "parse", aim: Some(1.2) },
    Stage { argument: "compare", name: "compare, without pages", floor: "parse", aim: Some(2.0) },
    Stage { argument: "compare-all", name: "compare, with all pages", floor: "copy", aim: Some(2.0) },
    Stage { argument: "copy", name: "read, parse, and copy the report (floor of all pages)", floor: "copy", aim: None },
];

fn main() -> Outcome {
    let arguments = arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", root, cases] => generate::write_runs(Utf8Path::new(root), SEED, cases.parse()?),
        ["read", root] => stages::read(Utf8Path::new(root), false),
        ["parse", root] => stages::read(Utf8Path::new(root), true),
        ["validate", root] => stages::validate(Utf8Path::new(root)),
        ["copy", root] => stages::copy(Utf8Path::new(root)),
        ["compare", root] => stages::compare(Utf8Path::new(root), PageSelection::None),
        ["compare-all", root] => stages::compare(Utf8Path::new(root), PageSelection::All),
        ["weigh", root, cases] => report::weigh_report(Utf8Path::new(root), SEED, cases.parse()?),
        ["one", root] => shards::one(Utf8Path::new(root)),
        ["facts", root, shard] => shards::facts(Utf8Path::new(root), shard),
        ["from-facts", root, count] => shards::from_facts(Utf8Path::new(root), count),
        ["scale"] => shards::measure(None),
        ["scale", pairs] => shards::measure(Some(pairs)),
        ["write-facts", root, nights, cases] => {
            history::write_facts(Utf8Path::new(root), SEED, nights.parse()?, cases.parse()?)
        }
        ["read-facts", root] => history::read_facts(Utf8Path::new(root)),
        ["history", sizes @ ..] => {
            print_line(&format!("machine: {}", machine()))?;
            history::measure(sizes)
        }
        ["report", sizes @ ..] => {
            print_line(&format!("machine: {}", machine()))?;
            let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<_>, _>>()?;
            report::measure(if sizes.is_empty() { &report::SIZES } else { &sizes })
        }
        sizes => {
            print_line(&format!("machine: {}", machine()))?;
            let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<_>, _>>()?;
            (if sizes.is_empty() { &SIZES[..] } else { &sizes }).iter().try_for_each(|size| measure(*size))
        }
    }
}

/// Generates this number of case pairs, and prints a table of the cost of each stage.
fn measure(cases: usize) -> Outcome {
    let here = camino::Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let folder = tempfile::tempdir_in(here.parent().ok_or("the path of this program has no parent")?)?;
    let root = Utf8Path::from_path(folder.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    print_line(&format!("{cases} case pairs of seed {SEED}\n"))?;
    run_stage(&["generate", root.as_str(), &cases.to_string()])?;
    // Warms the file cache of the system.
    run_stage(&["read", root.as_str()])?;
    let mut measured = HashMap::new();
    for Stage { argument, .. } in &STAGES {
        measured.insert(*argument, Measured::from(&run_stage(&[argument, root.as_str()])?)?);
    }
    // A comparison cannot cost less than reading and parsing its input and writing its output, so the table shows multiples.
    print_line("| stage | CPU, s | of the floor | aim | peak memory, MiB | |")?;
    print_line("|---|---|---|---|---|---|")?;
    for Stage { argument, name, floor, aim } in &STAGES {
        let Measured { cpu, peak, what } = &measured[argument];
        let share = cpu / measured[floor].cpu;
        let aim = aim.map(|aim| format!("{aim:.1} ×")).unwrap_or_default();
        print_line(&format!("| {name} | {cpu:.2} | {share:.2} × | {aim} | {peak:.0} | {what} |"))?;
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
