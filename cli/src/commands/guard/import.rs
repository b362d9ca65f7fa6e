//! `counterproof guard import`: puts the guard in front of the servers of a client, whose configuration it finds and edits.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_guard::identity::process_variable;
use counterproof_guard::importer::{
    Client, ImportError, ImportOptions, ImportReport, Mode, Platform, ServerChange, ServerStatus, ShimCommand, import,
};
use counterproof_ledger::location::LedgerLocation;
use serde_json::json;

use super::shim::ShimSettings;
use crate::command_error::CommandError;
use crate::streams::to_json;
use crate::streams::{OutputError, Streams};

/// The variable that names another program than this one.
const SHIM_PATH: &str = "SUBLUMINAL_SHIM_PATH";

/// Put the guard in front of the MCP servers that a client has configured.
///
/// Every server that is a program starts through `counterproof guard shim` from then on. Only its `command` and `args` change; comments,
/// order, indentation and all other fields stay. A server that starts through the guard already gets the new value of `--policy` and
/// `--ledger`. Servers on the network are skipped. A copy of the original is saved next to the
/// configuration, and `counterproof guard restore` returns to it.
///
/// Exit code 0: done, also if there was nothing to change. 2: invalid arguments, policy or configuration. 3: a file could not be read
/// or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: ClientConfig,

    /// Print the changes as a unified diff without secrets, and write nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    settings: ShimSettings,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let path = args.target.path()?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let options =
        ImportOptions { client: args.target.client, config: &path, shim: shim_command(&args.settings)?, mode };
    let report = import(&options).map_err(|error| args.target.error(error))?;
    if args.json {
        let document = json!({"client": args.target.client.name(), "dry_run": args.dry_run, "import": report});
        streams.print_document(&to_json(&document))?;
    } else {
        print(args, &report, streams)?;
    }
    Ok(Exit::Done)
}

fn print(args: &Args, report: &ImportReport, streams: &mut Streams) -> Result<(), CommandError> {
    print_servers(&report.servers, streams)?;
    if report.servers.is_empty() {
        let key = args.target.client.servers_key();
        streams.print_line(format_args!("no servers in {}: there is no `{key}` with servers", report.config))?;
        if let Some(other) = report.other_client {
            let config = crate::resume_command::quoted(report.config.as_str());
            streams.print_line(format_args!(
                "The servers are where {other} looks for them. Did you mean `counterproof guard import {other} --config {config}`?"
            ))?;
        }
    }
    if let Some(diff) = &report.diff {
        streams.print_line(format_args!("\n{}", diff.trim_end()))?;
        streams.print_line("\nnothing was written")?;
    } else if report.is_changed {
        streams.print_line(format_args!("\nchanged {}", report.config))?;
        if let Some(backup) = &report.backup {
            streams.print_line(format_args!("original: {backup}"))?;
        }
        streams.print_line(format_args!("undo: counterproof guard restore {}", args.target.words()))?;
        streams.print_line("Restart the client to use the guard.")?;
    } else {
        streams.print_line(format_args!("\n{} is unchanged", report.config))?;
    }
    Ok(())
}

fn shim_command(settings: &ShimSettings) -> Result<ShimCommand, CommandError> {
    let mut options = Vec::new();
    if let Some(policy) = settings.policy()? {
        options.extend(["--policy".to_owned(), policy.into_string()]);
    }
    match settings.ledger()? {
        None => {}
        Some(LedgerLocation::SqliteFile(path)) => options.extend(["--ledger".to_owned(), path.into_string()]),
        Some(LedgerLocation::PostgreSql(url)) => {
            if url.has_password() {
                let message =
                    "the URL of the ledger has a password, which every user could see in the list of processes";
                // The URL would be in the configuration of the client, as an argument of the shim.
                return Err(
                    CommandError::usage(message).hint("set the variable `COUNTERPROOF_LEDGER` for the client instead")
                );
            }
            options.extend(["--ledger".to_owned(), url.expose().to_owned()]);
        }
    }
    Ok(ShimCommand { program: program()?, options })
}

