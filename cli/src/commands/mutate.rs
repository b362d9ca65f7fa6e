//! `counterproof mutate`: puts faults into recorded answers, and reports which kinds the gate does not find.

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, Side, Sides};
use counterproof_evaluator::{ComparedRun, FaultReport, survey_faults, text};
use serde_json::json;

use crate::cases_file;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::layers::Layers;
use crate::named_runs::{RunSelection, side_runs};
use crate::streams::{self, Streams};

/// Cases that the line of a kind names.
const CASES_NAMED: usize = 3;

/// Change recorded answers, and report which kinds of faults the gate does not find.
///
/// Each fault is put into the answers of one case at a time, and the result is compared with the original under your cases and
/// your gate. A fault is killed if the gate then fails. For the others, an expectation is drafted that would kill it. No agent
/// and no model is called.
///
/// The kinds: a call is dropped, repeated or reordered; an id, an amount or a recipient is another one; evidence is lost; the
/// agent refuses; the answer leaks a key, is in another language, is cut, or is the message of a provider whose quota is used up.
/// A kind has no mutant in a case that offers nothing to change.
///
/// Exit code 0: all kinds are killed. 1: a kind survives in at least one case. 2: the arguments or the configuration are invalid.
/// 3: a file could not be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folder, or several repeats of one run [default: the latest run in RUNS/baseline, with its repeats]
    #[arg(value_name = "RUN")]
    run: Vec<Utf8PathBuf>,

    /// Cases of the run, with the expectations that are to find the faults
    #[arg(long, value_name = "PATH")]
    cases: Utf8PathBuf,

    /// Folder of all runs, searched for the latest baseline
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,

    /// Configuration file [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// Maximum number of cases that get a fault of each kind, spread evenly over the run
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    per_kind: u16,

    /// Print JSON, with all drafts
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let config = Config::of_file(&layers.file)?;
    let cases = cases_file::load(&args.cases, streams)?.cases;
    let selection = match args.run.as_slice() {
        [] => RunSelection::Latest { runs: args.runs.clone(), baseline_option: "counterproof mutate" },
        folders => RunSelection::Folders(folders.to_vec()),
    };
    let runs = selection.open(Side::Baseline, streams)?.into_iter().map(ComparedRun::new).collect();
    let baseline = side_runs(runs, Side::Baseline)?;
    let request = config.request(&cases, Sides::new(baseline.clone(), baseline))?;
    let can_confirm = request.baseline.is_repeated() || request.declares_deterministic();
    let reports = survey_faults(request, args.per_kind.into()).map_err(CommandError::io)?;
    if args.json {
        streams.print_document(&streams::to_json(&json!({ "kinds": reports })))?;
    } else {
        print(&reports, streams)?;
    }
    if !can_confirm {
        streams.log(
            "hint: one run of an agent that varies confirms nothing, so that only absolute rules can fail; pass several baseline \
             runs (`run --side baseline --repeat 5`),\n      or set `deterministic = true` below `[agent]` in counterproof.toml if \
             the agent always does the same",
        );
    }
    let survives = reports.iter().any(|report| !report.survived.is_empty());
    Ok(if survives { Exit::Findings } else { Exit::Done })
}

fn print(reports: &[FaultReport], streams: &mut Streams) -> Result<(), CommandError> {
    for report in reports {
        streams.print_line(line(report))?;
    }
    let drafts: Vec<_> = reports.iter().filter_map(|report| Some((report, report.draft.first()?))).collect();
    if drafts.is_empty() {
        return Ok(());
    }
    streams.print_line(
        "\nDrafts that would kill a survivor, one for each kind; `--json` prints all. Read before you copy:",
    )?;
    for (report, draft) in drafts {
        for expect in &draft.expected.expect {
            let expect = streams::to_json_line(expect);
            streams.print_line(format_args!("  {}: case {}, expected.expect: {expect}", report.fault, draft.id))?;
        }
    }
    Ok(())
}

/// One line: `amount     killed 3 of 4; survived in refund_001`.
fn line(report: &FaultReport) -> String {
    let FaultReport { fault, mutants, killed, survived, .. } = report;
    let named: Vec<&str> = survived.iter().take(CASES_NAMED).map(counterproof_artifact::CaseId::as_str).collect();
    let more = match survived.len() - named.len() {
        0 => String::new(),
        more => format!(" and {}", text::count(more, "other case", "other cases")),
    };
    let survivors = if named.is_empty() { String::new() } else { format!("; survived in {}{more}", named.join(", ")) };
    format!("{:<10} killed {killed} of {mutants}{survivors}", fault.as_str())
}
