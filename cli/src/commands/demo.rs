//! `counterproof demo`: the main job from end to end, against the built-in agent.

use std::num::NonZeroUsize;
use std::time::Duration;
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{Exit, Side};
use counterproof_cases::CaseSpec;
use counterproof_demo::{CASES, PLANTED, Variant};
use counterproof_runner::{Environment, Interrupt, Settings};
use counterproof_store::write::{self, Durability};
use uuid::Uuid;

use crate::command_error::CommandError;
use crate::commands::compare;
use crate::config::Config;
use crate::progress_bar::Progress;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::{cases_file, comparison_summary};

/// One case never answers, and the demo waits for it this long, twice.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Run the built-in agent in two versions and compare them.
///
/// Needs nothing but this program and a few seconds. The second version of the agent has planted faults, so the gate of
/// the comparison fails: that is what the demo shows.
///
/// Exit code 0: everything went as planted. 1: it did not. 3: a file could not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the cases, the runs and the report go
    #[arg(long, value_name = "DIR", default_value = "counterproof-demo")]
    out: Utf8PathBuf,
}

/// A demo may go where nothing is, or where a demo was; what is not its own it leaves alone.
fn refuse_foreign(out: &Utf8Path, cases_path: &Utf8Path) -> Result<(), CommandError> {
    let empty = match out.read_dir_utf8() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if empty || fs::read(cases_path).is_ok_and(|bytes| bytes == CASES.as_bytes()) {
        return Ok(());
    }
    let message = format!("`{out}` is there already and is not a demo, so nothing was written there");
    Err(CommandError::usage(message).hint("choose another folder with `--out`"))
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let cases_path = args.out.join("cases.json");
    refuse_foreign(&args.out, &cases_path)?;
    write::create_folder(&args.out).map_err(CommandError::io)?;
    write::write(&cases_path, CASES.as_bytes(), Durability::Cached).map_err(CommandError::io)?;
    let cases = cases_file::load(&cases_path, streams)?.cases;

    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let mut ask = |variant, side| {
        streams.note(format_args!("asking the {variant} agent {} cases …", cases.len()));
        ask(&args.out, &cases_path, &cases, (variant, side), &interrupt)
    };
    let Some(baseline) = ask(Variant::Baseline, Side::Baseline)? else { return Ok(Exit::Interrupted) };
    let Some(new) = ask(Variant::New, Side::New)? else { return Ok(Exit::Interrupted) };

    let report = args.out.join("report");
    let request = compare::Args {
        baseline: Some(baseline),
        new: Some(new),
        baseline_runs: Vec::new(),
        new_runs: Vec::new(),
        runs: args.out.join("runs"),
        cases: Some(cases_path),
        out: report.clone(),
        config: None,
        allow_unpaired: false,
        no_write_back: false,
        pages: compare::Pages::All,
        report_url: None,
    };
    let evaluation = compare::compare(&request, Config::default(), streams)?;
    streams.say(comparison_summary::render(&evaluation))?;
    finish(&evaluation, &report, streams)
}

/// Asks one variant all cases, and gives the run folder unless it was interrupted.
fn ask(
    out: &Utf8Path,
    cases_path: &Utf8Path,
    cases: &[CaseSpec],
    (variant, side): (Variant, Side),
    interrupt: &Interrupt,
) -> Result<Option<Utf8PathBuf>, CommandError> {
    // The agent is served on this runtime's thread, while the run blocks ours.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().map_err(CommandError::io)?;
    let agent = runtime.block_on(counterproof_demo::start(variant)).map_err(CommandError::io)?;

    let run_id = Uuid::now_v7().to_string().parse().map_err(CommandError::usage)?;
    let base_url = agent.base_url().parse().map_err(CommandError::usage)?;
    let mut settings = Settings::new(run_id, side, base_url, cases_path.to_owned(), out.join("runs"));
    settings.concurrency = NonZeroUsize::MIN.saturating_add(3).into();
    settings.timeout = TIMEOUT;
    settings.retry.retries = 1;
    let environment = Environment { interrupt: interrupt.clone(), ..Environment::of_system() };
    let mut progress = Progress::on_stderr();
    let summary = counterproof_runner::run(&settings, cases, environment, &mut progress).map_err(CommandError::io)?;
    Ok((!summary.interrupted).then_some(summary.folder))
}

/// Says whether every case got the verdict that was planted, and where to look now.
fn finish(evaluation: &Evaluation, report: &Utf8Path, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut surprises = 0;
    for planted in &PLANTED {
        let verdict = evaluation.cases.iter().find(|case| case.case_id.as_str() == planted.case_id);
        let verdict = verdict.map_or("missing", |case| case.verdict.as_str());
        if verdict != planted.verdict {
            surprises += 1;
            streams.note(format_args!(
                "warning: `{}` is {verdict}; planted was {}: {}",
                planted.case_id, planted.verdict, planted.story
            ));
        }
    }
    let index = report.join("index.html");
    if surprises > 0 {
        streams
            .say(format_args!("{surprises} of {} cases did not go as planted; the report: {index}", PLANTED.len()))?;
        return Ok(Exit::Findings);
    }
    streams.say("The demo worked: every case went as planted, and the gate fails because of the planted faults.")?;
    streams.say(format_args!("Open the report: {index}"))?;
    Ok(Exit::Done)
}
