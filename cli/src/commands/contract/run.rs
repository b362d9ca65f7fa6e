//! `counterproof contract run`: executes contracts and verifies them.

use std::env;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, RunId, Side};
use counterproof_contracts::execution::{OutputSource, RollbackMode, RunSettings};
use counterproof_contracts::process::Cancellation;
use counterproof_contracts::resources::{LOCKS_FOLDER, LOCKS_VARIABLE};
use counterproof_contracts::run_many::{ContractEnd, Selected, Selection, SelectionError, preview, run_many, select};
use counterproof_contracts::{Actor, ContractId, State, Store};
use counterproof_redaction::{Redactor, SHORTEST};
use serde_json::{Value, json};

use super::project::{Project, agent_name, existing_folder, now, protected};
use super::run_folder::RunFolder;
use super::run_reporter;
use super::run_reporter::Failure;
use super::run_reporter::RunReporter;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::value_parsers::{duration, new_run_id};

/// Execute contracts: obtain the output, verify it, and undo failed work.
///
/// The output of a contract is a JSON file (`--output`), or what an agent command prints (`--agent-cmd`), which reads the
/// contract's input as JSON from standard input. Contracts are executed in the order of their dependencies. What was executed is also written as
/// a run folder, which `counterproof compare` reads.
///
/// Exit code 0: all contracts are met. 1: a contract is not met, or waits for an approval. 2: invalid arguments, or a contract cannot be executed. 3: a file could
/// not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each one is an option of the command line")]
pub(crate) struct Args {
    /// Contracts
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<ContractId>,

    /// Every contract that is pending or ready, and those whose execution was interrupted
    #[arg(long)]
    all: bool,

    /// Folder in which the commands run
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) workdir: Utf8PathBuf,

    /// Output of the contract as a JSON file; or a folder with one file for each contract, named after its case: `shop~refund~001.json`
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<Utf8PathBuf>,

    /// Command line that prints the output of a contract as JSON
    #[arg(long, value_name = "CMD", conflicts_with = "output")]
    pub(super) agent_cmd: Option<String>,

    /// Time limit of the agent command
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub(super) agent_timeout: std::time::Duration,

    /// Name of the agent that claims the contracts
    #[arg(long, value_name = "NAME", default_value = "counterproof", value_parser = agent_name)]
    pub(super) owner: Actor,

    /// How many contracts are executed at the same time
    #[arg(long, short, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,

    /// How long to wait for a port, a path, a session or a contract that another process holds
    /// [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<std::time::Duration>,

    /// Environment variable whose value is masked in everything that is stored; can be repeated. Keys of known formats are always masked
    #[arg(long, value_name = "NAME")]
    pub(super) redact_env: Vec<String>,

    /// Leave failed work in place; the contract stays failed and can be run again
    #[arg(long)]
    pub(super) no_rollback: bool,

    /// Require the approval of a person for every contract
    #[arg(long)]
    pub(super) require_approval: bool,

    /// Check everything that can be checked without running a command, print the plan, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Side of the comparison that the run folder belongs to
    #[arg(long, default_value = "new")]
    side: Side,

    /// ID of the run and name of its folder [default: the time]
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    run_id: Option<RunId>,

    /// Folder of all runs; the run is written to RUNS/SIDE/ID
    #[arg(long, value_name = "RUNS", default_value = super::project::RUNS)]
    pub(super) out: Utf8PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    if args.output.is_none() && args.agent_cmd.is_none() && !args.dry_run {
        let hint = "pass `--agent-cmd CMD` for an agent, or `--output FILE` for work that is done";
        return Err(Failure::refused("usage", "there is no output to verify").hint(hint));
    }
    let settings = settings(args, &project.store)?;
    let store = project.open(streams)?;
    let selection =
        if args.all { Selection::All { owner: settings.owner.clone() } } else { Selection::Ids(args.ids.clone()) };
    let selected = select(&store, &selection)?;
    if selected.is_empty() {
        return nothing_to_run(&store, project, streams);
    }
    if args.dry_run {
        return print(&store, &selected, &settings, project, streams);
    }
    // Repairs a torn last line before the work begins, and warns about it.
    drop(super::project::edit(&store, streams)?);
    let cancellation = settings.cancellation.clone();
    on_signal(move || cancellation.cancel()).map_err(Failure::io)?;
    let contracts = selected.iter().map(|it| &it.contract);
    if selected.len() > 1 && matches!(settings.source, OutputSource::File(_)) {
        let message = "one output file cannot be the output of several contracts";
        return Err(Failure::refused("usage", message).hint("pass a folder with one file for each contract"));
    }
    let folder = RunFolder::create(&args.out, args.side, args.run_id.clone(), &settings.redactor, contracts)?;
    let reporter = RunReporter::new(selected.len(), project.is_json);
    let ends = run_many(&store, &selected, &settings, args.jobs, &|step| {
        folder.observe(step);
        reporter.observe(step);
    })?;
    reporter.finish();
    // The results are printed first: they are true, whether or not the run folder could be written.
    run_reporter::print(&selected, &ends, &folder.planned(), project, streams)?;
    folder.finish()?;
    Ok(exit(&ends))
}

