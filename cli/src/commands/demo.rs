//! `counterproof demo`: two runs and a comparison against the built-in agent, in a folder that it creates.

use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{Exit, Side};
use counterproof_cases::CaseSpec;
use counterproof_demo::{CASES, PLANTED, Planted, Variant};
use counterproof_runner::{Environment, Interrupt, Settings};
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability};
use uuid::Uuid;

use super::compare::{CompareOptions, compare};
use crate::command_error::CommandError;
use crate::comparison_summary::Detail;
use crate::config::Config;
use crate::named_runs::RunSelection;
use crate::report_output::ReportFiles;
use crate::reporter::RunProgress;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::{cases_file, comparison_summary};

/// Attempt timeout. One case of the demo never answers, so it takes two of these.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Run and compare two versions of the built-in agent.
///
/// Needs no setup and takes a few seconds. The second version of the agent has planted faults, which make the gate fail.
///
/// Exit code 0: every case got the expected verdict, including the planted faults. 1: a case got another verdict. 2: the output folder
/// is in use. 3: a file could not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the cases, the runs and the report
    #[arg(long, value_name = "DIR", default_value = "counterproof-demo")]
    out: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let cases_path = args.out.join("cases.json");
    prepare(&args.out, &cases_path, CASES)?;
    let cases = cases_file::load(&cases_path, streams)?.cases;

    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let demo = Demo { out: &args.out, cases_path: &cases_path, cases: &cases, interrupt: &interrupt };
    let Some(baseline) = demo.run_variant(Variant::Baseline, streams)? else { return Ok(Exit::Interrupted) };
    let Some(new) = demo.run_variant(Variant::New, streams)? else { return Ok(Exit::Interrupted) };

    let evaluation = compare_runs(&args.out, cases_path.clone(), [baseline, new], streams)?;
    let exit = check_verdicts(&args.out, &evaluation, &PLANTED, streams)?;
    if exit == Exit::Done {
        streams.log("next: run your own agent on both sides; docs/agent.md shows a minimal one");
        streams.log("      counterproof run --cases cases.json --side baseline --base-url BASELINE_URL --repeat 5");
        streams.log("      counterproof run --cases cases.json --side new --base-url NEW_URL --confirm");
        streams.log("      counterproof compare --cases cases.json");
    }
    Ok(exit)
}

struct Demo<'a> {
    out: &'a Utf8Path,
    cases_path: &'a Utf8Path,
    cases: &'a [CaseSpec],
    interrupt: &'a Interrupt,
}

impl Demo<'_> {
    /// Runs all cases against one variant of the agent. Returns the run folder, or `None` if interrupted.
    fn run_variant(&self, variant: Variant, streams: &mut Streams) -> Result<Option<Utf8PathBuf>, CommandError> {
        streams.log(format_args!("running {} cases against the {variant} agent …", self.cases.len()));
        let side = match variant {
            Variant::Baseline => Side::Baseline,
            Variant::New => Side::New,
        };
        // The runtime's thread serves the agent while the run blocks this thread.
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().map_err(CommandError::io)?;
        let agent = runtime.block_on(counterproof_demo::start(variant)).map_err(CommandError::io)?;

        let run_id = Uuid::now_v7().to_string().parse().map_err(CommandError::usage)?;
        let base_url = agent.base_url().parse().map_err(CommandError::usage)?;
        let mut settings = Settings::new(run_id, side, base_url, self.cases_path.to_owned(), self.out.join("runs"));
        settings.concurrency = NonZeroUsize::MIN.saturating_add(3).into();
        // Short, because one case never answers.
        settings.timeout = TIMEOUT;
        settings.retry.retries = 1;
        // The built-in agent always gives the same answer, so one run per side decides.
        settings.deterministic = true;
        let environment = Environment { interrupt: self.interrupt.clone(), ..Environment::from_system() };
        let mut progress = RunProgress::on_stderr();
        let summary =
            counterproof_runner::run(&settings, self.cases, environment, &mut progress).map_err(CommandError::io)?;
        Ok((!summary.interrupted).then_some(summary.folder))
    }
}

/// Creates the folder with the cases file. Rejects a folder that is neither empty nor from an earlier demo with these cases.
pub(crate) fn prepare(out: &Utf8Path, cases_path: &Utf8Path, cases: &str) -> Result<(), CommandError> {
    // The cases file of a user must not be replaced.
    reject_foreign_folder(out, cases_path, cases)?;
    write::create_folder(out).map_err(CommandError::io)?;
    write::remove_leftovers_next_to(cases_path);
    write::write(cases_path, cases.as_bytes(), Durability::Cached).map_err(CommandError::io)
}

fn reject_foreign_folder(out: &Utf8Path, cases_path: &Utf8Path, cases: &str) -> Result<(), CommandError> {
    let empty = match out.read_dir_utf8() {
        // An interrupted demo can leave an unfinished file.
        Ok(mut entries) => {
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().starts_with(write::TEMPORARY_PREFIX)))
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if empty || read_file::read(cases_path, read_file::MAX_SMALL_BYTES).is_ok_and(|bytes| bytes == cases.as_bytes()) {
        return Ok(());
    }
    let message = format!("`{out}` exists and is not a folder of this demo");
    Err(CommandError::usage(message).hint("choose another folder with `--out`"))
}

pub(crate) fn compare_runs(
    out: &Utf8Path,
    cases_path: Utf8PathBuf,
    [baseline, new]: [Utf8PathBuf; 2],
    streams: &mut Streams,
) -> Result<Evaluation, CommandError> {
    // Not the configuration of the working folder, whose gate would change the expected verdicts.
    let mut config = Config::default();
    config.agent.deterministic = true;
    let options = CompareOptions {
        baseline: RunSelection::Folders(vec![baseline]),
        new: RunSelection::Folders(vec![new]),
        cases: Some(cases_path),
        config,
        out: out.join("report"),
        files: ReportFiles::default(),
        report_url: None,
        write_back: true,
        only: None,
        is_alone: false,
        facts: None,
    };
    let evaluation = compare(&options, streams)?.evaluation;
    streams.print_summary(&comparison_summary::render(&evaluation, Detail::Brief, None))?;
    Ok(evaluation)
}

/// Checks that every case got the expected verdict, and prints where the report is.
pub(crate) fn check_verdicts(
    out: &Utf8Path,
    evaluation: &Evaluation,
    planted: &[Planted],
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let index = out.join("report/index.html");
    let unexpected = unexpected_verdicts(evaluation, planted, streams);
    if unexpected > 0 {
        let total = planted.len();
        streams.print_line(format_args!("{unexpected} of {total} cases got an unexpected verdict; report: {index}"))?;
        return Ok(Exit::Findings);
    }
    streams.print_line(
        "Demo complete: every case got the expected verdict. The gate fails because of the planted faults.",
    )?;
    streams.print_line(format_args!("Open the report: {index}"))?;
    Ok(Exit::Done)
}

/// Warns about each case that did not get the expected verdict. Returns their number.
fn unexpected_verdicts(evaluation: &Evaluation, planted: &[Planted], streams: &mut Streams) -> usize {
    let mut unexpected = 0;
    for planted in planted {
        let case = evaluation.cases.iter().find(|case| case.case_id.as_str() == planted.case_id);
        let verdict = case.map_or("missing", |case| case.verdict.as_str());
        if verdict != planted.verdict {
            unexpected += 1;
            let (id, expected, story) = (planted.case_id, planted.verdict, planted.story);
            streams.warn(format_args!("the verdict of `{id}` is {verdict}, expected {expected}: {story}"));
        }
    }
    unexpected
}