/// Returns the absolute path of the program that the client starts.
fn program() -> Result<String, CommandError> {
    if let Some(path) = process_variable(SHIM_PATH) {
        return absolute(path);
    }
    let path =
        std::env::current_exe().map_err(|error| CommandError::io(format!("cannot find this program: {error}")))?;
    // Package managers install a program in a folder with its version, and link to it from a folder of PATH. The link survives an
    // update.
    let path = path_of_same_program(&path).unwrap_or(path);
    path.into_os_string().into_string().map_err(|path| {
        CommandError::usage(format!("the path of this program is not valid UTF-8: {}", path.to_string_lossy()))
            .hint(format!("set `{SHIM_PATH}` to another path"))
    })
}

fn absolute(path: String) -> Result<String, CommandError> {
    // The client starts its servers in another folder, so a relative path would not lead to the program.
    if Path::new(&path).is_absolute() {
        return Ok(path);
    }
    // As in a shell, a name without a separator is looked up in PATH.
    let candidates = if path.contains(std::path::is_separator) {
        std::path::absolute(&path).into_iter().collect()
    } else {
        in_search_path(path.as_ref())
    };
    let found =
        candidates.into_iter().find(|candidate| candidate.is_file()).and_then(|path| path.to_str().map(str::to_owned));
    found.ok_or_else(|| {
        CommandError::usage(format!("`{SHIM_PATH}` names no program: there is no file `{path}`"))
            .hint(format!("set `{SHIM_PATH}` to an absolute path"))
    })
}

/// Returns the path in PATH that leads to this program, if there is one.
fn path_of_same_program(program: &Path) -> Option<PathBuf> {
    let target = std::fs::canonicalize(program).ok()?;
    // By the real path: another program with this name can come first in PATH.
    let is_same = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|path| path == target);
    in_search_path(program.file_name()?).into_iter().find(is_same)
}

/// Returns the paths of a name in the absolute folders of PATH.
fn in_search_path(name: &OsStr) -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // A relative folder of PATH depends on the working directory of the client.
    std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).collect()
}

/// The client and its configuration.
#[derive(Debug, clap::Args)]
pub(super) struct ClientConfig {
    /// Client: claude-code, claude-desktop, codex, cursor, vscode or gemini
    #[arg(value_name = "CLIENT")]
    pub(super) client: Client,

    /// Configuration to change [default: the user's configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,
}

impl ClientConfig {
    pub(super) fn path(&self) -> Result<Utf8PathBuf, CommandError> {
        if let Some(path) = &self.config {
            return Ok(path.clone());
        }
        self.client.user_file(Platform::current(), process_variable).ok_or_else(|| {
            CommandError::usage(format!("the configuration of {} is unknown: no home folder is set", self.client))
                .hint("pass `--config FILE`")
        })
    }

    /// Converts an error. If the configuration of the user is missing, a hint names the one of a project.
    pub(super) fn error(&self, error: ImportError) -> CommandError {
        let (is_missing, hint) = (matches!(error, ImportError::Missing { .. }), error.hint());
        let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
        let project = self.client.project_file().filter(|_| is_missing && self.config.is_none());
        let project = project.map(|file| format!("for the servers of a project, pass `--config {file}`"));
        hint.map(str::to_owned).into_iter().chain(project).fold(error, CommandError::hint)
    }

    pub(super) fn words(&self) -> String {
        let config =
            self.config.as_ref().map(|path| format!(" --config {}", crate::resume_command::quoted(path.as_str())));
        format!("{}{}", self.client, config.unwrap_or_default())
    }
}

pub(super) fn print_servers(servers: &[ServerChange], streams: &mut Streams) -> Result<(), OutputError> {
    for server in servers {
        let status = match server.status {
            ServerStatus::Wrapped => "wrapped",
            ServerStatus::Updated => "updated",
            ServerStatus::Unwrapped => "unwrapped",
            ServerStatus::Skipped => "skipped",
        };
        let project = server.project.as_ref().map(|project| format!(" in {project}")).unwrap_or_default();
        let reason = server.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        streams.print_line(format_args!("{status:<9}  {}{project}{reason}", server.name))?;
    }
    Ok(())
}
