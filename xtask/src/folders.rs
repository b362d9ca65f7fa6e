//! Files of a task, with errors that have the path.

use std::fs;
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::step::{Failure, root};
use camino::{Utf8Path, Utf8PathBuf};

fn failed(path: &Utf8Path) -> impl FnOnce(io::Error) -> Failure + '_ {
    |source| Failure::File { path: path.to_owned(), source }
}

pub(crate) fn create(folder: &Utf8Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(failed(folder))
}

pub(crate) fn remove(folder: &Utf8Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn read(path: &Utf8Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(failed(path))
}

pub(crate) fn size(path: &Utf8Path) -> Result<u64, Failure> {
    Ok(path.metadata().map_err(failed(path))?.len())
}

/// Copies a file with its permissions.
pub(crate) fn copy(from: &Utf8Path, to: &Utf8Path) -> Result<(), Failure> {
    create(to.parent().unwrap_or(root()))?;
    let permissions = from.metadata().map_err(failed(from))?.permissions();
    write(to, read(from)?)?;
    fs::set_permissions(to, permissions).map_err(failed(to))
}

/// Writes a file atomically, so that an interrupted run leaves no partial file.
pub(crate) fn write(path: &Utf8Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(fs::Permissions::from_mode(0o644));
    let mut file = builder.tempfile_in(path.parent().unwrap_or(root())).map_err(failed(path))?;
    file.write_all(text.as_ref()).map_err(failed(path))?;
    file.persist(path).map_err(|error| failed(path)(error.error))?;
    Ok(())
}

/// The files of a folder, sorted by name.
pub(crate) fn files(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Failure> {
    let entries = folder.read_dir_utf8().map_err(failed(folder))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed(folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    files.sort();
    Ok(files)
}

/// Runs a program of the build, and returns what it prints.
pub(crate) fn output(program: &Utf8Path, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let line = format!("{} {}", program.file_name().unwrap_or_default(), arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|source| Failure::Start { line: line.clone(), source })?;
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::Step(line)) }
}
