//! `safe-run check`: whether a command can be run. Nothing is run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::dispatch::say;

/// The exit code where there is no such command.
const NOT_FOUND: i32 = 2;

/// The exit code where there is one that may not be run.
const NOT_EXECUTABLE: i32 = 3;

/// Looks for the command as the system would.
pub(super) fn run(command: &OsStr) -> i32 {
    let found = candidates(command);
    if found.iter().any(|path| is_executable(path)) {
        return 0;
    }
    match found.first() {
        None => {
            say(format_args!("Command not found: {}", command.display()));
            NOT_FOUND
        }
        Some(path) => {
            say(format_args!("Command found but not executable: {}", command.display()));
            say(format_args!("Path: {}", path.display()));
            say(format_args!("Hint: Run 'chmod +x {}' to make it executable", path.display()));
            NOT_EXECUTABLE
        }
    }
}

/// The files that the command may mean: the path itself, or one in a folder of `PATH`.
fn candidates(command: &OsStr) -> Vec<PathBuf> {
    let path = Path::new(command);
    let is_path = path.components().count() != 1 || path.is_absolute() || command.as_encoded_bytes().contains(&b'/');
    let folders = if is_path { None } else { std::env::var_os("PATH") };
    let paths: Vec<PathBuf> = match folders {
        None => vec![path.to_owned()],
        Some(folders) => std::env::split_paths(&folders).map(|folder| folder.join(path)).collect(),
    };
    let named = paths.into_iter().flat_map(|path| endings().into_iter().map(move |ending| with_ending(&path, &ending)));
    named.filter(|path| path.is_file()).collect()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What may be left out at the end of a command's name.
fn endings() -> Vec<String> {
    let mut endings = vec![String::new()];
    if cfg!(windows) {
        let known = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
        endings.extend(known.split(';').map(str::to_owned));
    }
    endings
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
