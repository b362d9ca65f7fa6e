//! `counterproof calibrate`: measures with the runs of a baseline how often the gate fails for nothing, and what it would find.

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, Side, Sides};
use counterproof_evaluator::{Calibration, ComparedRun, FalseAlarms, SmallestFall, calibrate, text};
use serde_json::json;

use crate::cases_file;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::layers::Layers;
use crate::named_runs::{RunSelection, side_runs};
use crate::streams::{self, Streams};

/// Measure how often this gate fails on this suite although nothing changed.
///
/// Deals the runs of the baseline out anew as "baseline" and "new", compares each deal, and counts the failed gates. Both sides
/// are the same agent, so each one is a false alarm. Also prints the smallest fall of the suite that would be found with 1, 3, 5
/// and 10 runs a side, and the cases that vary too much to be judged. Needs at least two runs; no agent is called.
///
/// Exit code 0: measured, with any result. 2: the arguments or the configuration are invalid. 3: a file could not be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Baseline run folders: repeats of one agent [default: the latest run in RUNS/baseline, with its repeats]
    #[arg(value_name = "BASELINE")]
    baseline: Vec<Utf8PathBuf>,

    /// Cases of the runs. Without them, expectations are not checked
    #[arg(long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    /// Folder of all runs, searched for the latest baseline
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,

    /// Configuration file [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// Maximum number of deals of each design; more are measured with a sample
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    deals: u16,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let config = Config::of_file(&layers.file)?;
    let cases = if let Some(path) = &args.cases {
        cases_file::load(path, streams)?.cases
    } else {
        streams.log("note: expectations are not checked; to check them, pass `--cases`");
        Vec::new()
    };
    let selection = match args.baseline.as_slice() {
        [] => RunSelection::Latest { runs: args.runs.clone(), baseline_option: "counterproof calibrate" },
        folders => RunSelection::Folders(folders.to_vec()),
    };
    let runs: Vec<_> = selection.open(Side::Baseline, streams)?.into_iter().map(ComparedRun::new).collect();
    if runs.len() < 2 {
        return Err(CommandError::usage("a calibration needs at least two runs of the baseline")
            .hint("make them with `counterproof run --side baseline --repeat 5 …`"));
    }
    let count = text::count(runs.len(), "run", "runs");
    let baseline = side_runs(runs, Side::Baseline)?;
    let request = config.request(&cases, Sides::new(baseline.clone(), baseline))?;
    let power = 100.0 * request.thresholds.power.value();
    let calibration = calibrate(&request, args.deals.into()).map_err(CommandError::io)?;
    if args.json {
        streams.print_document(&streams::to_json(&to_json(&calibration)))?;
        return Ok(Exit::Done);
    }
    for measured in &calibration.false_alarms {
        streams.print_line(false_alarms(measured))?;
    }
    streams
        .print_line(format_args!("smallest fall of the solved runs that is found in {power:.0} of 100 comparisons:"))?;
    for fall in &calibration.smallest_fall {
        streams.print_line(format_args!("  {}", smallest_fall(fall)))?;
    }
    let noisy: Vec<_> = calibration.noisy.iter().map(counterproof_artifact::CaseId::as_str).collect();
    let noisy = if noisy.is_empty() { "none".to_owned() } else { noisy.join(", ") };
    streams.print_line(format_args!("too noisy to judge with {count} a side: {noisy}"))?;
    Ok(Exit::Done)
}

/// One line: `5/5  false alarms 2.0 % (0.8–5.0 %): 4 of 200 (deals drawn at random)`.
fn false_alarms(measured: &FalseAlarms) -> String {
    let FalseAlarms { design, red, deals, is_complete, interval } = measured;
    let of = if *is_complete { "all deals" } else { "deals drawn at random" };
    let percent = |share: f64| 100.0 * share;
    format!(
        "{:<16} false alarms {:.1} % ({:.1}–{:.1} %): {red} of {deals} ({of})",
        design.to_string(),
        percent(measured.share()),
        percent(interval.low),
        percent(interval.high)
    )
}

fn smallest_fall(fall: &SmallestFall) -> String {
    let runs = text::count(fall.runs, "run", "runs");
    match fall.points {
        Some(points) => format!("{runs} a side: {points} points"),
        None => format!("{runs} a side: none, not even a fall to zero"),
    }
}

fn to_json(calibration: &Calibration) -> serde_json::Value {
    let false_alarms = calibration.false_alarms.iter().map(|measured| {
        json!({
            "design": measured.design.to_string(),
            "share": measured.share(),
            "low": measured.interval.low,
            "high": measured.interval.high,
        })
    });
    let falls = calibration.smallest_fall.iter().map(|fall| json!({"runs": fall.runs, "points": fall.points}));
    json!({
        "false_alarms": false_alarms.collect::<Vec<_>>(),
        "smallest_fall": falls.collect::<Vec<_>>(),
        "noisy": calibration.noisy,
    })
}
