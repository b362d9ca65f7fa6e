//! What runs for the agent of a side during a command: a checkout of another commit, `setup`, and the server of `start`.

use std::env;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, Side};
use counterproof_runner::{
    AgentCommand, AgentStartError, Header, Interrupt, RunningAgent, Secret, SetupError, StartContext, StartSpec,
    TemporaryWorktree, Variables, WorktreeError, run_setup,
};

use crate::command_error::CommandError;
use crate::environment;
use crate::layers::Layers;
use crate::side_table::SideTable;
use crate::streams::Streams;

/// The folder below that of the runs with the output of agents.
const LOGS: &str = "agent-logs";

/// The folder in which the programs of a side run.
#[derive(Debug)]
pub(crate) struct Place {
    /// Empty for the working folder of this process.
    folder: Utf8PathBuf,
    /// Owns the folder, if it is a checkout of another commit.
    _worktree: Option<TemporaryWorktree>,
}

impl Place {
    pub(crate) fn in_folder(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned(), _worktree: None }
    }

    /// The folder; empty for the working folder of this process.
    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Returns a command that runs here.
    pub(crate) fn of(&self, command: AgentCommand) -> AgentCommand {
        if self.folder.as_str().is_empty() { command } else { command.in_folder(&self.folder) }
    }
}

/// The start of the agent of one side.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) side: Side,
    pub(crate) table: &'a SideTable,
    pub(crate) layers: &'a Layers,
    /// The folder of the runs.
    pub(crate) out: &'a Utf8Path,
    pub(crate) interrupt: &'a Interrupt,
}

impl Start<'_> {
    /// Checks out the commit of the side, and runs `setup` there.
    pub(crate) fn prepare(self, streams: &mut Streams) -> Result<Place, CommandError> {
        let folder = &self.layers.config.folder;
        let place = match &self.table.commit {
            None => Place::in_folder(folder),
            Some(reference) => {
                let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
                let worktree = TemporaryWorktree::create(folder, reference).map_err(worktree_error)?;
                let commit: String = worktree.commit().chars().take(12).collect();
                streams.log(format_args!("checked out `{reference}` ({commit}) for {}", self.side));
                Place { folder: worktree.folder().to_owned(), _worktree: Some(worktree) }
            }
        };
        if let Some(setup) = &self.table.setup {
            let context = self.context("setup.log")?;
            streams.log(format_args!("running `setup` of {}; its output is in {}", self.side, context.log));
            let command = place.of(command(setup)?).with_variables(variables(self.table)?);
            run_setup(&command, &context).map_err(setup_error)?;
        }
        Ok(place)
    }

    /// Starts the server of the side, if it has one.
    pub(crate) fn run(self, place: &Place, streams: &mut Streams) -> Result<Option<RunningAgent>, CommandError> {
        let Some(start) = &self.table.start else { return Ok(None) };
        let context = self.context("log")?;
        let mut spec = StartSpec::new(place.of(command(start)?).with_variables(variables(self.table)?));
        let base_url = self.table.base_url.as_ref().map(|url| url.expose().parse());
        spec.base_url = base_url.transpose().map_err(CommandError::usage)?;
        spec.ready.clone_from(&self.table.ready);
        spec.ready_timeout = self.table.ready_timeout.unwrap_or(StartSpec::READY_TIMEOUT);
        streams.log(format_args!("starting the agent of {}; its output is in {}", self.side, context.log));
        RunningAgent::start(&spec, &context).map(Some).map_err(start_error)
    }

    fn context(self, extension: &str) -> Result<StartContext, CommandError> {
        let log = self.out.join(LOGS).join(format!("{}.{extension}", self.side));
        // The output of the last start is enough, and the folder does not grow.
        let _ = std::fs::remove_file(&log);
        let secrets = self.secrets()?;
        Ok(StartContext { supervisor: None, log, secrets, interrupt: self.interrupt.clone() })
    }
}

impl Start<'_> {
    /// Returns what the output of the agent must not show: an agent may print what it is sent.
    fn secrets(self) -> Result<Vec<Secret>, CommandError> {
        let options = |id: &str| self.layers.all(id).iter().cloned().map(Secret::from).collect::<Vec<_>>();
        let mut secrets = environment::secrets(&options("secrets"), &self.layers.config.secrets)?;
        let own = self.table.headers.iter().map(|(name, value)| Header::text(name, value));
        let named: Vec<Secret> = options("headers").into_iter().chain(own).collect();
        let mut headers = environment::headers(&named).map_err(CommandError::usage)?;
        if let Some(mapping) = &self.table.http {
            headers.extend(mapping.headers(|name| env::var(name)).map_err(CommandError::usage)?);
        }
        for value in headers.iter().map(|header| header.value().expose()) {
            // An agent may print the credential without its scheme.
            let credential = value.split_once(' ').map(|(_, credential)| credential.trim());
            let texts = [Some(value), credential].into_iter().flatten().filter(|text| text.len() >= MIN_SECRET_BYTES);
            secrets.extend(texts.map(|text| Secret::from(text.to_owned())));
        }
        Ok(secrets)
    }
}

/// Shorter header values are words of other texts, too.
const MIN_SECRET_BYTES: usize = 8;

/// Returns the variables of a side.
pub(crate) fn variables(table: &SideTable) -> Result<Variables, CommandError> {
    let entries = table.env.iter().map(|(name, value)| (name.as_str(), value.expose()));
    Variables::resolve(entries, |name| env::var(name)).map_err(|error| {
        CommandError::usage(error).hint("set the variable, or change `env` of the side in counterproof.toml")
    })
}

fn command(text: &Secret) -> Result<AgentCommand, CommandError> {
    text.expose().parse().map_err(CommandError::usage)
}

fn interrupted() -> CommandError {
    CommandError::new(Exit::Interrupted, "interrupted before the first request")
}

fn start_error(error: AgentStartError) -> CommandError {
    let hint = match &error {
        AgentStartError::Interrupted => return interrupted(),
        AgentStartError::Url(_) => return CommandError::usage(error),
        AgentStartError::NotStarted(_) => "check the first word of `start`, and the folder that it is run in",
        AgentStartError::Died(_) => "run `start` in a terminal; `{port}` is a free port",
        AgentStartError::NeverReady { .. } => "correct `ready`, or set a longer `ready_timeout`",
        AgentStartError::AddressInUse(_) => "stop that program, or use `{port}` in `start` and `base_url`",
        _ => return CommandError::io(error),
    };
    CommandError::io(error).hint(hint)
}

fn setup_error(error: SetupError) -> CommandError {
    if matches!(error, SetupError::Interrupted) { interrupted() } else { CommandError::io(error) }
}

fn worktree_error(error: WorktreeError) -> CommandError {
    match &error {
        WorktreeError::NoRepository { .. } => CommandError::usage(error),
        WorktreeError::UnknownCommit(_) => {
            CommandError::usage(error).hint("`ref` is a branch, a tag or a commit; in CI, fetch it first")
        }
        _ => CommandError::io(error),
    }
}
