//! GitHub, as a server of ours that answers as its documentation states.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterproof_contracts::process::Cancellation;
use counterproof_tests::{ModelAnswer, ModelRequest, ModelServer};
use counterproof_workflow::forge::{
    CiStatus, Forge, ForgeError, GitHubForge, GitHubOptions, NewPullRequest, PullRequest, Push, Token,
};
use serde_json::{Value, json};

use crate::kit::{Repository, git_options, wanted};

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
type Waits = Arc<Mutex<Vec<Duration>>>;

fn forge_at(server: &ModelServer) -> (GitHubForge, Waits) {
    let waits = Waits::default();
    let log = waits.clone();
    let mut options = GitHubOptions::new(Token::from(TOKEN.to_owned()), "git@127.0.0.1:octo/app.git");
    options.api_url = Some(format!("{}/api/v3/", server.origin()));
    options.wait = Arc::new(move |time, cancellation: &Cancellation| {
        log.lock().unwrap().push(time);
        !cancellation.is_cancelled()
    });
    (GitHubForge::new(options).unwrap(), waits)
}

fn path(request: &ModelRequest) -> String {
    format!("{} {}", request.method, request.target.strip_prefix("/api/v3/repos/octo/app").unwrap_or(&request.target))
}

fn pull() -> Value {
    let head = json!({"ref": "fix", "label": "octo:fix", "sha": "a".repeat(40)});
    json!({"number": 7, "html_url": "https://github.com/octo/app/pull/7", "state": "open", "head": head})
}

fn request() -> NewPullRequest {
    NewPullRequest {
        title: "Fix it".to_owned(),
        body: "It was wrong.".to_owned(),
        base: "main".to_owned(),
        head: "fix".to_owned(),
        base_commit: "b".repeat(40),
        head_commit: "a".repeat(40),
    }
}

fn pull_request() -> PullRequest {
    PullRequest { number: 7, url: "https://github.com/octo/app/pull/7".to_owned(), head: "fix".to_owned() }
}

fn ok(body: &Value) -> ModelAnswer {
    ModelAnswer::json(200, body)
}

fn run(id: u64, name: &str, conclusion: Option<&str>) -> Value {
    let status = if conclusion.is_some() { "completed" } else { "in_progress" };
    let url = format!("https://github.com/octo/app/runs/{id}");
    json!({"id": id, "name": name, "status": status, "conclusion": conclusion, "html_url": url, "app": {"slug": "github-actions"},
        "output": {"title": "T", "summary": null}})
}

#[test]
fn a_pull_request_is_opened_once_and_updated() {
    let server = ModelServer::start(|number, request| {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(request.header("x-github-api-version"), Some("2022-11-28"));
        match (number, path(request).as_str()) {
            (0, "GET /pulls?head=octo%3Afix&state=all") => {
                // A fork has a branch of the same name.
                let mut other = pull();
                other["head"]["label"] = "other:fix".into();
                ok(&json!([other]))
            }
            // The answer to the first attempt was lost.
            (1, "POST /pulls") => ModelAnswer::json(502, &json!({})),
            (2, "POST /pulls") => ModelAnswer::json(
                422,
                &json!({"message": "Validation Failed", "errors": [{"message": "A pull request already exists for octo:fix."}]}),
            ),
            (3, "GET /pulls?head=octo%3Afix&state=all") => ok(&json!([pull()])),
            (4, "PATCH /pulls/7") => ok(&pull()),
            (number, path) => panic!("{number} {path}"),
        }
    });
    let (forge, waits) = forge_at(&server);
    let go = Cancellation::default();
    assert_eq!(forge.open(&request(), &go).unwrap(), pull_request());
    forge.update(&pull_request(), &request(), &go).unwrap();
    let body = json!({"title": "Fix it", "body": "It was wrong.", "head": "fix", "base": "main"});
    assert_eq!(server.requests()[1].json(), body);
    assert_eq!(*waits.lock().unwrap(), [Duration::from_secs(1)]);
}

