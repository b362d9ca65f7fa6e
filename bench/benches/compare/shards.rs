//! A comparison in shards, measured against the same one in one process.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_bench::{Outcome, machine, target_folder};
use counterproof_cases::Shard;
use counterproof_evaluator::{Request, ShardFacts, write_shard_facts};
use counterproof_report::{PageSelection, ReportWriter};

use crate::report::clear;
use crate::stages::{compare_into, open, print_costs};
use crate::{Measured, print_line, run_stage};

/// The default number of case pairs. They need about 3 GB of disk and 10 minutes.
const PAIRS: &str = "100000";

/// The numbers of shards.
const SHARDS: [u32; 4] = [1, 2, 4, 8];

/// The aim for the processor time of all shards and the end, in multiples of one process.
const AIM: f64 = 1.15;

/// Generates case pairs, compares them in one process and in shards, and prints a table.
pub(crate) fn measure(pairs: Option<&str>) -> Outcome {
    let pairs = pairs.unwrap_or(PAIRS);
    let cases: f64 = pairs.parse()?;
    let scratch = target_folder().join("bench-scale");
    clear(&scratch)?;
    let root = scratch.as_str();
    print_line(&format!("machine: {}\n{pairs} case pairs, pages of those that changed\n", machine()))?;
    run_stage(&["generate", root, pairs])?;
    run_stage(&["read", root])?;
    let one = Measured::from(&run_stage(&["one", root])?)?;
    print_line(&format!("one process: {:.1} s of CPU, peak memory {:.0} MiB, {}\n", one.cpu, one.peak, one.what))?;
    print_line(&format!(
        "| shards | CPU of the shards, s | of the end, s | all ÷ one process (aim {AIM}) | peak memory of a shard, MiB | of the end, \
         MiB | of the end, KB a case | facts, files | KB a case |"
    ))?;
    print_line("|---|---|---|---|---|---|---|---|---|")?;
    for shards in SHARDS {
        let count = shards.to_string();
        let (mut cpu, mut peak) = (0.0, 0.0_f64);
        for shard in 1..=shards {
            let of_shard = Measured::from(&run_stage(&["facts", root, &format!("{shard}/{count}")])?)?;
            cpu += of_shard.cpu;
            peak = peak.max(of_shard.peak);
        }
        let end = Measured::from(&run_stage(&["from-facts", root, &count])?)?;
        check_equal(&scratch, &count)?;
        let (files, bytes) = weigh(&facts_folder(&scratch, &count))?;
        print_line(&format!(
            "| {shards} | {cpu:.1} | {:.1} | {:.2} × | {peak:.0} | {:.0} | {:.1} | {files} | {:.2} |",
            end.cpu,
            (cpu + end.cpu) / one.cpu,
            end.peak,
            end.peak * 1024.0 * 1.024 / cases,
            bytes as f64 / 1000.0 / cases,
        ))?;
    }
    clear(&scratch)
}

fn facts_folder(root: &Utf8Path, count: &str) -> Utf8PathBuf {
    root.join(format!("facts-{count}"))
}

fn report_folder(root: &Utf8Path, name: &str) -> Utf8PathBuf {
    root.join(format!("report-{name}"))
}

/// Compares in this process.
pub(crate) fn one(root: &Utf8Path) -> Outcome {
    let evaluation = compare_into(root, &report_folder(root, "one"), PageSelection::Changed)?;
    print_costs(&format!("{} cases", evaluation.cases.len()))
}

/// Writes the facts of a shard.
pub(crate) fn facts(root: &Utf8Path, shard: &str) -> Outcome {
    let shard: Shard = shard.parse()?;
    let request = Request::new(open(root, Side::Baseline)?.into(), open(root, Side::New)?.into());
    write_shard_facts(&request, shard, &facts_folder(root, &shard.count().to_string()))?;
    print_costs("facts")
}

/// Makes the report from the facts of all shards.
pub(crate) fn from_facts(root: &Utf8Path, count: &str) -> Outcome {
    let pages = PageSelection::Changed;
    let request = Request::new(open(root, Side::Baseline)?.into(), open(root, Side::New)?.into());
    let facts = ShardFacts::read(&request, &facts_folder(root, count))?;
    let report = ReportWriter::create(&report_folder(root, count), &request)?;
    let report = report.with_verdicts(facts.verdicts()).with_pages(pages);
    let evaluation = facts.compare(|verdict| pages.includes(verdict), |case| report.write_case(case))?;
    report.finish(&evaluation)?;
    print_costs("a report")
}

/// Fails unless the evaluation is that of one process, byte for byte.
fn check_equal(root: &Utf8Path, count: &str) -> Outcome {
    let read = |name: &str| fs::read(report_folder(root, name).join("evaluation.json"));
    if read("one")? == read(count)? { Ok(()) } else { Err(format!("{count} shards give another evaluation").into()) }
}

/// The number of files in a folder, and their bytes.
fn weigh(folder: &Utf8Path) -> Outcome<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in folder.read_dir_utf8()? {
        files += 1;
        bytes += entry?.metadata()?.len();
    }
    Ok((files, bytes))
}
