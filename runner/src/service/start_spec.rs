//! How to start an agent, and how to see that it is ready. `{port}` is replaced by a free port.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

use crate::settings::{AgentCommand, BaseUrl, BaseUrlError, PORT, at_port};

/// How to start the agent of one side.
#[derive(Debug, Clone)]
pub struct StartSpec {
    /// The command with its folder and variables. Its words and the values of its variables may contain `{port}`.
    pub command: AgentCommand,
    /// The base URL of the agent. `None` is `http://127.0.0.1:{port}`.
    pub base_url: Option<UrlTemplate>,
    /// What shows that the agent is ready. `None` is a connection to the port of the base URL.
    pub ready: Option<Ready>,
    /// How long the agent may take to be ready.
    pub ready_timeout: Duration,
}

/// What shows that an agent is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// A response of this URL with a status below 500.
    Url(UrlTemplate),
    /// This time after the start.
    After(Duration),
    /// A line of its output that contains this text.
    Line(String),
}

/// An invalid `ready`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadyError {
    /// The text is empty.
    #[error("`ready` is empty; expected a URL, a time such as `2s`, or a text that the agent prints")]
    Empty,
    /// The text starts like a URL and is not one.
    #[error("`ready` is not a URL: {0}")]
    Url(#[from] BaseUrlError),
}

/// An HTTP URL that may contain `{port}`.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate(String);

impl StartSpec {
    /// The default of [`StartSpec::ready_timeout`].
    pub const READY_TIMEOUT: Duration = Duration::from_mins(1);

    /// Creates a specification with the defaults.
    pub fn new(command: AgentCommand) -> Self {
        Self { command, base_url: None, ready: None, ready_timeout: Self::READY_TIMEOUT }
    }

    /// Replaces `{port}` everywhere.
    pub(super) fn at_port(&self, port: u16) -> Result<PlacedSpec, BaseUrlError> {
        let base_url = match &self.base_url {
            Some(template) => template.at_port(port)?,
            None => format!("http://127.0.0.1:{port}").parse()?,
        };
        let ready = match &self.ready {
            None => Awaited::Connection(base_url.clone()),
            Some(Ready::Url(template)) => Awaited::Response(template.at_port(port)?),
            Some(Ready::After(time)) => Awaited::Time(*time),
            Some(Ready::Line(text)) => Awaited::Line(at_port(text, port)),
        };
        Ok(PlacedSpec { command: self.command.at_port(port).unbuffered(), base_url, ready })
    }

    /// Reports whether the agent gets a port of its own.
    pub(super) fn has_own_port(&self) -> bool {
        self.base_url.as_ref().is_none_or(|template| template.0.contains(PORT))
    }
}

/// A specification whose port is chosen.
#[derive(Debug)]
pub(super) struct PlacedSpec {
    pub(super) command: AgentCommand,
    pub(super) base_url: BaseUrl,
    pub(super) ready: Awaited,
}

/// What a start waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Awaited {
    Connection(BaseUrl),
    Response(BaseUrl),
    Time(Duration),
    Line(String),
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Connection(base) => write!(f, "a connection to {}", base.recorded()),
            Awaited::Response(url) => write!(f, "{}", url.recorded()),
            Awaited::Time(time) => write!(f, "{time:?}"),
            Awaited::Line(text) => write!(f, "the text `{text}` in its output"),
        }
    }
}

impl FromStr for Ready {
    type Err = ReadyError;

    fn from_str(text: &str) -> Result<Self, ReadyError> {
        if text.trim().is_empty() {
            return Err(ReadyError::Empty);
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Ready::Url(text.parse()?));
        }
        // A text that an agent prints may begin with `P`, as durations in the ISO format do.
        let span =
            text.parse::<SignedDuration>().ok().filter(|_| text.starts_with(|first: char| first.is_ascii_digit()));
        let time = span.and_then(|span| Duration::try_from(span).ok());
        Ok(time.map_or_else(|| Ready::Line(text.to_owned()), Ready::After))
    }
}

impl FromStr for UrlTemplate {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        let template = Self(text.to_owned());
        template.at_port(1).map(|_| template)
    }
}

impl UrlTemplate {
    /// Returns the URL with a port in place of `{port}`.
    pub(super) fn at_port(&self, port: u16) -> Result<BaseUrl, BaseUrlError> {
        at_port(&self.0, port).parse()
    }
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_port(1) {
            Ok(url) => write!(f, "UrlTemplate({})", url.recorded()),
            Err(_) => f.write_str("UrlTemplate"),
        }
    }
}

/// Ports that this process has chosen. The system may offer a port again until the agent listens on it.
static CHOSEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Returns a port that is free on both loopback addresses.
pub(super) fn free_port() -> io::Result<u16> {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let other = TcpListener::bind((Ipv6Addr::LOCALHOST, port));
        // Any other error means that the system has no IPv6.
        let is_used = other.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        if !is_used && CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_a_url_a_time_or_a_text() {
        let ready = |text: &str| text.parse::<Ready>();
        assert!(matches!(ready("http://localhost:{port}/health"), Ok(Ready::Url(_))));
        assert_eq!(ready("2s"), Ok(Ready::After(Duration::from_secs(2))));
        assert_eq!(ready("500ms"), Ok(Ready::After(Duration::from_millis(500))));
        for text in ["startup complete", "2", "PT2S", "200 OK", "listening on {port}"] {
            assert_eq!(ready(text), Ok(Ready::Line(text.to_owned())));
        }
        assert_eq!(ready("  "), Err(ReadyError::Empty));
        assert!(matches!(ready("http://:{port}/"), Err(ReadyError::Url(_))));
    }

    #[test]
    fn one_port_is_inserted_everywhere() {
        let mut spec = StartSpec::new("serve --port={port} {port}".parse().unwrap());
        spec.ready = Some("up at {port}".parse().unwrap());
        let placed = spec.at_port(4711).unwrap();
        assert_eq!(placed.command.words(), ["serve", "--port=4711", "4711"]);
        assert_eq!(placed.base_url.recorded(), "http://127.0.0.1:4711");
        assert_eq!(placed.ready, Awaited::Line("up at 4711".to_owned()));
        assert!(spec.has_own_port());

        spec.base_url = Some("http://localhost:{port}/api".parse().unwrap());
        spec.ready = Some("http://localhost:{port}/health?deep=1".parse().unwrap());
        let placed = spec.at_port(4711).unwrap();
        assert_eq!(placed.base_url.recorded(), "http://localhost:4711/api");
        assert_eq!(placed.ready.to_string(), "http://localhost:4711/health");
        assert!(spec.has_own_port());

        spec.base_url = Some("http://localhost:8000".parse().unwrap());
        spec.ready = None;
        assert_eq!(spec.at_port(4711).unwrap().ready.to_string(), "a connection to http://localhost:8000");
        assert!(!spec.has_own_port());
    }

    #[test]
    fn chosen_ports_differ() {
        let ports: BTreeSet<u16> = (0..20).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 20);
    }
}