#[test]
fn a_base_that_is_not_on_the_branch_of_the_forge_is_refused() {
    let server = ModelServer::start(|_, request| match path(request).as_str() {
        "GET /git/ref/heads%2Ffeature%2Fa" => ok(&json!({"object": {"sha": "tip"}})),
        "GET /compare/feature%2Fa...old?per_page=1" => ok(&json!({"status": "behind"})),
        "GET /compare/feature%2Fa...local?per_page=1" => ok(&json!({"status": "ahead"})),
        "GET /compare/feature%2Fa...other?per_page=1" => ok(&json!({"status": "diverged"})),
        "GET " => ok(&json!({"name": "app"})),
        _ => ModelAnswer::json(404, &json!({"message": "Not Found"})),
    });
    let (forge, _) = forge_at(&server);
    let go = Cancellation::default();
    for commit in ["tip", "old"] {
        forge.check_base("feature/a", commit, &go).unwrap();
    }
    for commit in ["local", "other", "unknown"] {
        let error = forge.check_base("feature/a", commit, &go).unwrap_err();
        assert!(matches!(error, ForgeError::UnpushedBase { .. }), "{commit}: {error}");
    }
    assert!(matches!(forge.check_base("none", "tip", &go), Err(ForgeError::NoBase(branch)) if branch == "none"));
    // Without access to the repository, the branch is not to blame.
    let server = ModelServer::start(|_, _| ModelAnswer::json(404, &json!({"message": "Not Found"})));
    let error = forge_at(&server).0.check_base("main", "tip", &go).unwrap_err().to_string();
    assert!(error.contains("no access"), "{error}");
}

#[test]
fn checks_of_several_pages_are_awaited_and_must_be_stable() {
    let server = ModelServer::start(|number, request| {
        let round = number / 3;
        match path(request).split(['?', '&']).collect::<Vec<_>>().as_slice() {
            ["GET /commits/abc/check-runs", _, "page=1"] => {
                let runs: Vec<Value> = (0..100).map(|id| run(id, "unit", Some("success"))).collect();
                ok(&json!({"total_count": 101, "check_runs": runs}))
            }
            ["GET /commits/abc/check-runs", _, "page=2"] => {
                let last = if round == 0 { None } else { Some("neutral") };
                ok(&json!({"total_count": 101, "check_runs": [run(100, "late", last)]}))
            }
            ["GET /commits/abc/status", ..] => {
                let state = if round < 2 { "pending" } else { "success" };
                ok(
                    &json!({"state": state, "statuses": [{"context": "ci/other", "state": state, "target_url": "https://ci/1"}]}),
                )
            }
            other => panic!("{other:?}"),
        }
    });
    let (forge, waits) = forge_at(&server);
    let ci = forge.ci(&pull_request(), &wanted("abc", None), &Cancellation::default()).unwrap();
    assert_eq!((ci.status, ci.log_place.as_str()), (CiStatus::Pass, "https://github.com/octo/app/runs/0"));
    // Running, pending, complete, and complete again.
    assert_eq!(server.requests().len(), 12);
    assert_eq!(waits.lock().unwrap().len(), 3);
}

#[test]
fn the_log_of_a_failed_job_is_fetched_without_the_token() {
    let logs =
        ModelServer::start(|_, _| ModelAnswer::new(200, "text/plain", format!("{}the end", "x".repeat(200_000))));
    let place = format!("{}/signed?sig=1", logs.origin());
    let server = ModelServer::start(move |_, request| match path(request).split('?').next().unwrap() {
        "GET /commits/abc/check-runs" => {
            ok(&json!({"check_runs": [run(1, "lint", Some("skipped")), run(2, "unit", Some("failure"))]}))
        }
        "GET /commits/abc/status" => ok(&json!({"state": "pending", "statuses": []})),
        "GET /actions/jobs/2/logs" => ModelAnswer::new(302, "text/plain", "").header("Location", &place),
        other => panic!("{other}"),
    });
    let (forge, _) = forge_at(&server);
    let ci = forge.ci(&pull_request(), &wanted("abc", None), &Cancellation::default()).unwrap();
    assert_eq!((ci.status, ci.log_place.as_str()), (CiStatus::Fail, "https://github.com/octo/app/runs/2"));
    assert!(ci.log.ends_with("the end") && ci.log.len() <= 33_000);
    let requests = logs.requests();
    assert_eq!((requests.len(), requests[0].header("authorization")), (1, None));
}

