//! The arguments of `counterproof compare`.

use camino::Utf8PathBuf;
use counterproof_report::ReportUrl;

use crate::report_output::Pages;

/// Compare a new run with a baseline, write a report, and check the gate.
///
/// The report is a folder that opens from disk: index.html, a page per case, evaluation.json, and the exports summary.md for pull
/// requests, junit.xml for CI servers and results.sarif for code hosts. If `GITHUB_STEP_SUMMARY` names a file, as in GitHub
/// Actions, the summary is appended to it.
///
/// Exit code 0: the gate passed, or had nothing to judge by. 1: the gate failed, or there was not enough data. 2: the arguments or the configuration are
/// invalid. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Baseline run folder [default: the latest run in RUNS/baseline, with its repeats]
    #[arg(value_name = "BASELINE", requires = "new")]
    pub(super) baseline: Option<Utf8PathBuf>,

    /// New run folder [default: the latest run in RUNS/new, with its repeats]
    #[arg(value_name = "NEW")]
    pub(super) new: Option<Utf8PathBuf>,

    /// Baseline run folders: repeats, from which the agent's noise is estimated
    #[arg(long = "baseline", value_name = "DIR", num_args = 1.., conflicts_with = "baseline")]
    pub(super) baseline_runs: Vec<Utf8PathBuf>,

    /// New run folders: repeats
    #[arg(long = "new", value_name = "DIR", num_args = 1.., conflicts_with = "new")]
    pub(super) new_runs: Vec<Utf8PathBuf>,

    /// Folder of all runs, searched for the latest run of a side without run folders
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    pub(super) runs: Utf8PathBuf,

    /// Cases of the runs: adds their titles to the report and checks their expectations on both sides
    #[arg(long, value_name = "PATH")]
    pub(super) cases: Option<Utf8PathBuf>,

    /// Report folder
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(super) out: Utf8PathBuf,

    /// Cases that get a page in the report
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Pages::All)]
    pub(super) pages: Pages,

    /// URL of the published report, for the links in summary.md: its folder with a trailing `/`, or a page that contains it
    #[arg(long, value_name = "URL")]
    pub(super) report_url: Option<ReportUrl>,

    /// Configuration file [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,

    /// Exit with code 1 if the gate has nothing to judge by: no expectations and one run per side
    #[arg(long)]
    pub(super) strict: bool,

    /// Do not fail the gate if the two sides have different cases
    #[arg(long)]
    pub(super) allow_unpaired: bool,

    /// Do not write evaluation.json into the run folders
    #[arg(long)]
    pub(super) no_write_back: bool,
}
