//! Secrets that the runner is told of: in no file, whatever the agent does with them.

use counterproof_runner::Header;
use serde_json::json;

use crate::kit::{Agent, Finished, Reaction, answer, cases, ok, response, run_with};

const TOKEN: &str = "tok-4711-\"quoted\"-s3cret";

fn run_with_secrets(agent: &Agent) -> Finished {
    let url = agent.url().replace("http://", "http://user:pass-s3cret@") + "/?key=query-s3cret";
    run_with(&url, &cases(["c1"]), |settings| {
        settings.retry.retries = 1;
        let text = format!("Authorization: Bearer {TOKEN}").into();
        settings.headers.push(Header::parse(&text, |_| None).unwrap());
        let format = format!("{settings:?}");
        assert!(!format.contains("s3cret"), "{format}");
    })
}

fn assert_clean(run: &Finished) {
    for (name, bytes) in run.files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("s3cret"), "{name}: {text}");
    }
}

#[test]
fn headers_go_out_and_stay_out_of_every_file() {
    let agent = Agent::sending(ok(&answer()));
    let run = run_with_secrets(&agent);
    let request = agent.requests().remove(0);
    assert!(request.head.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{}", request.head);
    assert!(request.head.starts_with("POST /run-case?key=query-s3cret "), "{}", request.head);
    assert_clean(&run);
    assert_eq!(run.json("run.json")["base_url"], agent.url());
}

#[test]
fn an_agent_that_echoes_a_secret_is_not_believed_to_have_the_right_to() {
    let mut echo = answer();
    echo["final_output"]["content"] = json!(format!("you sent {TOKEN}"));
    let run = run_with_secrets(&Agent::sending(ok(&echo)));
    assert_eq!(run.case()["final_output"]["content"], "you sent [redacted]");
    assert_eq!(run.case()["final_output"]["redactions_applied"], json!(["request_secrets"]));
    assert_clean(&run);

    let page = format!("<pre>authorization: Bearer {TOKEN}</pre>");
    let agent = Agent::new([
        Reaction::Send(response("500 Internal Server Error", "", page.as_bytes())),
        Reaction::Send(response("200 OK", &format!("server: {TOKEN}\r\n"), page.as_bytes())),
    ]);
    let run = run_with_secrets(&agent);
    run.failure("invalid_json", "not_json");
    assert_eq!(run.meta()["note"], "secrets that the runner had sent were masked");
    assert_clean(&run);
}