#[test]
fn a_check_without_a_log_gives_its_summary() {
    let server = ModelServer::start(|_, request| match path(request).split('?').next().unwrap() {
        "GET /commits/abc/check-runs" => ok(&json!({"check_runs": [run(2, "unit", Some("timed_out"))]})),
        "GET /commits/abc/status" => ok(&json!({"statuses": []})),
        "GET /actions/jobs/2/logs" => ModelAnswer::json(404, &json!({"message": "Not Found"})),
        other => panic!("{other}"),
    });
    let (forge, _) = forge_at(&server);
    let ci = forge.ci(&pull_request(), &wanted("abc", None), &Cancellation::default()).unwrap();
    assert_eq!((ci.status, ci.log.as_str()), (CiStatus::Fail, "unit: T"));
}

#[test]
fn a_commit_without_checks_a_time_limit_and_a_cancellation_are_results() {
    let server = ModelServer::start(|_, request| {
        let is_slow = request.target.contains("/slow/");
        match path(request).contains("check-runs") {
            true if is_slow => ok(&json!({"check_runs": [run(1, "unit", None)]})),
            true => ok(&json!({"check_runs": []})),
            false if request.target.ends_with("/contents/.github/workflows?ref=none") => {
                ModelAnswer::json(404, &json!({"message": "Not Found"}))
            }
            false if request.target.ends_with("/contents/.github/workflows?ref=queued") => ok(&json!([])),
            false => ok(&json!({"state": "pending", "statuses": []})),
        }
    });
    let (forge, waits) = forge_at(&server);
    let go = Cancellation::default();
    // A runner may be busy for longer than a commit without checks is waited for.
    for limit in [None, Some(Duration::from_mins(10))] {
        let queued = forge.ci(&pull_request(), &wanted("queued", limit), &go).unwrap();
        assert_eq!((queued.status, queued.log.as_str()), (CiStatus::TimedOut, "no check has begun"));
        let waited: Duration = waits.lock().unwrap().drain(..).sum();
        assert_eq!(waited.as_secs().div_ceil(60), limit.map_or(60, |limit| limit.as_secs() / 60));
    }
    assert_eq!(forge.ci(&pull_request(), &wanted("none", None), &go).unwrap().status, CiStatus::None);
    waits.lock().unwrap().clear();
    let late = forge.ci(&pull_request(), &wanted("slow", Some(Duration::from_mins(5))), &go).unwrap();
    assert_eq!((late.status, late.log.as_str()), (CiStatus::TimedOut, "still running: unit"));
    // The pauses grow, and end exactly at the limit.
    let waits = waits.lock().unwrap().clone();
    assert!(waits.iter().sum::<Duration>() <= Duration::from_mins(5) && waits.len() < 15, "{waits:?}");
    go.cancel();
    assert_eq!(forge.ci(&pull_request(), &wanted("slow", None), &go).unwrap().status, CiStatus::Cancelled);
}

