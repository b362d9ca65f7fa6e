//! `safe-run check`: checks whether a command can be executed, without running it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::dispatch::report;

const NOT_FOUND: i32 = 2;

const NOT_EXECUTABLE: i32 = 3;

/// Searches for the command as the operating system does, and returns the exit code. Conformance vectors pin the messages.
pub(super) fn run(command: &OsStr) -> i32 {
    // A file earlier in PATH that is not executable does not hide a later one that is.
    let found = candidates(command);
    if found.iter().any(|path| is_executable(path)) {
        return 0;
    }
    match found.first() {
        None => {
            report(format_args!("Command not found: {}", command.display()));
            NOT_FOUND
        }
        Some(path) => {
            report(format_args!("Command found but not executable: {}", command.display()));
            report(format_args!("Path: {}", path.display()));
            report(format_args!("Hint: Run 'chmod +x {}' to make it executable", path.display()));
            NOT_EXECUTABLE
        }
    }
}

fn candidates(command: &OsStr) -> Vec<PathBuf> {
    let path = Path::new(command);
    let is_path = path.components().count() != 1 || path.is_absolute() || command.as_encoded_bytes().contains(&b'/');
    let folders = if is_path { None } else { std::env::var_os("PATH") };
    let paths: Vec<PathBuf> = match folders {
        None => vec![path.to_owned()],
        Some(folders) => std::env::split_paths(&folders).map(|folder| folder.join(path)).collect(),
    };
    let with_extensions =
        |path: PathBuf| extensions().into_iter().map(move |extension| with_extension(&path, &extension));
    paths.into_iter().flat_map(with_extensions).filter(|path| path.is_file()).collect()
}

fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    name.into()
}

/// Returns the extensions that a command name can omit. The empty one comes first.
fn extensions() -> Vec<String> {
    let mut extensions = vec![String::new()];
    if cfg!(windows) {
        let known = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
        extensions.extend(known.split(';').map(str::to_owned));
    }
    extensions
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
