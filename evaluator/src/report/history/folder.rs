//! The folder of a history: made, or written again where a history is. A folder that holds anything else is never touched.

use std::fs;
use std::io;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, Durability, WriteError};

use super::find::LeftOut;
use super::nights::History;
use super::page::HistoryPage;
use crate::report::folder::{INDEX_FILE, SHARED_BY_ALL, STATIC_FOLDER};

const MARKER_FILE: &str = "static/about.txt";
const MARKER: &str = "A history of Counterproof. The next history that is written here replaces it. Open index.html.\n";

const STYLE: &str = include_str!("../../../../templates/static/history.css");

/// Why a history could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The folder holds something that this program did not write.
    #[error("`{0}` is there already and is not a history, so nothing was written there")]
    NotAHistory(Utf8PathBuf),
    /// The folder could not be looked into.
    #[error("failed to read `{path}`")]
    Read {
        /// The folder.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The page could not be rendered.
    #[error("failed to render the history")]
    Render(#[from] askama::Error),
}

/// Makes the folder ready, so that what lies in it has a place that links can lead from.
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

/// Writes the page into a folder that was made ready, and returns it.
pub fn write(out: &Utf8Path, history: &History, left_out: &[LeftOut]) -> Result<Utf8PathBuf, HistoryError> {
    for (name, text) in SHARED_BY_ALL.into_iter().chain([("history.css", STYLE)]) {
        write::write(&out.join(STATIC_FOLDER).join(name), text.as_bytes(), Durability::Cached)?;
    }
    let html = HistoryPage::of(history, left_out).render()?;
    let page = out.join(INDEX_FILE);
    write::write(&page, html.as_bytes(), Durability::Cached)?;
    Ok(page)
}
