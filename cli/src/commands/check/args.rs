//! The arguments of `counterproof check`.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use counterproof_report::ReportUrl;

use crate::report_output::ReportFiles;
use crate::request_args::RequestArgs;
use crate::run_plan::{ConfirmRuns, DEFAULT_CONFIRM_MAX};
use crate::value_parsers::at_least_one;

/// Run the cases against the agent, compare the answers with the baseline, and report the verdict.
///
/// Reads counterproof.toml, which `counterproof init` writes. Starts the agent if `start` is configured, runs the cases, runs those
/// that look worse again, compares with the latest baseline, writes the report and prints the verdict. Without a baseline, runs
/// the configured agent of the baseline, or else judges by the expectations alone.
///
/// Exit code 0: the gate passed; without a baseline, all cases were answered and all expectations are met. 1: the gate failed or is
/// undecided. 2: the arguments, the configuration or the cases are invalid. 3: the agent could not be started or reached, or a
/// file could not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Cases to run: a file (.json, .jsonl, .yaml) or a folder of such files [default: `cases` below `[run]` in the configuration]
    #[arg(help_heading = "Selection", long, value_name = "PATH")]
    pub(super) cases: Option<Utf8PathBuf>,

    #[command(flatten)]
    pub(super) request: RequestArgs,

    /// Run only the cases whose ID matches; `*` matches any characters; can be repeated
    #[arg(help_heading = "Selection", long, value_name = "PATTERN,…", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// Run only the cases with this tag; can be repeated
    #[arg(help_heading = "Selection", long, value_name = "TAG,…", value_delimiter = ',')]
    pub(super) tag: Vec<String>,

    /// Run only the cases of this suite; can be repeated
    #[arg(help_heading = "Selection", long, value_name = "SUITE,…", value_delimiter = ',')]
    pub(super) suite: Vec<String>,

    /// Run only the cases that did not meet an expectation, were worse or got no answer in the last check
    #[arg(help_heading = "Selection", long)]
    pub(super) last_failed: bool,

    /// Folder of all runs
    #[arg(help_heading = "Output", long, value_name = "RUNS", default_value = "runs")]
    pub(super) out: Utf8PathBuf,

    /// Report folder
    #[arg(help_heading = "Output", long, value_name = "DIR", default_value = "report")]
    pub(super) report: Utf8PathBuf,

    #[command(flatten)]
    pub(super) files: ReportFiles,

    /// URL of the published report, for the links in summary.md: its folder with a trailing `/`, or a page that contains it
    #[arg(help_heading = "Output", long, value_name = "URL")]
    pub(super) report_url: Option<ReportUrl>,

    /// Run the baseline side first, even if a baseline is stored
    #[arg(help_heading = "Comparison", long)]
    pub(super) baseline_start: bool,

    /// Make N runs of the baseline, if this command runs it; with `--confirm off`, also N runs of new
    #[arg(help_heading = "Comparison", long, value_name = "N", value_parser = at_least_one)]
    pub(super) repeat: Option<NonZeroU32>,

    /// How often cases that look worse run again: as often as it takes to exclude chance, N times, or never
    #[arg(help_heading = "Comparison", long, value_name = "N|auto|off", default_value = "auto")]
    pub(super) confirm: ConfirmRuns,

    /// With --confirm auto: maximum number of further runs of a case
    #[arg(help_heading = "Comparison", long, value_name = "N", default_value_t = DEFAULT_CONFIRM_MAX, value_parser = at_least_one)]
    pub(super) confirm_max: NonZeroU32,

    /// Exit with code 1 if the gate has nothing to judge by: no expectations and one run per side
    #[arg(help_heading = "Comparison", long)]
    pub(super) strict: bool,

    /// Output of the verdict
    #[arg(help_heading = "Output", long, value_enum, value_name = "FORMAT", default_value_t = Format::Human)]
    pub(super) format: Format,

    /// Print the verdict alone
    #[arg(help_heading = "Output", long, short, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Print a line for each case, and all rules of the gate
    #[arg(help_heading = "Output", long, short)]
    pub(super) verbose: bool,

    /// Open the report in a browser at the end
    #[arg(help_heading = "Output", long)]
    pub(super) open: bool,

    /// Run again whenever the cases, the configuration or a --watch-path changes, until Ctrl-C
    #[arg(help_heading = "Output", long, conflicts_with_all = ["last_failed", "open", "quiet"])]
    pub(super) watch: bool,

    /// With --watch: also watch this file or folder; can be repeated
    #[arg(help_heading = "Output", long, value_name = "PATH", requires = "watch")]
    pub(super) watch_path: Vec<Utf8PathBuf>,
}

impl Args {
    /// Returns whether the output is a JSON document.
    pub(crate) fn prints_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// The form in which the verdict is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text for a terminal
    Human,
    /// One JSON document
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// The summary for a pull request
    Markdown,
}
