//! The page itself: its style with a policy that allows nothing else, and the views of its parts.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use counterproof_sessions::event::SessionEvent;
use counterproof_sessions::session::SessionHead;
use counterproof_store::write::{self, Durability, WriteError};

use super::overview::Overview;
use super::record::{RecordView, Records};
use super::token_chart::TokenChart;

/// The style sheet of all pages, and what the page of a session adds.
const STYLE: &str =
    concat!(include_str!("../../../templates/static/style.css"), include_str!("../../../templates/static/session.css"));

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
    records: Vec<RecordView>,
}

/// Returns a session as one page. The records are in the order of their numbers.
pub fn session_page(head: &SessionHead, events: &[SessionEvent]) -> Result<String, SessionPageError> {
    let page = SessionPage {
        policy: &POLICY,
        style: STYLE,
        overview: Overview::new(head, events),
        chart: TokenChart::new(events),
        records: Records::views(head, events),
    };
    Ok(page.render()?)
}

/// Writes a session as one page.
pub fn write_session_page(
    head: &SessionHead,
    events: &[SessionEvent],
    path: &Utf8Path,
) -> Result<(), SessionPageError> {
    let html = session_page(head, events)?;
    Ok(write::write(path, html.as_bytes(), Durability::Synced)?)
}
