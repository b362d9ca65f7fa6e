//! Secrets: no byte of a run folder contains them, wherever the agent repeats them.

use std::env::VarError;

use std::time::Duration;

use counterproof_cases::CaseSpec;
use counterproof_runner::{Header, Secret, Settings};
use serde_json::{Value, json};

use crate::kit::{Agent, Finished, Reaction, answer, cases, gzip, ok, response, run_with};

pub(crate) const TOKEN: &str = "tok-4711-\"quoted\"/s3cret";
pub(crate) const NAMED: &str = "n4med pass+wörd&s3cret";
pub(crate) const PASSWORD: &str = "pass-w0rd-s3cret";
pub(crate) const QUERY: &str = "query/v4lue-s3cret";
pub(crate) const KEYS: [&str; 3] = [
    "ghp_s3cretAbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "eyJhbGciOiJIUzI1NiJ9.eyJzM2NyZXQiOiJzM2NyZXQifQ.s3cretSignatureOfTheToken",
    "sk-s3cretAbCdEfGhIjKlMnOpQrStUvWx",
];

pub(crate) fn all() -> Vec<&'static str> {
    [TOKEN, NAMED, PASSWORD, QUERY].into_iter().chain(KEYS).collect()
}

pub(crate) fn run_with_secrets(agent: &Agent, cases: &[CaseSpec], change: impl FnOnce(&mut Settings)) -> Finished {
    let url = agent.url().replace("http://", &format!("http://user:{PASSWORD}@")) + "/?key=query%2Fv4lue-s3cret";
    run_with(&url, cases, |settings| {
        settings.retry.retries = 1;
        let text = format!("Authorization: Bearer {TOKEN}").into();
        settings.headers.push(Header::parse(&text, |_| Err(VarError::NotPresent)).unwrap());
        settings.secrets.push(Secret::from(NAMED.to_owned()));
        let format = format!("{settings:?}");
        assert!(!format.contains("s3cret"), "{format}");
        change(settings);
    })
}

/// Returns every form in which an agent may repeat a text.
pub(crate) fn forms(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap().trim_matches('"').to_owned();
    let twice = serde_json::to_string(&json).unwrap().trim_matches('"').to_owned();
    let ascii: String = json.chars().fold(String::new(), |text, character| {
        text + &if character.is_ascii() { character.to_string() } else { format!("\\u{:04x}", u32::from(character)) }
    });
    let percent = secret.bytes().fold(String::new(), |text, byte| {
        text + &if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    let form = percent.replace("%20", "+");
    let aligned = ["", "a", "ab"].map(|before| base64(format!("{before}{secret}").as_bytes()));
    let decimal = secret.chars().fold(String::new(), |text, character| text + &format!("&#{};", u32::from(character)));
    let hexadecimal = secret.chars().fold(String::new(), |text, it| text + &format!("&#x{:04X};", u32::from(it)));
    let references = [decimal, hexadecimal];
    [secret.to_owned(), json, twice, ascii, percent, form].into_iter().chain(references).chain(aligned).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes.chunks(3).fold(String::new(), |mut text, chunk| {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        text.extend((0..=chunk.len()).map(|digit| char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])));
        text
    })
}

/// Returns the texts that no file may contain: each form of each secret. Base64 omits the characters that depend on adjacent bytes.
/// Keys of known shapes are only found verbatim.
fn needles() -> Vec<String> {
    let named = [TOKEN, NAMED, PASSWORD, QUERY].into_iter().flat_map(|secret| {
        let encoded = ["", "a", "ab"].map(|before| {
            let text = base64(format!("{before}{secret}").as_bytes());
            text[4..text.len() - 4].to_owned()
        });
        forms(secret).into_iter().take(8).chain(encoded)
    });
    named.chain(KEYS.map(str::to_owned)).chain(["s3cret".to_owned()]).collect()
}

