//! Prepares and writes the output folder of a history. A folder with other content is never changed.

use std::fs;
use std::io;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, Durability, WriteError};

use super::evaluations::History;
use super::find::SkippedPath;
use super::page::HistoryPage;
use crate::report::layout::{COMMON_FILES, INDEX_FILE, MARKER_FILE, STATIC_FOLDER};

/// The content of the marker file, which identifies a history.
const MARKER: &str = "A history of Counterproof. The next history that is written here replaces it. Open index.html.\n";

const STYLE: &str = include_str!("../../../../templates/static/history.css");

/// Why a history could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The folder holds files that this program did not write.
    #[error("`{0}` exists and is not a history; nothing was written")]
    NotAHistory(Utf8PathBuf),
    /// The folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The page could not be rendered.
    #[error("failed to render the history")]
    Render(#[from] askama::Error),
}

/// Creates the folder. It has to exist before links from it can be computed.
pub fn prepare(out: &Utf8Path) -> Result<(), HistoryError> {
    let is_empty = match out.read_dir_utf8() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
        Err(source) => return Err(HistoryError::Read { path: out.to_owned(), source }),
    };
    if !is_empty && !fs::read(out.join(MARKER_FILE)).is_ok_and(|bytes| bytes == MARKER.as_bytes()) {
        return Err(HistoryError::NotAHistory(out.to_owned()));
    }
    write::create_folder(&out.join(STATIC_FOLDER))?;
    Ok(write::write(&out.join(MARKER_FILE), MARKER.as_bytes(), Durability::Cached)?)
}

/// Writes the page into a prepared folder and returns its path.
pub fn write(out: &Utf8Path, history: &History, skipped: &[SkippedPath]) -> Result<Utf8PathBuf, HistoryError> {
    for (name, text) in COMMON_FILES.into_iter().chain([("history.css", STYLE)]) {
        write::write(&out.join(STATIC_FOLDER).join(name), text.as_bytes(), Durability::Cached)?;
    }
    let html = HistoryPage::new(history, skipped).render()?;
    let page = out.join(INDEX_FILE);
    write::write(&page, html.as_bytes(), Durability::Cached)?;
    Ok(page)
}