#[test]
fn checks_of_others_that_pass_are_no_result_before_actions_can_have_begun() {
    let server = ModelServer::start(|number, request| {
        let mut other = run(1, "licences", Some("success"));
        other["app"]["slug"] = "other".into();
        match path(request).split(['?', '/']).collect::<Vec<_>>().as_slice() {
            ["GET ", "commits", commit, "check-runs", ..] => {
                let unit = run(2, "unit", Some(if *commit == "red" { "failure" } else { "success" }));
                // The first two looks see no check of Actions.
                let is_late = *commit == "late" || number < 5;
                ok(&json!({"check_runs": if is_late { vec![other] } else { vec![other, unit] }}))
            }
            ["GET ", "commits", ..] => ok(&json!({"statuses": []})),
            ["GET ", "contents", ..] => ok(&json!([])),
            _ => ModelAnswer::json(404, &json!({})),
        }
    });
    let (forge, waits) = forge_at(&server);
    let go = Cancellation::default();
    let red = forge.ci(&pull_request(), &wanted("red", None), &go).unwrap();
    assert_eq!((red.status, red.log_place.as_str()), (CiStatus::Fail, "https://github.com/octo/app/runs/2"));
    assert_eq!(waits.lock().unwrap().drain(..).count(), 3);
    // No workflow is for this commit.
    let late = forge.ci(&pull_request(), &wanted("late", None), &go).unwrap();
    let waited: Duration = waits.lock().unwrap().drain(..).sum();
    assert_eq!((late.status, waited >= Duration::from_mins(2)), (CiStatus::Pass, true));
    let limit = Some(Duration::from_mins(1));
    let short = forge.ci(&pull_request(), &wanted("late", limit), &go).unwrap();
    assert_eq!((short.status, short.log.as_str()), (CiStatus::TimedOut, "further checks were expected"));
}

#[test]
fn rate_limits_are_waited_for() {
    let server = ModelServer::start(|number, _| match number {
        0 => ModelAnswer::json(403, &json!({"message": "You have exceeded a secondary rate limit."})),
        1 => ModelAnswer::json(429, &json!({})).header("Retry-After", "17"),
        2 => ModelAnswer::json(403, &json!({"message": "API rate limit exceeded"}))
            .header("x-ratelimit-remaining", "0")
            .header("x-ratelimit-reset", "1000"),
        3 => ModelAnswer::json(429, &json!({})).header("Retry-After", "999999999"),
        4 => ModelAnswer::json(503, &json!({})),
        _ => ok(&json!([pull()])),
    });
    let (forge, waits) = forge_at(&server);
    assert_eq!(forge.find("fix", &Cancellation::default()).unwrap(), Some(pull_request()));
    assert_eq!(*waits.lock().unwrap(), [60, 17, 1, 3660, 1].map(Duration::from_secs));
}

#[test]
fn errors_name_the_remedy_and_never_the_token() {
    for (status, text) in [
        (401, "set GITHUB_TOKEN"),
        (403, "needs write access"),
        (404, "does not exist"),
        (422, "answered 422"),
        (500, "answered 500"),
    ] {
        let server = ModelServer::start(move |_, _| {
            ModelAnswer::json(status, &json!({"message": format!("no {TOKEN} here"), "errors": ["why"]}))
        });
        let (forge, _) = forge_at(&server);
        let error = forge.find("fix", &Cancellation::default()).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("why") && !error.contains(TOKEN), "{error}");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = GitHubOptions::new(Token::from(TOKEN.to_owned()), "https://127.0.0.1/octo/app");
    options.api_url = Some(format!("http://{closed}"));
    options.wait = Arc::new(|_, _| true);
    let forge = GitHubForge::new(options.clone()).unwrap();
    let error = forge.find("fix", &Cancellation::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot reach http://127.0.0.1:"), "{error}");
    for (api, token) in [("http://example.com", TOKEN), ("file:///x", TOKEN), ("https://api.github.com", " ")] {
        options.api_url = Some(api.to_owned());
        options.repository = "https://github.com/octo/app".to_owned();
        options.token = Token::from(token.to_owned());
        assert!(GitHubForge::new(options.clone()).is_err(), "{api}");
    }
    assert!(!format!("{:?}", Token::from(TOKEN.to_owned())).contains(TOKEN));
}

#[test]
fn a_push_sends_the_token_in_a_header_and_names_it_nowhere() {
    let server = ModelServer::start(|_, _| ModelAnswer::new(403, "text/plain", "no"));
    let repository = Repository::new();
    let commit = repository.commit("a.txt", "a");
    let mut options = GitHubOptions::new(Token::from(TOKEN.to_owned()), format!("{}/octo/app", server.origin()));
    options.api_url = Some(server.origin());
    options.git = git_options();
    let forge = GitHubForge::new(options).unwrap();
    let from = repository.bare();
    let push = Push { from: &from, commit: &commit, branch: "fix", own: &[] };
    let error = forge.push(&push, &Cancellation::default()).unwrap_err();
    assert!(matches!(error, ForgeError::Git(_)));
    let requests = server.requests();
    assert_eq!(requests[0].target, "/octo/app.git/info/refs?service=git-upload-pack");
    // `x-access-token:` and the token.
    let header = requests[0].header("authorization").unwrap();
    assert!(header.starts_with("Basic eC1hY2Nlc3MtdG9rZW46Z2hw"), "{header}");
    let text = format!("{error:?}");
    assert!(!text.contains(TOKEN) && !text.contains("eC1hY2Nlc3MtdG9rZW46"), "{text}");
    assert!(!std::fs::read_to_string(from.join("config")).unwrap().contains("Authorization"));
}

#[test]
fn a_push_to_a_server_that_does_not_answer_is_cancelled() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", server.local_addr().unwrap());
    let go = Cancellation::default();
    let on_request = go.clone();
    let accepted = std::thread::spawn(move || {
        let connection = server.accept().unwrap();
        on_request.cancel();
        connection
    });
    let repository = Repository::new();
    let commit = repository.commit("a.txt", "a");
    let mut options = GitHubOptions::new(Token::from(TOKEN.to_owned()), format!("{origin}/octo/app"));
    options.api_url = Some(origin);
    options.git = git_options();
    let from = repository.bare();
    let push = Push { from: &from, commit: &commit, branch: "fix", own: &[] };
    let error = GitHubForge::new(options).unwrap().push(&push, &go).unwrap_err();
    assert!(matches!(error, ForgeError::Git(error) if error.to_string().contains("was cancelled")));
    drop(accepted.join().unwrap());
}

