//! `safe-run archive`: a folder becomes one file, and nothing that is there is overwritten.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability};

use super::archive_format::{self as pack, Format};
use super::arguments::Archive;
use super::dispatch::{code, print, say};

/// The exit code where the destination is there and must not be touched.
const TAKEN: i32 = 40;

/// The exit code where a file could not be read or written.
const FILE_SYSTEM: i32 = 41;

/// The exit code for a format that is none.
const UNSUPPORTED: i32 = 1;

/// How many names are tried.
const ATTEMPTS: u32 = 10_000;

/// Packs the folder.
pub(super) fn run(archive: &Archive) -> i32 {
    let source = archive.source.display();
    if !archive.source.exists() {
        say(format_args!("ERROR: Source path does not exist: {source}"));
        return code::USAGE;
    }
    if !archive.source.is_dir() {
        say(format_args!("ERROR: Source path is not a directory: {source}"));
        return code::USAGE;
    }
    let destination = archive.destination.display();
    let Some((stem, format)) = Format::of(&archive.destination) else {
        say(format_args!("Error: Unsupported archive format. Use .tar.gz, .tar.bz2, or .zip: {destination}"));
        return UNSUPPORTED;
    };
    match written(archive, stem, format) {
        Ok(Some(path)) => print(&format!("Archive created: {path}\n")),
        Ok(None) => {
            say(format_args!("ERROR: Destination already exists (no-clobber mode): {destination}"));
            say("File collision detected. Use a different destination or remove --no-clobber flag.");
            TAKEN
        }
        Err(error) => {
            say(format_args!("ERROR: {error}"));
            FILE_SYSTEM
        }
    }
}

/// Writes the archive at the first name that is free; `None` where none may be used.
fn written(archive: &Archive, stem: &str, format: Format) -> Result<Option<Utf8PathBuf>, String> {
    let text = |path: &Path| Utf8Path::from_path(path).map(Utf8Path::to_owned).ok_or("a path is no UTF-8 text");
    let destination = text(&archive.destination)?;
    let ending = &destination.as_str()[stem.len()..];
    let more = (1..=ATTEMPTS).map(|number| Utf8PathBuf::from(format!("{stem}.{number}{ending}")));
    let names = std::iter::once(destination.clone()).chain(more.take_while(|_| !archive.no_clobber));
    // An archive may take long, so what is taken at the start is seen at the start.
    if archive.no_clobber && destination.symlink_metadata().is_ok() {
        return Ok(None);
    }
    let mut file = AtomicFile::create(&destination).map_err(|error| format!("{error}: {}", error.source))?;
    // The archive may lie in the folder that it is made of, under a name that it has only for now.
    let inside = destination.parent().map(|folder| PathBuf::from(folder.as_std_path()));
    pack::pack(&archive.source, format, inside.as_deref(), &mut file).map_err(|error| error.to_string())?;
    file.flush().map_err(|error| error.to_string())?;
    file.commit_new(names, Durability::Synced).map_err(|error| format!("{error}: {}", error.source))
}
