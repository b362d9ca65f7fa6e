//! The agent of a run: a server with a base URL, or a program.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use counterproof_artifact::PROGRAM;
use counterproof_redaction::argument_secrets;
use reqwest::header::HeaderValue;
use reqwest::{Certificate, Url};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::variables::{Variables, at_port};
use crate::secret::Secret;

/// The agent of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An HTTP server.
    Http(BaseUrl),
    /// A program that is started for each attempt, or once per worker.
    Command(AgentCommand),
}

impl Target {
    /// Returns the agent as files and messages show it: the base URL without secrets, or `cmd:` and the program's file name.
    pub fn recorded(&self) -> String {
        match self {
            Target::Http(base) => base.recorded().to_owned(),
            Target::Command(command) => command.recorded(),
        }
    }
}

impl From<BaseUrl> for Target {
    fn from(base: BaseUrl) -> Self {
        Target::Http(base)
    }
}

impl From<AgentCommand> for Target {
    fn from(command: AgentCommand) -> Self {
        Target::Command(command)
    }
}

/// A program with its arguments, folder and environment. No output shows the arguments, because they may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentCommand {
    program: String,
    arguments: Vec<Secret>,
    /// `None` is the working folder of this process.
    folder: Option<PathBuf>,
    variables: Variables,
    lifetime: Lifetime,
}

/// For how many attempts a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// It is started for each attempt: the whole output is the answer.
    #[default]
    Attempt,
    /// It answers many requests: one line of input, one line of output.
    Run,
}

/// An invalid command. The messages do not quote it, because it may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentCommandError {
    /// The text is empty.
    #[error("the command is empty; expected a program and its arguments")]
    Empty,
    /// A quote is not closed.
    #[error("the command has an unclosed quote; expected its closing quote")]
    Quote,
}

impl FromStr for AgentCommand {
    type Err = AgentCommandError;

    /// Splits at white space, with quotes and backslashes as in a POSIX shell. No shell runs, and nothing is expanded.
    fn from_str(text: &str) -> Result<Self, AgentCommandError> {
        let mut words = shell_words::split(text).map_err(|_| AgentCommandError::Quote)?.into_iter();
        let program = words.next().filter(|program| !program.is_empty()).ok_or(AgentCommandError::Empty)?;
        let arguments = words.map(Secret::from).collect();
        Ok(Self { program, arguments, folder: None, variables: Variables::default(), lifetime: Lifetime::default() })
    }
}

impl AgentCommand {
    /// Sets the working folder. A relative path of the program starts there too.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Sets environment variables in addition to those of this process.
    #[must_use]
    pub fn with_variables(self, variables: Variables) -> Self {
        Self { variables, ..self }
    }

    /// Sets for how many attempts the program runs.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Lifetime) -> Self {
        Self { lifetime, ..self }
    }

    /// Returns for how many attempts the program runs.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Replaces `{port}` in the words and in the variables.
    pub(crate) fn at_port(&self, port: u16) -> Self {
        let arguments = self.arguments().map(|argument| Secret::from(at_port(argument, port))).collect();
        let (program, variables) = (at_port(&self.program, port), self.variables.at_port(port));
        Self { program, arguments, variables, ..self.clone() }
    }

    /// Makes Python programs print each line at once.
    #[must_use]
    pub(crate) fn unbuffered(self) -> Self {
        Self { variables: self.variables.unbuffered(), ..self }
    }

    /// Returns the texts of the command that no output may contain.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let variables = self.variables.secrets().map(str::to_owned);
        argument_secrets(self.arguments()).into_iter().chain(variables).collect()
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Returns the program and its arguments.
    pub(crate) fn words(&self) -> Vec<OsString> {
        std::iter::once(self.program()).chain(self.arguments()).map(OsString::from).collect()
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(Secret::expose)
    }

    fn recorded(&self) -> String {
        // The folder of the program is specific to this machine, and no path in a run folder is absolute.
        let name = self.program.rsplit(['/', '\\']).next().unwrap_or_default();
        format!("{PROGRAM}{name}")
    }
}

impl fmt::Debug for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentCommand({}, {} arguments)", self.program, self.arguments.len())
    }
}

/// The base URL of an agent. Its recorded form has no credentials, no query and no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    full: Url,
    recorded: String,
}

