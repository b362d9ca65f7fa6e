//! What the pages of contracts share: their output folder, and states as a word, a sign and a class.

use std::io;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::State;
use counterproof_store::write::{INDEX_FILE, STATIC_FOLDER, SiteError, SiteKind, WriteError, write_new};

/// A state for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateView {
    /// The class in the style sheet, in Mermaid and in Graphviz.
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
}

impl From<State> for StateView {
    fn from(state: State) -> Self {
        Self { class: state.as_str(), sign: state.sign(), word: state.words() }
    }
}

/// The static files of a page.
const FILES: [(&str, &str); 3] = [
    ("style.css", include_str!("../../../templates/static/style.css")),
    ("contracts.css", include_str!("../../../templates/static/contracts.css")),
    ("icon.svg", include_str!("../../../templates/static/icon.svg")),
];

/// A page that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The folder holds files that this program did not write.
    #[error("`{out}` exists and is not {kind}; nothing was written")]
    Foreign {
        /// The folder.
        out: Utf8PathBuf,
        /// What the folder should be.
        kind: &'static str,
    },
    /// The folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process writes into the folder.
    #[error("another process is writing to `{0}`")]
    Busy(Utf8PathBuf),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The page could not be rendered.
    #[error("failed to render the page")]
    Render(#[from] askama::Error),
}

/// A kind of folder with one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageFolder {
    /// The name of the kind in messages, with its article.
    pub(crate) kind: &'static str,
    /// The content of the marker file.
    pub(crate) marker: &'static str,
}

impl PageFolder {
    /// Writes a page and its static files into the folder `out`, as a whole. Returns the path of the page.
    pub(crate) fn write(self, out: &Utf8Path, page: &impl Template) -> Result<Utf8PathBuf, PageError> {
        let kind = SiteKind { marker: self.marker, entries: &[INDEX_FILE, STATIC_FOLDER], files: &FILES };
        let html = page.render()?;
        let replacement = kind.begin(out).map_err(|error| match error {
            SiteError::Foreign(out) => PageError::Foreign { out, kind: self.kind },
            SiteError::Read { path, source } => PageError::Read { path, source },
            SiteError::Busy(out) => PageError::Busy(out),
            SiteError::Write(error) => PageError::Write(error),
        })?;
        write_new(&replacement.path().join(INDEX_FILE), html.as_bytes())?;
        replacement.publish()?;
        Ok(out.join(INDEX_FILE))
    }
}