#[test]
fn the_token_goes_only_to_the_host_of_the_interface() {
    for (api, repository, is_allowed) in [
        (None, "git@github.com:octo/app.git", true),
        (None, "https://GitHub.com/octo/app", true),
        (None, "https://github.com:443/octo/app", true),
        (None, "https://gitlab.com/octo/app", false),
        (None, "https://github.com.evil.example/octo/app", false),
        (None, "https://github.com@evil.example/octo/app", false),
        (None, "https://api.github.com/octo/app", false),
        (Some("https://api.github.com"), "ssh://git@github.com/octo/app", true),
        (Some("https://api.octo.ghe.com"), "https://octo.ghe.com/octo/app", true),
        (Some("https://ghe.example/api/v3"), "git@ghe.example:octo/app", true),
        (Some("https://ghe.example/api/v3"), "git@github.com:octo/app", false),
        (Some("http://[::1]:80/api"), "http://[::1]:81/octo/app", true),
    ] {
        let mut options = GitHubOptions::new(Token::from(TOKEN.to_owned()), repository);
        options.api_url = api.map(str::to_owned);
        let forge = GitHubForge::new(options);
        assert_eq!(forge.is_ok(), is_allowed, "{api:?} {repository}");
    }
}

#[test]
fn new_commits_of_a_branch_whose_pull_request_was_closed_get_another() {
    let server = ModelServer::start(|_, request| {
        let mut closed = pull();
        closed["state"] = "closed".into();
        closed["number"] = 3.into();
        match path(request).split('?').next().unwrap() {
            "GET /pulls" => ok(&json!([closed])),
            "POST /pulls" => ModelAnswer::json(201, &pull()),
            other => panic!("{other}"),
        }
    });
    let (forge, _) = forge_at(&server);
    let go = Cancellation::default();
    assert_eq!(forge.find("fix", &go).unwrap(), None);
    // The same commits: they were decided on.
    assert_eq!(forge.open(&request(), &go).unwrap().number, 3);
    let newer = NewPullRequest { head_commit: "c".repeat(40), ..request() };
    assert_eq!(forge.open(&newer, &go).unwrap().number, 7);
}