/// An invalid base URL. The messages do not quote it, because it may contain credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The text is not a URL.
    #[error("invalid base URL: {0}; expected one such as http://localhost:8000")]
    Syntax(<Url as FromStr>::Err),
    /// The scheme is not http or https.
    #[error("unsupported scheme `{0}` in the base URL; expected http or https")]
    Scheme(String),
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        let mut full = Url::parse(text).map_err(BaseUrlError::Syntax)?;
        if !matches!(full.scheme(), "http" | "https") {
            return Err(BaseUrlError::Scheme(full.scheme().to_owned()));
        }
        full.set_fragment(None);
        let recorded = strip_secrets(&full).trim_end_matches('/').to_owned();
        Ok(Self { full, recorded })
    }
}

impl BaseUrl {
    /// Returns the URL with credentials and query, for another component that sends requests there.
    pub fn to_secret(&self) -> Secret {
        Secret::from(self.full.to_string())
    }

    /// Returns the URL as files and messages show it.
    pub fn recorded(&self) -> &str {
        &self.recorded
    }

    /// Returns the recorded URL of a request to `path` below the base, without a query.
    pub(crate) fn recorded_request_url(&self, path: &str) -> String {
        strip_secrets(&self.request_url(path))
    }

    /// Returns the URL of a request to `path` below the base, with credentials and query. An empty path is the base itself.
    pub(crate) fn request_url(&self, path: &str) -> Url {
        let mut url = self.full.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        if let Some(query) = query {
            let queries: Vec<_> = url.query().into_iter().chain([query]).collect();
            url.set_query(Some(&queries.join("&")));
        }
        if path.is_empty() {
            return url;
        }
        // A base URL may end with a slash.
        url.set_path(&format!("{}/{path}", self.full.path().trim_end_matches('/')));
        url
    }

    /// Reports whether the URL names this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        // In a URL, an IPv6 address is in brackets.
        let address = self.host().trim_start_matches('[').trim_end_matches(']');
        self.loopback_name().is_some() || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Returns the host if it is a name of this machine, which has an IPv4 and an IPv6 address.
    pub(crate) fn loopback_name(&self) -> Option<&str> {
        // All names below `localhost` are loopback names (RFC 6761, section 6.3).
        Some(self.host()).filter(|name| *name == "localhost" || name.ends_with(".localhost"))
    }

    /// Returns the whole URL, with credentials and query.
    pub(crate) const fn full(&self) -> &Url {
        &self.full
    }

    /// Reports whether requests are sent without TLS.
    pub fn is_plain(&self) -> bool {
        self.full.scheme() == "http"
    }

    pub(super) fn host(&self) -> &str {
        self.full.host_str().unwrap_or_default()
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({})", self.recorded)
    }
}

/// Formats a URL without the parts that may contain a secret: user, password, query and fragment.
pub(crate) fn strip_secrets(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host, which cannot contain credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// A host name and the address to use for it instead of name resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRule {
    host: String,
    address: SocketAddr,
}

/// An invalid resolve rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid resolve rule `{0}`: use HOST:ADDRESS:PORT, such as `agent.example:127.0.0.1:8787` or `agent.example:[::1]:8787`"
)]
pub struct ResolveRuleError(String);

impl FromStr for ResolveRule {
    type Err = ResolveRuleError;

    fn from_str(text: &str) -> Result<Self, ResolveRuleError> {
        let invalid = || ResolveRuleError(text.to_owned());
        // At the first colon, since an IPv6 address has colons too.
        let (host, address) = text.split_once(':').ok_or_else(invalid)?;
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self::new(host, address.parse().map_err(|_| invalid())?))
    }
}

