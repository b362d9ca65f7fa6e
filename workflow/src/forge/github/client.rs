//! Requests to the REST interface of GitHub: retries, rate limits, and bounded answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use counterproof_contracts::process::Cancellation;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::forge::ForgeError;

const API_URL: &str = "https://api.github.com";
const API_VERSION: &str = "2022-11-28";
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a request is sent that fails on the way, or at the server.
const MAX_ATTEMPTS: u32 = 5;
/// How often a request waits for a rate limit.
const MAX_RATE_LIMITS: u32 = 10;
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The pause where GitHub does not state one, as its documentation asks for.
const RATE_LIMIT_PAUSE: Duration = Duration::from_mins(1);
/// Primary limits are reset each hour.
const LONGEST_RATE_LIMIT: Duration = Duration::from_mins(61);
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Maximum bytes of a log that are returned: its end.
const MAX_LOG_BYTES: usize = 32 << 10;
const MAX_REDIRECTS: u32 = 3;

/// Waits on this thread. Returns false if it was cancelled before.
pub(super) type Wait = Arc<dyn Fn(Duration, &Cancellation) -> bool + Send + Sync>;

/// A token of the forge. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token.trim().to_owned())
    }
}

impl Token {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    fn mask(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[redacted]") }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([redacted])")
    }
}

pub(super) struct Client {
    runtime: Runtime,
    http: reqwest::Client,
    api: Url,
    token: Token,
    wait: Wait,
}

pub(super) struct Answer {
    pub status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    /// Of an error, for people.
    message: String,
}

impl Client {
    pub(super) fn new(api_url: Option<&str>, token: Token, wait: Wait) -> Result<Self, ForgeError> {
        let api_url = api_url.unwrap_or(API_URL).trim_end_matches('/');
        let invalid = |_| ForgeError::GitHub("GITHUB_API_URL is not a URL".to_owned());
        let api: Url = api_url.parse().map_err(invalid)?;
        if token.0.is_empty() || token.0.contains(|c: char| !c.is_ascii_graphic()) {
            return Err(ForgeError::GitHub("GITHUB_TOKEN is not set, or is not a token".to_owned()));
        }
        if !is_safe(&api) {
            return Err(ForgeError::GitHub("the token is only sent over HTTPS, and GITHUB_API_URL is not".to_owned()));
        }
        // An error means that the program installed a provider already, and that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = reqwest::Client::builder()
                .user_agent(concat!("counterproof/", env!("CARGO_PKG_VERSION")))
                // The token must not follow a redirect.
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .timeout(REQUEST_TIMEOUT);
            if api.host_str().is_some_and(is_loopback) { builder.no_proxy() } else { builder }
        };
        // Systems without certificates can reach a server on this machine.
        let is_plain = api.scheme() == "http";
        let http = builder().build();
        let http = http.or_else(|error| if is_plain { builder().tls_certs_only([]).build() } else { Err(error) });
        let http = http.map_err(|error| ForgeError::GitHub(format!("cannot use HTTPS: {error}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ForgeError::GitHub(format!("cannot start: {error}")))?;
        Ok(Self { runtime, http, api, token, wait })
    }

    /// Returns the host of the repositories of the interface, the only other one that may get the token.
    pub(super) fn repository_host(&self) -> &str {
        let host = self.api.host_str().unwrap_or_default();
        host.strip_prefix("api.").unwrap_or(host)
    }

    pub(super) const fn token(&self) -> &Token {
        &self.token
    }

    pub(super) fn wait(&self, time: Duration, cancellation: &Cancellation) -> bool {
        (self.wait)(time, cancellation)
    }

    /// Sends a GET request and requires success.
    pub(super) fn get(&self, path: &str, cancellation: &Cancellation) -> Result<Answer, ForgeError> {
        self.send("GET", path, None, cancellation)?.success()
    }

    /// Sends a request until it has an answer that does not ask for another attempt.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        cancellation: &Cancellation,
    ) -> Result<Answer, ForgeError> {
        let (mut attempt, mut limits, mut backoff) = (1, 0, FIRST_BACKOFF);
        loop {
            let pause = match self.block_on(self.attempt(method, path, body), cancellation)? {
                Ok(answer) => match answer.rate_limit() {
                    Some(pause) if limits < MAX_RATE_LIMITS => {
                        limits += 1;
                        Some(pause)
                    }
                    None if answer.status >= 500 && attempt < MAX_ATTEMPTS => None,
                    _ => return Ok(answer),
                },
                Err(_) if attempt < MAX_ATTEMPTS => None,
                Err(error) => {
                    let cause = self.token.mask(&last_cause(&error));
                    return Err(ForgeError::GitHub(format!("cannot reach {}: {cause}", self.origin())));
                }
            };
            let pause = pause.unwrap_or_else(|| {
                attempt += 1;
                backoff *= 2;
                backoff / 2
            });
            if !self.wait(pause, cancellation) {
                return Err(ForgeError::Cancelled);
            }
        }
    }

    async fn attempt(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, reqwest::Error> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
        let url = format!("{}{path}", self.api.as_str().trim_end_matches('/'));
        let mut request = self.http.request(method, url).header(ACCEPT, "application/vnd.github+json");
        request = request.header("X-GitHub-Api-Version", API_VERSION);
        request = request.header(AUTHORIZATION, format!("Bearer {}", self.token.0));
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        let mut response = request.send().await?;
        let mut answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: Vec::new(),
            message: String::new(),
        };
        while let Some(piece) = response.chunk().await? {
            if answer.body.len() + piece.len() > MAX_ANSWER_BYTES {
                break;
            }
            answer.body.extend(piece);
        }
        answer.message = self.message(&answer);
        Ok(answer)
    }

