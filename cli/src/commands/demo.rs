//! `counterproof demo`: two runs and a comparison, against the built-in agent.

use std::num::NonZeroUsize;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, Side};
use counterproof_cases::CaseSpec;
use counterproof_demo::{CASES, PLANTED, Variant};
use counterproof_runner::{Environment, Interrupt, Settings};
use uuid::Uuid;

use crate::cases_file;
use crate::command_error::CommandError;
use crate::commands::demo_folder::{check_verdicts, compare_runs, prepare};
use crate::progress_bar::RunProgress;
use crate::signals::on_signal;
use crate::streams::Streams;

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

/// Runs the command.
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
        streams.log("      counterproof run --cases cases.json --side baseline --base-url URL");
        streams.log(
            "      counterproof run --cases cases.json --side new --base-url URL --confirm 4 --confirm-baseline-url URL",
        );
        streams.log("      counterproof compare --cases cases.json");
    }
    Ok(exit)
}

/// What the runs of both variants share.
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
        settings.timeout = TIMEOUT;
        settings.retry.retries = 1;
        settings.deterministic = true;
        let environment = Environment { interrupt: self.interrupt.clone(), ..Environment::from_system() };
        let mut progress = RunProgress::on_stderr();
        let summary =
            counterproof_runner::run(&settings, self.cases, environment, &mut progress).map_err(CommandError::io)?;
        Ok((!summary.interrupted).then_some(summary.folder))
    }
}
