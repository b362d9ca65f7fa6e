//! GitHub over its REST interface: pull requests, check runs, commit statuses and the logs of jobs.
//!
//! The token is sent to the address of the interface and to the repository alone, never to the host that has the logs. It is in no
//! argument, URL, error or record.

mod client;
mod repository;

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use counterproof_contracts::process::Cancellation;
use counterproof_workspace::git::GitOptions;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::client::Token;
use self::client::{Answer, Client, Wait};
use self::repository::RepositoryAddress;
use super::push::Remote;
use super::{CiResult, CiStatus, CiWanted, Forge, ForgeError, NewPullRequest, PullRequest, Push};

/// How long a commit may have no check of Actions before it counts as one without them.
const GRACE: Duration = Duration::from_mins(2);
/// How long checks may take if the caller states no limit.
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const PAGE: usize = 100;
const MAX_PAGES: usize = 20;

#[derive(Clone)]
pub struct GitHubOptions {
    pub token: Token,
    /// The base URL of the REST interface; `None` is `https://api.github.com`.
    pub api_url: Option<String>,
    /// The address of the repository: a HTTPS or SSH URL, or `git@host:owner/name`.
    pub repository: String,
    pub git: GitOptions,
    /// Waits on this thread. Returns false if it was cancelled before.
    pub wait: Wait,
}

impl GitHubOptions {
    pub fn new(token: Token, repository: impl Into<String>) -> Self {
        Self {
            token,
            api_url: None,
            repository: repository.into(),
            git: GitOptions::default(),
            wait: std::sync::Arc::new(|time, cancellation: &Cancellation| cancellation.wait(time)),
        }
    }
}

pub struct GitHubForge {
    client: Client,
    repository: RepositoryAddress,
    git: GitOptions,
}

#[derive(Debug, Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: Option<String>,
    head: Head,
}

#[derive(Debug, Deserialize)]
struct Head {
    sha: Option<String>,
    #[serde(rename = "ref")]
    branch: String,
    /// `owner:branch`.
    label: Option<String>,
}

impl Pull {
    fn is_open(&self) -> bool {
        self.state.as_deref() == Some("open")
    }
}

impl From<Pull> for PullRequest {
    fn from(pull: Pull) -> Self {
        Self { number: pull.number, url: pull.html_url, head: pull.head.branch }
    }
}

/// A check run or a commit status.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: String,
    /// `None` while it runs.
    is_success: Option<bool>,
    url: String,
    /// The id of a check run, which is that of the job for GitHub Actions.
    job: Option<u64>,
    is_of_actions: bool,
    /// What the check states about its result.
    summary: String,
}