    /// Returns the end of a log, which GitHub has at another host. `None` if there is no log.
    pub(super) fn log(&self, path: &str, cancellation: &Cancellation) -> Result<Option<String>, ForgeError> {
        let answer = self.send("GET", path, None, cancellation)?;
        let is_redirect = (300..400).contains(&answer.status);
        if !is_redirect {
            return Ok((answer.status == 200).then(|| end_of(&answer.body)));
        }
        let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let Some(url) = location.and_then(|location| self.api.join(location).ok()) else { return Ok(None) };
        self.block_on(self.fetch_end(url), cancellation)
    }

    /// Fetches a public address without the token.
    async fn fetch_end(&self, mut url: Url) -> Option<String> {
        for _ in 0..MAX_REDIRECTS {
            if !is_safe(&url) {
                return None;
            }
            let mut response = self.http.get(url.clone()).send().await.ok()?;
            if response.status().is_redirection() {
                url = redirect(&url, &response)?;
                continue;
            }
            if !response.status().is_success() {
                return None;
            }
            let mut end = Vec::new();
            while let Some(piece) = response.chunk().await.ok()? {
                end.extend_from_slice(&piece);
                if end.len() > 4 * MAX_LOG_BYTES {
                    end.drain(..end.len() - MAX_LOG_BYTES);
                }
            }
            return Some(end_of(&end));
        }
        None
    }

    fn block_on<T>(&self, work: impl Future<Output = T>, cancellation: &Cancellation) -> Result<T, ForgeError> {
        self.runtime.block_on(async {
            tokio::select! {
                () = cancellation.cancelled() => Err(ForgeError::Cancelled),
                done = work => Ok(done),
            }
        })
    }

    fn origin(&self) -> String {
        self.api.origin().ascii_serialization()
    }

    fn message(&self, answer: &Answer) -> String {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let details = body["errors"].as_array().into_iter().flatten();
        let details = details.filter_map(|it| it["message"].as_str().or(it.as_str()));
        let parts: Vec<&str> = body["message"].as_str().into_iter().chain(details).collect();
        let text: String = self.token.mask(&parts.join("; ")).chars().take(300).collect();
        let remedy = match answer.status {
            401 => "; set GITHUB_TOKEN to a token that is valid",
            403 => "; the token needs write access to contents and pull requests, and read access to checks",
            404 => "; the repository does not exist, or the token has no access to it",
            _ => "",
        };
        format!(
            "{} answered {}: {}{remedy}",
            self.origin(),
            answer.status,
            if text.is_empty() { "no reason" } else { &text }
        )
    }
}

impl Answer {
    pub(super) fn success(self) -> Result<Self, ForgeError> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(ForgeError::GitHub(self.message)) }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Result<Value, ForgeError> {
        self.parse()
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ForgeError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ForgeError::GitHub(format!("unexpected answer of GitHub: {error}")))
    }

    /// Returns how long to wait if the answer is that of a primary or a secondary rate limit.
    fn rate_limit(&self) -> Option<Duration> {
        if self.status != 403 && self.status != 429 {
            return None;
        }
        let number = |name: &str| self.headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
        if let Some(seconds) = number(RETRY_AFTER.as_str()) {
            return Some(Duration::from_secs(seconds.unsigned_abs()).min(LONGEST_RATE_LIMIT));
        }
        if number("x-ratelimit-remaining") == Some(0) {
            let reset = number("x-ratelimit-reset").map(|reset| reset.saturating_sub(Timestamp::now().as_second()));
            // One second more, because the times of both machines are rounded.
            let pause = reset.map(|left| Duration::from_secs(u64::try_from(left).unwrap_or(0) + 1));
            return Some(pause.unwrap_or(RATE_LIMIT_PAUSE).min(LONGEST_RATE_LIMIT));
        }
        let is_secondary = self.status == 429 || self.text().contains("secondary rate limit");
        is_secondary.then_some(RATE_LIMIT_PAUSE)
    }
}

fn redirect(url: &Url, response: &Response) -> Option<Url> {
    url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// Returns the last lines of a log.
fn end_of(log: &[u8]) -> String {
    let end = &log[log.len().saturating_sub(MAX_LOG_BYTES)..];
    String::from_utf8_lossy(end).into_owned()
}

fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && url.host_str().is_some_and(is_loopback))
}

pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(host, |(host, _)| host);
    let name = if host.matches(':').count() == 1 { host.split(':').next().unwrap_or(host) } else { host };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the innermost error, which names the cause and not the URL.
fn last_cause(error: &reqwest::Error) -> String {
    counterproof_guard::http::last_cause(error)
}