impl ResolveRule {
    /// Creates a rule that sends requests for `host` to `address`.
    pub fn new(host: &str, address: SocketAddr) -> Self {
        Self { host: host.to_ascii_lowercase(), address }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reports whether the rule applies to the base URL.
    pub(crate) fn applies_to(&self, base: &BaseUrl) -> bool {
        base.host() == self.host
    }

    /// Removes the port from the URL and returns the original `Host` header.
    pub(crate) fn take_port(url: &mut Url) -> Option<HeaderValue> {
        // The HTTP client prefers the port of the URL over the port of the address, so the URL must not contain one.
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return None,
        };
        // `set_port` fails only for URLs without a host.
        let _ = url.set_port(None);
        HeaderValue::from_str(&host).ok()
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

/// Certificates of authorities, read from PEM.
#[derive(Clone, Default)]
pub struct TrustedCertificates(Vec<Certificate>);

/// A text without usable certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The text has no certificate.
    #[error("no `BEGIN CERTIFICATE` in it")]
    Missing,
    /// The text is not PEM.
    #[error("not PEM: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// A certificate cannot be one of an authority.
    #[error("certificate {number}: {source}")]
    Invalid {
        /// The number of the certificate in the text, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
}

impl TrustedCertificates {
    /// Reads the certificates in a PEM text and checks each of them.
    pub fn from_pem(text: &[u8]) -> Result<Self, CertificateError> {
        let mut store = RootCertStore::empty();
        let mut certificates = Vec::new();
        for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(text)) {
            let certificate = certificate.map_err(CertificateError::Pem)?;
            // The HTTP client parses certificates when it is built, where an error could no longer name the file.
            let parsed = Certificate::from_der(&certificate);
            store.add(certificate).map_err(|source| CertificateError::Invalid { number, source })?;
            certificates.extend(parsed);
        }
        if certificates.is_empty() { Err(CertificateError::Missing) } else { Ok(Self(certificates)) }
    }

    pub(crate) fn to_vec(&self) -> Vec<Certificate> {
        self.0.clone()
    }
}

impl fmt::Debug for TrustedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrustedCertificates({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_like_a_shell_does_but_nothing_is_expanded() {
        let command: AgentCommand = r#"/opt/agent --key 's3 cret' "a b" c\ d $HOME * > x"#.parse().unwrap();
        assert_eq!(command.program(), "/opt/agent");
        let arguments: Vec<_> = command.arguments().collect();
        assert_eq!(arguments, ["--key", "s3 cret", "a b", "c d", "$HOME", "*", ">", "x"]);
        assert_eq!(Target::from(command).recorded(), "cmd:agent");
    }

    #[test]
    fn no_output_shows_the_arguments() {
        let command: AgentCommand = "agent --key s3cret".parse().unwrap();
        assert!(!format!("{command:?}").contains("s3cret"));
        for text in ["", "  ", "'s3cret", "''"] {
            assert!(!text.parse::<AgentCommand>().unwrap_err().to_string().contains("s3cret"));
        }
    }

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn the_recorded_url_contains_no_secret() {
        let url = base("https://user:pass@agent.example:8443/api/?key=s3cret#s3cret");
        assert_eq!(url.recorded(), "https://agent.example:8443/api");
        assert_eq!(url.recorded_request_url("run-case"), "https://agent.example:8443/api/run-case");
        assert_eq!(
            url.request_url("run-case").as_str(),
            "https://user:pass@agent.example:8443/api/run-case?key=s3cret"
        );
        assert!(!format!("{url:?}").contains("pass"));
    }

    #[test]
    fn an_invalid_base_url_is_rejected_without_being_quoted() {
        for text in ["localhost:8787", "ftp://user:s3cret@h/", "http://", "s3cret"] {
            let error = text.parse::<BaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn this_machine_is_recognised_by_all_its_names() {
        for text in ["http://localhost:1", "http://127.0.0.2", "http://[::1]:1", "http://agent.localhost"] {
            assert!(base(text).is_loopback(), "{text}");
        }
        assert!(!base("http://localhost.example").is_loopback());
    }

    #[test]
    fn a_text_without_usable_certificates_is_an_error() {
        let error = |text: &str| TrustedCertificates::from_pem(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error("subject=CN = authority"), "no `BEGIN CERTIFICATE` in it");
        assert!(error("-----BEGIN CERTIFICATE-----\nAA").starts_with("not PEM: "));
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error(empty).starts_with("certificate 1: "), "{}", error(empty));
    }
}

#[cfg(test)]
mod resolve_rule_tests {
    use super::*;

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_rule_has_a_host_and_an_address() {
        let rule: ResolveRule = "Agent.example:[::1]:8787".parse().unwrap();
        assert!(rule.applies_to(&base("http://agent.example:99/x")));
        assert!(!rule.applies_to(&base("http://other.example")));
        for text in ["agent.example", ":127.0.0.1:1", "agent.example:127.0.0.1", "agent.example:80:127.0.0.1"] {
            assert!(text.parse::<ResolveRule>().is_err(), "{text}");
        }
    }
}