impl GitHubForge {
    /// Creates the forge without a request. Its methods must not be called on a thread of an async runtime.
    pub fn new(options: GitHubOptions) -> Result<Self, ForgeError> {
        let repository = RepositoryAddress::parse(&options.repository)?;
        let client = Client::new(options.api_url.as_deref(), options.token, options.wait)?;
        let (found, expected) = (repository.host_name(), client.repository_host());
        if !found.eq_ignore_ascii_case(expected) {
            let text = format!(
                "the repository is at `{found}`, and the token is only sent to `{expected}`: set GITHUB_API_URL to the \
                 interface of the server"
            );
            return Err(ForgeError::GitHub(text));
        }
        Ok(Self { client, repository, git: options.git })
    }

    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.repository.owner, self.repository.name)
    }

    fn checks(&self, commit: &str, cancellation: &Cancellation) -> Result<Vec<Check>, ForgeError> {
        let mut checks = Vec::new();
        for page in 1..=MAX_PAGES {
            let path = self.path(&format!("/commits/{commit}/check-runs?per_page={PAGE}&page={page}"));
            let answer = self.client.get(&path, cancellation)?.json()?;
            let runs = answer["check_runs"].as_array().map(Vec::as_slice).unwrap_or_default();
            checks.extend(runs.iter().map(check_run));
            if runs.len() < PAGE {
                break;
            }
        }
        for page in 1..=MAX_PAGES {
            let path = self.path(&format!("/commits/{commit}/status?per_page={PAGE}&page={page}"));
            let answer = self.client.get(&path, cancellation)?.json()?;
            let statuses = answer["statuses"].as_array().map(Vec::as_slice).unwrap_or_default();
            checks.extend(statuses.iter().map(status));
            if statuses.len() < PAGE {
                break;
            }
        }
        Ok(checks)
    }

    /// Returns the end of the log of a failed check.
    fn log(&self, check: &Check, cancellation: &Cancellation) -> Result<String, ForgeError> {
        if let Some(job) = check.job
            && let Some(log) = self.client.log(&self.path(&format!("/actions/jobs/{job}/logs")), cancellation)?
        {
            return Ok(log);
        }
        // Another application than Actions, or a log that has expired.
        Ok(format!("{}: {}", check.name, if check.summary.is_empty() { "failed" } else { &check.summary }))
    }

    fn finished(&self, checks: &[Check], cancellation: &Cancellation) -> Result<CiResult, ForgeError> {
        let failed = checks.iter().find(|check| check.is_success == Some(false));
        Ok(match failed {
            Some(check) => {
                CiResult { status: CiStatus::Fail, log: self.log(check, cancellation)?, log_place: check.url.clone() }
            }
            None => result(CiStatus::Pass, "", checks.first().map_or("", |check| &check.url)),
        })
    }

    /// True if a commit has workflows of Actions, so that checks are to be expected.
    fn has_workflows(&self, commit: &str, cancellation: &Cancellation) -> Result<bool, ForgeError> {
        let path = self.path(&format!("/contents/.github/workflows?ref={commit}"));
        let answer = self.client.send("GET", &path, None, cancellation)?;
        if answer.status == 404 { Ok(false) } else { answer.success().map(|_| true) }
    }

    /// Returns the pull requests of a branch, also closed ones, the newest first.
    fn pulls(&self, branch: &str, cancellation: &Cancellation) -> Result<Vec<Pull>, ForgeError> {
        let head = format!("{}:{branch}", self.repository.owner);
        let query = utf8_percent_encode(&head, NON_ALPHANUMERIC);
        let answer = self.client.get(&self.path(&format!("/pulls?head={query}&state=all")), cancellation)?;
        let mut pulls: Vec<Pull> = answer.parse()?;
        // GitHub ignores a filter that it cannot read.
        pulls.retain(|pull| {
            let label = pull.head.label.as_ref();
            pull.head.branch == branch && label.is_none_or(|label| label.eq_ignore_ascii_case(&head))
        });
        Ok(pulls)
    }

    fn wait_for_checks(
        &self,
        commit: &str,
        timeout: Option<Duration>,
        cancellation: &Cancellation,
    ) -> Result<CiResult, ForgeError> {
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
        let started = Instant::now();
        // Asked for only where it decides.
        let mut has_workflows = None;
        let (mut waited, mut pause) = (Duration::ZERO, FIRST_PAUSE);
        let mut last: Option<Vec<Check>> = None;
        loop {
            let checks = self.checks(commit, cancellation)?;
            let elapsed = waited.max(started.elapsed());
            let is_done = !checks.is_empty() && checks.iter().all(|check| check.is_success.is_some());
            // Another application may have passed before Actions has added a check.
            let may_lack_actions =
                elapsed < GRACE && checks.iter().all(|check| check.is_success != Some(false) && !check.is_of_actions);
            let needs_workflows = if checks.is_empty() { elapsed >= GRACE } else { is_done && may_lack_actions };
            if needs_workflows && has_workflows.is_none() {
                has_workflows = Some(self.has_workflows(commit, cancellation)?);
            }
            let lacks_actions = may_lack_actions && has_workflows == Some(true);
            // Workflows are added one after another: the list must be the same twice.
            if is_done && !lacks_actions && last.as_ref() == Some(&checks) {
                return self.finished(&checks, cancellation);
            }
            if elapsed >= timeout {
                let place = checks.first().map_or("", |check| &check.url);
                let open = checks.iter().filter(|check| check.is_success.is_none()).map(|check| check.name.as_str());
                let open = open.collect::<Vec<_>>().join(", ");
                let state = match (checks.is_empty(), open.is_empty()) {
                    (true, _) => "no check has begun".to_owned(),
                    (false, true) => "further checks were expected".to_owned(),
                    (false, false) => format!("still running: {open}"),
                };
                return Ok(result(CiStatus::TimedOut, &state, place));
            }
            // Runners can be busy for long.
            if checks.is_empty() && elapsed >= GRACE && has_workflows == Some(false) {
                return Ok(result(CiStatus::None, "", ""));
            }
            let left = timeout.saturating_sub(elapsed).min(pause);
            if !self.client.wait(left, cancellation) {
                return Err(ForgeError::Cancelled);
            }
            waited += left;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            last = Some(checks);
        }
    }
}

impl Forge for GitHubForge {
    fn check_base(&self, branch: &str, commit: &str, cancellation: &Cancellation) -> Result<(), ForgeError> {
        let branch_name = utf8_percent_encode(branch, NON_ALPHANUMERIC);
        let found =
            self.client.send("GET", &self.path(&format!("/git/ref/heads%2F{branch_name}")), None, cancellation)?;
        if found.status == 404 {
            // Without access, everything is missing.
            self.client.get(&self.path(""), cancellation)?;
            return Err(ForgeError::NoBase(branch.to_owned()));
        }
        if found.success()?.json()?["object"]["sha"] == commit {
            return Ok(());
        }
        // In this direction, the answer for a commit that is on the branch has no commits and files.
        let path = self.path(&format!("/compare/{branch_name}...{commit}?per_page=1"));
        let compared = self.client.send("GET", &path, None, cancellation)?;
        // The answer for a commit that GitHub does not have.
        let is_missing = compared.status == 404;
        if is_missing || !matches!(compared.success()?.json()?["status"].as_str(), Some("behind" | "identical")) {
            return Err(ForgeError::UnpushedBase { branch: branch.to_owned(), commit: commit.to_owned() });
        }
        Ok(())
    }