/// Checks that no file content and no file name contains a secret, and that the run folder is valid.
#[track_caller]
pub(crate) fn assert_clean(run: &Finished) {
    let needles = needles();
    for (name, bytes) in run.files() {
        let text = String::from_utf8_lossy(&bytes);
        for needle in &needles {
            assert!(!text.contains(needle) && !name.contains(needle), "{needle} in {name}: {text:.2000}");
        }
    }
    let report = counterproof_validation::validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

/// Returns a page with every secret in every form, followed by enough text that a truncated body is cut after the secrets.
fn page() -> String {
    let named = [TOKEN, NAMED, PASSWORD, QUERY].into_iter().flat_map(forms);
    let page =
        named.chain(KEYS.map(str::to_owned)).fold(String::new(), |page, text| page + &format!("<p>\"{text}\"</p>\n"));
    (0..200).fold(page, |page, number| page + &format!("<p>{number}</p>"))
}

/// Returns response headers with a secret in each recorded header, and in some that are not recorded.
fn headers() -> String {
    let key = KEYS[0];
    format!(
        "server: {key}\r\nx-request-id: {key}\r\nretry-after: {key}\r\nallow: {key}\r\nset-cookie: {key}\r\n\
         content-type: text/{PASSWORD}\r\nx-other: {key}\r\nlocation: /{PASSWORD}/x?{key}\r\n"
    )
}

#[test]
fn headers_are_sent_and_appear_in_no_file() {
    let agent = Agent::sending(ok(&answer()));
    let run = run_with_secrets(&agent, &cases(["c1"]), |_| {});
    let request = agent.requests().remove(0);
    assert!(request.head.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{}", request.head);
    assert!(request.head.starts_with("POST /run-case?key=query%2Fv4lue-s3cret "), "{}", request.head);
    assert_clean(&run);
    assert_eq!(run.json("run.json")["base_url"], agent.url());
    assert!(run.case()["final_output"]["redactions_applied"].is_null());
}

#[test]
fn an_answer_without_its_secrets_is_still_valid() {
    let every =
        || all().into_iter().flat_map(|secret| forms(secret).into_iter().take(2)).collect::<Vec<_>>().join(" ; ");
    let mut echo = answer();
    echo["final_output"] = json!({"content_type": "json", "content": {"said": every(), "args": forms(TOKEN)}});
    echo["proposed_actions"] = json!([{
        "action_id": "a1", "action_type": "call", "tool_name": every(), "params": {(TOKEN): [every()]},
        "risk_level": "low", "risk_tags": [NAMED], "evidence_refs": [],
    }]);
    // One payload is small enough to stay in the artifact, the other becomes an asset.
    let call =
        |id: &str| json!({"type": "tool_call", "ts": 1, "call_id": id, "tool": KEYS[2], "args": {"url": every()}});
    let result = |id: &str, payload: Value| json!({"type": "tool_result", "ts": 2, "call_id": id, "status": "ok", "latency_ms": 1, "payload_summary": payload});
    let large = vec![every(); 200].join("\n");
    echo["events"] = json!([call("c1"), result("c1", json!({(NAMED): 1})), call("c2"), result("c2", json!(large))]);
    echo["workflow_id"] = json!(QUERY);
    echo["unknown"] = json!({"deep": [[PASSWORD]]});
    let run = run_with_secrets(&Agent::sending(ok(&echo)), &cases(["c1"]), |_| {});
    assert_eq!(run.case()["status"], "ok", "{:#}", run.case());
    let applied = json!(["configured_secret", "github_token", "json_web_token", "secret_key"]);
    assert_eq!(run.case()["final_output"]["redactions_applied"], applied);
    assert!(run.path("assets/full_payload_new_c1_e3.json").exists());
    assert_clean(&run);
}

#[test]
fn every_kind_of_failure_is_saved_without_secrets() {
    let (page, headers) = (page(), headers());
    let status = |status: &str| Reaction::Send(response(status, &headers, page.as_bytes()));
    let mut echo = answer();
    echo["case_id"] = json!(NAMED);
    let mut broken = answer();
    broken["final_output"] = json!({"content_type": TOKEN, "content": KEYS, TOKEN: 1});
    broken["events"] = json!([{"type": "tool_call", "ts": KEYS[0], "call_id": [PASSWORD]}]);
    let encoded = gzip(page.as_bytes());
    let gzipped = response("200 OK", "content-encoding: gzip\r\n", &encoded);
    let cut = |bytes: &[u8]| Reaction::Send(bytes[..bytes.len() - 20].to_vec());
    let reactions = [
        ("server_error", status(&format!("500 {}", KEYS[0]))),
        ("redirect", status("302 Found")),
        ("not_json", status("200 OK")),
        ("other_case", Reaction::Send(ok(&echo))),
        ("contract_violated", Reaction::Send(ok(&broken))),
        ("not_json", Reaction::Send(gzipped.clone())),
        ("body_incomplete", cut(&gzipped)),
        ("body_incomplete", cut(&response("200 OK", &headers, page.as_bytes()))),
        ("undecodable_body", Reaction::Send(response("200 OK", "content-encoding: gzip\r\n", page.as_bytes()))),
        ("idle_timeout", Reaction::Stall(response("200 OK", "content-length: 99999\r\n", page.as_bytes()))),
        ("malformed_response", Reaction::Send(page.clone().into_bytes())),
    ];
    for (name, reaction) in reactions {
        let reaction = match reaction {
            // Two lengths are invalid HTTP; the second is the intended one.
            Reaction::Stall(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                let length = format!("content-length: {}\r\n", page.len());
                Reaction::Stall(text.replacen(&length, "", 1).into_bytes())
            }
            other => other,
        };
        let run = run_with_secrets(&Agent::new([reaction]), &cases(["c1"]), |settings| {
            settings.phases.idle = Duration::from_millis(300);
        });
        assert_eq!(run.case()["runner_failure"]["error_name"], name);
        assert_clean(&run);
        if name != "malformed_response" {
            let failure = run.case()["runner_failure"].clone();
            let applied = failure["redactions_applied"].as_array().unwrap();
            assert!(applied.contains(&json!("configured_secret")), "{name}: {failure:#}");
            assert_eq!(run.meta()["redactions_applied"], failure["redactions_applied"], "{name}");
        }
    }
}

#[test]
fn a_secret_split_over_chunks_is_found_at_every_split() {
    let page = page();
    // Each byte is a separate chunk, so every secret is split at every position.
    let chunks: Vec<u8> = page.bytes().flat_map(|byte| [b"1\r\n".as_slice(), &[byte], b"\r\n"].concat()).collect();
    for status in ["200 OK", "500 Internal Server Error"] {
        let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
        let bytes = [head.as_bytes(), &chunks, b"0\r\n\r\n"].concat();
        assert_clean(&run_with_secrets(&Agent::sending(bytes), &cases(["c1"]), |_| {}));
    }
}

#[test]
fn a_secret_in_a_body_streamed_to_disk_is_found() {
    // Long enough for several blocks, and shifted so that the block boundaries split the secrets at different positions.
    let page = page();
    let body = (0..300).fold(String::new(), |body, shift| body + &".".repeat(shift * 7 % 97) + &page);
    let agent = Agent::new([
        Reaction::Send(response("500 Internal Server Error", "", body.as_bytes())),
        Reaction::Send(response("200 OK", "", body.as_bytes())),
    ]);
    let run = run_with_secrets(&agent, &cases(["c1"]), |settings| settings.limits.answer = 1000);
    run.failure("other", "body_too_large");
    assert!(run.path("assets/c1.attempt1.body.txt").exists());
    assert_clean(&run);
}
