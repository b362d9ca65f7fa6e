//! One run of a program with a vector, in a folder of its own. The environment is the caller's without the variables whose names
//! begin with `SAFE_`, and with what the caller and the vector ask for.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, create_folder, write};
use tempfile::TempDir;

use super::process::{self, Course};
use super::snapshot::{self, Snapshot};
use super::template::{self, READY};
use crate::cancellation::Stop;
use crate::subject::{Kind, Subject};
use crate::vectors::{Command as Asked, Group, Setup};

/// How long a program may take.
const LIMIT: Duration = Duration::from_mins(1);

/// How the names of the variables begin that change what safe-run does; none of the caller's reaches a trial.
const OURS: &[u8] = b"SAFE_";

/// What a program did with a vector.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
    /// Where logs belong, relative to the folder.
    pub(crate) log_folder: Utf8PathBuf,
}

/// A program, a vector's command, and what surrounds them.
pub(crate) struct Trial<'a> {
    pub(crate) subject: &'a Subject,
    /// What a wrapper shall find.
    pub(crate) tool: &'a Utf8Path,
    pub(crate) group: Group,
    pub(crate) setup: &'a Setup,
    pub(crate) command: &'a Asked,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) stop: &'a Stop,
}

impl Trial<'_> {
    /// Runs the program. An error is one of the trial and not of the program.
    pub(crate) fn run(&self) -> Result<Outcome, String> {
        let folder = TempDir::with_prefix("conformance-").map_err(|error| error.to_string())?;
        let place = Utf8Path::from_path(folder.path()).ok_or("the system's temporary folder has no UTF-8 name")?;
        // The folder in which it runs, and beside it the sign that it may be sent a signal.
        let (root, ready) = (place.join("root"), place.join("ready"));
        let (arguments, file) = template::expand(self.command)?;
        create_folder(&root).map_err(|error| error.to_string())?;
        for path in &self.setup.create_files {
            put(&root.join(path), &format!("contents of {path}\n"))?;
        }
        if let Some(file) = file {
            put(&root.join(&file.path), "#!/bin/sh\nexit 0\n")?;
            set_executable(&root.join(&file.path), file.is_executable)?;
        }
        let before = snapshot::take(&root)?;
        let mut command = self.subject.command(self.group, &arguments);
        command.current_dir(&root).env(READY, &ready);
        command.stdin(Stdio::null());
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(OURS)) {
            command.env_remove(name);
        }
        if self.subject.kind == Kind::Wrapper {
            command.env("SAFE_RUN_BIN", self.tool);
        }
        command.envs(self.environment).envs(&self.command.env);
        let signal = self.command.interrupt_signal.map(|signal| (signal, ready.as_path()));
        let course = Course { stdin: self.command.stdin.as_deref(), signal, limit: LIMIT, stop: self.stop };
        let output = process::run(command, &course)?;
        let variable = |name: &str| self.command.env.get(name).or_else(|| self.environment.get(name));
        let log_folder = variable("SAFE_LOG_DIR").map_or(".agent/FAIL-LOGS", String::as_str).into();
        let (code, after) = (output.status.code(), snapshot::take(&root)?);
        Ok(Outcome { code, stdout: output.stdout, stderr: output.stderr, before, after, log_folder })
    }
}

fn put(path: &Utf8Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = create_folder(folder).and_then(|()| write(path, text.as_bytes(), Durability::Cached));
    written.map_err(|error| error.to_string())
}

#[cfg(unix)]
fn set_executable(path: &Utf8Path, is_executable: bool) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if is_executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| format!("`{path}`: {error}"))
}

#[cfg(not(unix))]
fn set_executable(_path: &Utf8Path, _is_executable: bool) -> Result<(), String> {
    Ok(())
}
