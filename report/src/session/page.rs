//! The page itself: its style with a policy that allows nothing else, and the views of its parts.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use counterproof_sessions::event::SessionEvent;
use counterproof_sessions::session::{Fork, SessionHead};
use counterproof_store::write::{self, Durability, WriteError};

use super::checkpoints::{CheckpointsView, ForkView};
use super::overview::Overview;
use super::record::{EntryView, Records};
use super::token_chart::TokenChart;
use crate::folder::STYLE;

/// The policy allows the style of the page and nothing else: no script, no network. The hash is that of the style.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256Digest::from_bytes(STYLE.as_bytes()).to_string();
    let bytes: Vec<u8> = digest
        .as_bytes()
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    format!(
        "default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        STANDARD.encode(bytes)
    )
});

/// A page that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SessionPageError {
    #[error("failed to render the page of the session")]
    Render(#[from] askama::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
}

#[derive(Debug, Template)]
#[template(path = "session/page.html")]
struct SessionPage {
    policy: &'static str,
    style: &'static str,
    overview: Overview,
    chart: Option<TokenChart>,
    parent: Option<ForkView>,
    forks: Vec<ForkView>,
    checkpoints: CheckpointsView,
    entries: Vec<EntryView>,
}

impl SessionPage {
    /// Checkpoints have a list of their own.
    fn timeline_count(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, EntryView::Record(_))).count()
    }
}

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct SessionSource<'a> {
    pub head: &'a SessionHead,
    /// In the order of their numbers.
    pub events: &'a [SessionEvent],
    /// The sessions that were forked from this one.
    pub forks: &'a [Fork],
    /// The location of the ledger, as a shell reads it, for the commands that resume a checkpoint.
    pub ledger: Option<&'a str>,
}

/// Returns a session as one page.
pub fn session_page(source: &SessionSource<'_>) -> Result<String, SessionPageError> {
    let SessionSource { head, events, forks, ledger } = *source;
    let (entries, checkpoints) = Records::views(head, events, ledger);
    let page = SessionPage {
        policy: &POLICY,
        style: STYLE,
        overview: Overview::new(head, events),
        chart: TokenChart::new(events),
        parent: head.parent.as_ref().map(ForkView::parent),
        forks: forks.iter().map(|fork| ForkView::of(fork, &checkpoints)).collect(),
        checkpoints: CheckpointsView::new(checkpoints),
        entries,
    };
    Ok(page.render()?)
}

/// Writes a session as one page.
pub fn write_session_page(source: &SessionSource<'_>, path: &Utf8Path) -> Result<(), SessionPageError> {
    let html = session_page(source)?;
    Ok(write::write(path, html.as_bytes(), Durability::Synced)?)
}