/// Ends a run of all contracts if none of them can be run. That is no failure if all of them are met.
fn nothing_to_run(store: &Store, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let counts = store.counts()?;
    let open = counts.iter().filter(|(state, _)| !matches!(state, State::Completed | State::Cancelled));
    let (open, all): (u64, u64) = (open.map(|(_, count)| count).sum(), counts.values().sum());
    if open == 0 && all > 0 {
        let document = serde_json::json!({ "met": all, "contracts": [] });
        project.print(streams, &document, || "nothing to run: all contracts are completed or cancelled".to_owned())?;
        return Ok(Exit::Done);
    }
    let message = "no contract is pending or ready";
    Err(Failure::refused("nothing_to_run", message)
        .hint("see `counterproof contract status`; name failed contracts to run them again"))
}

/// Returns the exit code: the most severe of all contracts.
fn exit(ends: &[ContractEnd]) -> Exit {
    use counterproof_contracts::execution::VerificationStatus;

    let code = |end: &ContractEnd| match end {
        ContractEnd::Executed(execution) => match execution.verdict {
            VerificationStatus::Met | VerificationStatus::AlreadyMet => Exit::Done,
            VerificationStatus::NotMet | VerificationStatus::AwaitsApproval => Exit::Findings,
            VerificationStatus::Interrupted => Exit::Interrupted,
        },
        ContractEnd::Blocked { .. } => Exit::Findings,
        ContractEnd::Refused(error) if error.is_io() => Exit::Io,
        ContractEnd::Refused(_) => Exit::Usage,
        ContractEnd::NotBegun | ContractEnd::Interrupted => Exit::Interrupted,
    };
    // Higher codes are more severe.
    ends.iter().map(code).max_by_key(|exit| exit.code()).unwrap_or(Exit::Done)
}

impl From<SelectionError> for Failure {
    fn from(error: SelectionError) -> Self {
        match error {
            SelectionError::Store(error) => error.into(),
            SelectionError::Twice(_) => Failure::refused("usage", error),
        }
    }
}

/// Returns the settings.
pub(super) fn settings(args: &Args, store: &Utf8Path) -> Result<RunSettings, Failure> {
    let workdir = existing_folder(&args.workdir)?;
    let locks =
        env::var(LOCKS_VARIABLE).ok().filter(|folder| !folder.is_empty()).unwrap_or_else(|| LOCKS_FOLDER.to_owned());
    let protected = protected(store, &args.out);
    Ok(RunSettings {
        workdir,
        source: source(args),
        owner: args.owner.name().unwrap_or_default().to_owned(),
        wait: args.wait.unwrap_or(Duration::ZERO),
        rollback: if args.no_rollback { RollbackMode::Never } else { RollbackMode::Automatic },
        requires_approval: args.require_approval,
        agent_timeout: args.agent_timeout,
        locks: Utf8PathBuf::from(locks),
        protected,
        redactor: redactor(&args.redact_env)?,
        cancellation: Cancellation::default(),
        clock: now,
        supervisor: None,
    })
}

fn source(args: &Args) -> OutputSource {
    match (&args.agent_cmd, &args.output) {
        (Some(command), _) => OutputSource::Command(command.clone()),
        (None, Some(path)) if path.is_dir() => OutputSource::Folder(path.clone()),
        (None, Some(path)) => OutputSource::File(path.clone()),
        // Only a dry run has neither.
        (None, None) => OutputSource::File(Utf8PathBuf::new()),
    }
}

fn redactor(names: &[String]) -> Result<Redactor, Failure> {
    let mut values = Vec::new();
    for name in names {
        let refused =
            |problem: &str| Failure::refused("usage", format!("cannot mask the value of `{name}`: {problem}"));
        let value = env::var(name).map_err(|_| {
            refused("the variable is not set, or is not UTF-8").hint("correct the name in `--redact-env`")
        })?;
        // A shorter value is in unrelated text, where its mask would hide too much.
        if value.len() < SHORTEST {
            return Err(refused(&format!("it is shorter than {SHORTEST} bytes")));
        }
        values.push(value);
    }
    Redactor::new(values.iter().map(String::as_str)).map_err(|error| Failure::refused("usage", error))
}

/// Checks everything that can be checked without running a command, and prints the plan.
pub(super) fn print(
    store: &Store,
    selected: &[Selected],
    settings: &RunSettings,
    project: &Project,
    streams: &mut Streams,
) -> Result<Exit, Failure> {
    // All contracts are checked, even if the first one has a problem.
    let previews: Vec<_> = selected.iter().map(|it| preview(store, it, settings)).collect::<Result<_, _>>()?;
    let is_possible = previews.iter().all(|preview| preview.problems.is_empty());
    let rows = selected.iter().zip(&previews).map(|(selected, preview)| {
        json!({
            "id": selected.contract.id, "version": selected.contract.version, "state": selected.state,
            "after": selected.after, "steps": preview.steps, "problems": preview.problems,
        })
    });
    let document = json!({ "possible": is_possible, "contracts": rows.collect::<Vec<Value>>() });
    project.print(streams, &document, || {
        let mut text = String::new();
        for (number, (selected, preview)) in selected.iter().zip(&previews).enumerate() {
            let (id, version, state) = (&selected.contract.id, selected.contract.version, selected.state);
            let _ = writeln!(text, "{}. {id}@{version} ({state})", number + 1);
            for step in &preview.steps {
                let _ = writeln!(text, "   {step}");
            }
            for problem in &preview.problems {
                let _ = writeln!(text, "   problem: {problem}");
            }
        }
        text + if is_possible { "nothing was run or changed" } else { "the run would fail; nothing was run or changed" }
    })?;
    Ok(if is_possible { Exit::Done } else { Exit::Findings })
}
