//! The arguments of `ledger export`.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, RunId, Side};

use crate::commands::ledger::time_args::{Since, since};
use crate::value_parsers::{new_case_id, new_run_id};

/// Write the events as they were recorded, or recorded runs as artifacts that can be compared.
///
/// Without `--side`, the events are written in the order of their arrival. `--out` writes each line with the bytes that its producer
/// wrote, but for a carriage return at its end, which is not stored. On standard output, characters that steer a terminal are JSON
/// escapes, which have the same meaning.
///
/// With `--side`, each run becomes a case in the run folder RUNS/SIDE/ID. Its tool calls are the steps, and its status is the final
/// output. The cases are added to RUNS/ledger.cases.json, with the expectations that the run succeeds and that no call is refused. The
/// run folder is complete or not there at all.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Format of the events
    #[arg(long, value_enum)]
    pub(super) format: Option<Format>,

    /// Only events of this run; with `--side`, a run to export [default: the latest run with calls or an agent]
    #[arg(long, value_name = "ID")]
    pub(super) run: Vec<String>,

    /// Only events from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(super) since: Option<Since>,

    /// File to write [default: standard output]; with `--side`, the folder of all runs [default: runs]
    #[arg(long, value_name = "PATH")]
    pub(super) out: Option<Utf8PathBuf>,

    /// Export runs as artifacts, for this side of a comparison
    #[arg(long)]
    pub(super) side: Option<Side>,

    /// ID of the exported run and name of its folder [default: that of the recorded run]
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    pub(super) run_id: Option<RunId>,

    /// Case ID of a single run [default: the label `case_id` of its workload, its agent, or `session`]
    #[arg(long, value_name = "ID", value_parser = new_case_id)]
    pub(super) case_id: Option<CaseId>,
}

/// What the events become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One event per line
    Jsonl,
}
