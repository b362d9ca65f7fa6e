//! `safe-run archive`: packs a folder into one file, and never overwrites a file.

use std::io::{self, Write as _};
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability, WriteError, remove_leftovers_next_to};

use super::archive_format::{self, ArchiveFormat};
use super::arguments::Archive;
use super::console::{print, report};
use super::exit_code;

/// The exit code if the destination exists and `--no-clobber` is set.
const DESTINATION_EXISTS: i32 = 40;

/// The exit code if a file could not be read or written.
const FILE_SYSTEM: i32 = 41;

/// The exit code for an unsupported archive format.
const UNSUPPORTED_FORMAT: i32 = 1;

/// Number of numbered names to try.
const MAX_NUMBER: u32 = 10_000;

/// An archive that could not be written.
#[derive(Debug, thiserror::Error)]
enum ArchiveError {
    #[error("the destination is not valid UTF-8")]
    NotUtf8,
    #[error("{0}: {source}", source = .0.source)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Pack(#[from] io::Error),
}

/// Runs `archive` and returns the exit code. Conformance vectors pin the messages.
pub(super) fn run(archive: &Archive) -> i32 {
    let source = archive.source.display();
    if !archive.source.exists() {
        report(format_args!("ERROR: Source path does not exist: {source}"));
        return exit_code::USAGE;
    }
    if !archive.source.is_dir() {
        report(format_args!("ERROR: Source path is not a directory: {source}"));
        return exit_code::USAGE;
    }
    let destination = archive.destination.display();
    let Some((stem, format)) = ArchiveFormat::from_path(&archive.destination) else {
        report(format_args!("Error: Unsupported archive format. Use .tar.gz, .tar.bz2, or .zip: {destination}"));
        return UNSUPPORTED_FORMAT;
    };
    match write(archive, stem, format) {
        Ok(Some(path)) => print(&format!("Archive created: {path}\n")),
        Ok(None) => {
            report(format_args!("ERROR: Destination already exists (no-clobber mode): {destination}"));
            report("File collision detected. Use a different destination or remove --no-clobber flag.");
            DESTINATION_EXISTS
        }
        Err(error) => {
            report(format_args!("ERROR: {error}"));
            FILE_SYSTEM
        }
    }
}

/// Writes the archive under the first free name. Returns `None` if no allowed name is free.
fn write(archive: &Archive, stem: &str, format: ArchiveFormat) -> Result<Option<Utf8PathBuf>, ArchiveError> {
    let destination = Utf8Path::from_path(&archive.destination).ok_or(ArchiveError::NotUtf8)?;
    let extension = &destination.as_str()[stem.len()..];
    let numbered = (1..=MAX_NUMBER).map(|number| Utf8PathBuf::from(format!("{stem}.{number}{extension}")));
    let names = std::iter::once(destination.to_owned()).chain(numbered.take_while(|_| !archive.no_clobber));
    // Packing can take long, so an existing destination is reported before it.
    if archive.no_clobber && destination.symlink_metadata().is_ok() {
        return Ok(None);
    }
    // The destination can be inside the packed folder. Until the archive is finished it has a temporary name there.
    let own_folder = destination.parent().map(|folder| PathBuf::from(folder.as_std_path()));
    remove_leftovers_next_to(destination);
    let mut file = AtomicFile::create(destination)?;
    archive_format::pack(&archive.source, format, own_folder.as_deref(), &mut file)?;
    file.flush()?;
    Ok(file.commit_new(names, Durability::Synced)?)
}