    fn push(&self, push: &Push<'_>, cancellation: &Cancellation) -> Result<(), ForgeError> {
        let credentials = STANDARD.encode(format!("x-access-token:{}", self.client.token().reveal()));
        let address = self.repository.git_url();
        // Settings in the environment, which other users of the machine cannot read, unlike arguments.
        let settings = [
            (format!("http.{address}.extraHeader"), format!("Authorization: Basic {credentials}")),
            // The header would go to another host.
            ("http.followRedirects".to_owned(), "false".to_owned()),
            ("credential.helper".to_owned(), String::new()),
        ];
        let mut environment = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
        for (index, (key, value)) in settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{index}"), key));
            environment.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        let protocol = if self.repository.is_plain { "http" } else { "https" };
        let (environment, options) = (&environment, &self.git);
        Remote { address: &address, protocol, environment, options, cancel: cancellation }.push(push)
    }

    fn find(&self, branch: &str, cancellation: &Cancellation) -> Result<Option<PullRequest>, ForgeError> {
        Ok(self.pulls(branch, cancellation)?.into_iter().find(Pull::is_open).map(PullRequest::from))
    }

    fn open(&self, request: &NewPullRequest, cancellation: &Cancellation) -> Result<PullRequest, ForgeError> {
        let mut pulls = self.pulls(&request.head, cancellation)?;
        // One that was closed or merged is the one of these commits, if it has them: a person decided on it. New commits need
        // another.
        let is_of_commit = |pull: &Pull| pull.head.sha.as_ref() == Some(&request.head_commit);
        let found = pulls.iter().position(Pull::is_open).or_else(|| pulls.iter().position(is_of_commit));
        if let Some(found) = found {
            return Ok(pulls.swap_remove(found).into());
        }
        let body = json!({"title": request.title, "body": request.body, "head": request.head, "base": request.base});
        let answer = self.client.send("POST", &self.path("/pulls"), Some(&body), cancellation)?;
        // An earlier attempt whose answer was lost.
        if answer.status == 422
            && answer.text().contains("already exists")
            && let Some(found) = self.find(&request.head, cancellation)?
        {
            return Ok(found);
        }
        Ok(answer.success()?.parse::<Pull>()?.into())
    }

    fn update(
        &self,
        pull_request: &PullRequest,
        request: &NewPullRequest,
        cancellation: &Cancellation,
    ) -> Result<(), ForgeError> {
        let body = json!({"title": request.title, "body": request.body});
        let path = self.path(&format!("/pulls/{}", pull_request.number));
        self.client.send("PATCH", &path, Some(&body), cancellation).and_then(Answer::success).map(drop)
    }

    fn ci(
        &self,
        _pull_request: &PullRequest,
        wanted: &CiWanted<'_>,
        cancellation: &Cancellation,
    ) -> Result<CiResult, ForgeError> {
        match self.wait_for_checks(wanted.commit, wanted.timeout, cancellation) {
            Err(ForgeError::Cancelled) => Ok(result(CiStatus::Cancelled, "", "")),
            waited => waited,
        }
    }
}

fn result(status: CiStatus, log: &str, place: &str) -> CiResult {
    CiResult { status, log: log.to_owned(), log_place: place.to_owned() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn check_run(run: &Value) -> Check {
    let is_success = (run["status"] == "completed").then(|| {
        // A check that was not needed for this change.
        ["success", "neutral", "skipped"].iter().any(|good| run["conclusion"] == *good)
    });
    let parts = [&run["output"]["title"], &run["output"]["summary"], &run["output"]["text"]];
    let summary: String = parts.map(text).join("\n").trim().chars().take(10_000).collect();
    Check {
        name: text(&run["name"]),
        is_success,
        url: text(&run["html_url"]),
        job: run["id"].as_u64(),
        is_of_actions: run["app"]["slug"] == "github-actions",
        summary,
    }
}

fn status(status: &Value) -> Check {
    let is_success = match status["state"].as_str() {
        Some("pending") | None => None,
        state => Some(state == Some("success")),
    };
    Check {
        name: text(&status["context"]),
        is_success,
        url: text(&status["target_url"]),
        job: None,
        is_of_actions: false,
        summary: text(&status["description"]),
    }
}
