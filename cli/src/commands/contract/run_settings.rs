//! The settings of a run, from its arguments and the environment.

use std::env;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_contracts::execution::{OutputSource, RollbackMode, RunSettings};
use counterproof_contracts::git::Protected;
use counterproof_contracts::process::Cancellation;
use counterproof_contracts::resources::{LOCKS_FOLDER, LOCKS_VARIABLE};
use counterproof_export::contracts::CASES_FILE;
use counterproof_redaction::{Redactor, SHORTEST};

use super::failure::Failure;
use super::project::{existing_folder, now};
use super::run::Args;

/// Returns the settings.
pub(super) fn settings(args: &Args, store: &Utf8Path) -> Result<RunSettings, Failure> {
    let workdir = existing_folder(&args.workdir)?;
    let locks =
        env::var(LOCKS_VARIABLE).ok().filter(|folder| !folder.is_empty()).unwrap_or_else(|| LOCKS_FOLDER.to_owned());
    let mut protected = Protected::default();
    protected.store(store);
    for side in [Side::Baseline, Side::New] {
        protected.folder(&args.out.join(side.as_str()));
    }
    protected.file(&args.out.join(CASES_FILE));
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
        if value.len() < SHORTEST {
            return Err(refused(&format!("it is shorter than {SHORTEST} bytes")));
        }
        values.push(value);
    }
    Redactor::new(values.iter().map(String::as_str)).map_err(|error| Failure::refused("usage", error))
}
