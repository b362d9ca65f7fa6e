//! The page of a session: whole, escaped, and without anything that a browser would load or run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

#[path = "../../sessions/tests/samples/mod.rs"]
mod samples;

use base64::Engine as _;
use counterproof_artifact::visible;
use counterproof_report::session::{SessionSource, session_page};
use counterproof_sessions::event::{
    Checkpoint, CheckpointState, Command, CommandLine, EventBody, LlmCall, LlmRequest, LlmResponse, Opaque,
    RequestedCall, SessionEvent,
};
use counterproof_sessions::session::{Fork, Parent, SessionHead, SessionStatus};
use proptest::prelude::*;
use samples::{Sample, bad, good, long};
use serde_json::{Value, json};

type Session = (SessionHead, Vec<SessionEvent>);

fn page((head, events): &Session) -> String {
    session_page(&SessionSource { head, events, forks: &[], ledger: Some("'my ledger.db'") }).unwrap()
}

/// Returns the texts of a page without its markup, with the pieces of long texts joined.
fn texts(html: &str) -> String {
    let body = &html[html.find("</style>").unwrap()..];
    let mut texts = String::new();
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        texts.push_str(&rest[..start]);
        let end = start + rest[start..].find('>').unwrap() + 1;
        // A browser drops a line break after this tag.
        let is_pre = rest[start..].starts_with("<pre");
        // Only adjacent pieces of one text have nothing between them.
        rest = &rest[end..];
        if is_pre {
            rest = rest.strip_prefix('\n').unwrap();
        }
    }
    for (escape, c) in [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")] {
        texts = texts.replace(escape, c);
    }
    texts
}

/// Returns the texts of a part of a page.
fn texts_within(part: &str) -> String {
    let end = part.rfind('<').unwrap();
    texts(&format!("</style>{}", &part[..end]))
}

/// Fails if the page has a script, a handler, or a link that leaves it.
fn check_harmless(html: &str) {
    let (head, body) = html.split_at(html.find("</style>").unwrap());
    let style = &head[head.find("<style>").unwrap() + 7..];
    let digest = counterproof_artifact::Sha256Digest::from_bytes(style.as_bytes()).to_string();
    let bytes: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&digest[at * 2..at * 2 + 2], 16).unwrap()).collect();
    let hash = base64::engine::general_purpose::STANDARD.encode(bytes);
    assert!(head.contains(&format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    )));
    assert!(!style.contains("url(") && !style.contains("@import"));
    let mut rest = body;
    let known = [
        "a", "article", "b", "bdi", "body", "code", "dd", "details", "div", "dl", "dt", "h1", "h2", "head", "header",
        "html", "li", "line", "main", "nav", "ol", "p", "pre", "rect", "section", "span", "style", "summary", "svg",
        "title", "ul",
    ];
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        assert!(known.contains(&name), "<{tag}>");
        // Attributes are quoted, and have no quote or bracket inside.
        for (index, part) in tag.split('"').enumerate() {
            if index % 2 == 0 {
                for attribute in part.split_ascii_whitespace().filter(|attribute| attribute.contains('=')) {
                    assert!(!attribute.starts_with("on") && !attribute.starts_with("style"), "<{tag}>");
                    assert!(!attribute.starts_with("src"), "<{tag}>");
                }
            }
        }
        if let Some(href) = tag.split("href=\"").nth(1) {
            assert!(href.starts_with('#'), "<{tag}>");
        }
        rest = &rest[end + 1..];
    }
    assert!(!body.chars().any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{1b}' | '\u{0}')));
}

/// Fails if a link leads to an element that the page does not have, or if an address is given twice.
fn check_links(html: &str) {
    let values = |attribute: &str| -> Vec<String> {
        html.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let ids = values("id");
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    for href in values("href").iter().filter(|href| href.starts_with('#')) {
        assert!(distinct.contains(&href[1..].to_owned()), "{href}");
    }
}

/// Returns all texts of a record that a reader may look for.
fn texts_of(event: &SessionEvent) -> Vec<String> {
    let mut found = Vec::new();
    match &event.body {
        EventBody::LlmCall(call) => {
            for message in call.request.messages.as_array().into_iter().flatten() {
                found.extend(message["content"].as_str().map(str::to_owned));
            }
            found.extend(call.response.as_ref().and_then(|response| response.content.clone()));
            for call in call.response.iter().flat_map(|response| &response.tool_calls) {
                found.push(call.function.name.clone());
                if let Ok(Value::Object(arguments)) = serde_json::from_str(&call.function.arguments) {
                    found.extend(arguments.values().filter_map(Value::as_str).map(str::to_owned));
                }
            }
        }
        EventBody::ToolCall(call) => {
            found.extend(call.result.content.clone());
            found.extend(call.result.error.clone());
            found.extend(
                call.arguments
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter_map(|(_, value)| value.as_str())
                    .map(str::to_owned),
            );
        }
        EventBody::Command(command) => {
            found.extend(command.command.as_ref().map(counterproof_sessions::event::CommandLine::text));
            found.extend(
                [&command.stdout, &command.stderr].into_iter().flatten().map(|text| text.trim_end().to_owned()),
            );
        }
        EventBody::FileOperation(file) => found.extend(file.patch.clone()),
        EventBody::StateTransition(it) => {
            found.extend([it.from_state.clone(), it.to_state.clone(), it.trigger.clone()]);
        }
        EventBody::Checkpoint(it) => found.push(it.checkpoint_id.clone()),
        EventBody::Opaque(it) => found.extend(it.data["text"].as_str().map(str::to_owned)),
    }
    found.extend(event.error.as_ref().map(|error| error.message.clone()));
    found
}

fn check_whole(session: &Session, html: &str) {
    let shown = texts(html);
    for event in &session.1 {
        for text in texts_of(event) {
            let in_json = visible(&serde_json::to_string(&text).unwrap());
            let text = visible(&text);
            let is_shown = shown.contains(text.trim()) || shown.contains(&text.replace(['\n', '\t'], " "));
            // Within JSON, a text has the escapes of JSON.
            let is_in_json = || shown.contains(&in_json[1..in_json.len() - 1]);
            assert!(is_shown || is_in_json(), "{text:?} of record {:?} is not on the page", event.seq);
        }
    }
}

#[test]
fn every_text_is_on_the_page_and_nothing_leaves_it() {
    for session in [good(1), bad(1), long(1)] {
        let html = page(&session);
        check_harmless(&html);
        check_links(&html);
        check_whole(&session, &html);
    }
}

#[test]
fn each_message_is_on_the_page_once() {
    let mut it = Sample::new("once", 1);
    it.user("the unique request");
    for turn in 0..20 {
        it.shell(&format!("turn number {turn}!"), "ls", 0, &format!("output of turn {turn}!"));
    }
    let session = it.finish(SessionStatus::Completed);
    let html = page(&session);
    let bubbles = html.split("class=\"conversation\"").nth(1).unwrap();
    for text in ["the unique request", "turn number 7!", "output of turn 7!"] {
        assert_eq!(bubbles.matches(text).count(), 1, "{text}");
    }
}

#[test]
fn what_checkpoints_repeat_is_on_the_page_once() {
    let mut it = Sample::new("fix", 1);
    it.user("Fix it.").answer("I look at it.", &[]);
    for (number, reason) in [(1, None), (2, Some("a command was stopped"))] {
        let state = CheckpointState {
            message_history: vec![json!({"role": "user", "content": "Fix it."})],
            current_step: "edit".to_owned(),
            workspace: json!({"base": "base-commit", "commit": format!("commit-{number}")}),
            tool_state: json!({"settings": {"model": "the-model"}, "turn": format!("turn-{number}")}),
        };
        let (checkpoint_id, resumable, reason) = (format!("cp-{number}"), reason.is_none(), reason.map(str::to_owned));
        it.add(EventBody::Checkpoint(Checkpoint { checkpoint_id, state, resumable, reason }));
    }
    let html = page(&it.finish(SessionStatus::Paused));
    check_harmless(&html);
    let text = texts(&html);
    for once in ["base-commit", "the-model", "commit-1", "commit-2", "turn-1", "turn-2", "a command was stopped"] {
        // The summary of a folded text has its start, and the line of a checkpoint has its commit.
        assert!((1..=3).contains(&text.matches(once).count()), "{once}");
    }
    assert!(text.contains("counterproof session resume cp-1 --ledger 'my ledger.db'"));
    assert!(!text.contains("session resume cp-2"));
}

/// Adds a checkpoint after some messages.
fn checkpoint(it: &mut Sample, id: &str, messages: &[&str], reason: Option<&str>) {
    let history = messages.iter().map(|text| json!({"role": "user", "content": text})).collect();
    let state = CheckpointState {
        message_history: history,
        current_step: format!("step of {id}"),
        workspace: json!({"commit": "0123456789abcdef"}),
        tool_state: json!(null),
    };
    let (checkpoint_id, reason) = (id.to_owned(), reason.map(str::to_owned));
    it.add(EventBody::Checkpoint(Checkpoint { checkpoint_id, state, resumable: reason.is_none(), reason }));
}

#[test]
fn checkpoints_have_a_list_and_only_marks_in_the_conversation() {
    let mut it = Sample::new("fix", 1);
    checkpoint(&mut it, "first", &["Fix it."], None);
    checkpoint(&mut it, "second", &["Fix it."], None);
    it.user("Fix it.").answer("I look at it.", &[]);
    for number in 0..10 {
        checkpoint(&mut it, &format!("turn-{number}"), &["Fix it."], None);
        it.answer(&format!("answer {number}"), &[]);
    }
    checkpoint(&mut it, "last", &["Fix it.", "never sent"], Some("a command was stopped"));
    let session = it.finish(SessionStatus::Interrupted);
    let html = page(&session);
    check_harmless(&html);
    check_links(&html);
    check_whole(&session, &html);
    let list = html.find("id=\"checkpoints\"").unwrap();
    let (timeline, conversation) = (html.find("id=\"timeline\"").unwrap(), html.find("id=\"records\"").unwrap());
    let [list, timeline, conversation] =
        [&html[list..timeline], &html[timeline..conversation], &html[conversation..]].map(texts_within);
    assert!(timeline.contains("11 records") && !timeline.contains("turn-3") && !timeline.contains("heckpoint"));
    // A message that a request has is a part of the conversation.
    assert!(conversation.contains("Fix it.") && !list.contains("Fix it."));
    assert!(list.contains("never sent") && list.contains("a command was stopped"));
    assert!(conversation.contains("checkpoints 1 2") && !conversation.contains("turn-3"));
    let places: Vec<usize> =
        ["last", "turn-9", "turn-0", "second", "first"].map(|id| list.find(&format!("step of {id}")).unwrap()).to_vec();
    assert!(places.is_sorted(), "the newest is first: {places:?}");
    assert!(list.contains("Go on from checkpoint 12,") && list.contains("8 older") && list.contains("0123456789ab"));
    assert!(list.contains("counterproof session resume turn-9 --ledger 'my ledger.db'"));
}

#[test]
fn a_page_names_the_parent_and_the_forks_of_its_session() {
    let mut it = Sample::new("fix", 1);
    checkpoint(&mut it, "mine", &[], None);
    let (head, events) = it.finish(SessionStatus::Completed);
    let parent = Some(Parent { session_id: "the-parent".to_owned(), checkpoint_id: Some("of-parent".to_owned()) });
    let head = SessionHead { parent, ..head };
    let fork = |id: &str, checkpoint: Option<&str>| {
        let (session_id, checkpoint_id) = (id.to_owned(), checkpoint.map(str::to_owned));
        Fork { session_id, checkpoint_id, status: "paused".to_owned() }
    };
    let forks = [fork("fork-1", Some("mine")), fork("fork-2", Some("gone")), fork("fork-3", None)];
    let source = SessionSource { head: &head, events: &events, forks: &forks, ledger: None };
    let html = session_page(&source).unwrap();
    check_harmless(&html);
    check_links(&html);
    let text = texts(&html);
    assert!(text.contains("Fork of the session the-parent, checkpoint of-parent"));
    for words in ["fork-1 paused from checkpoint 1", "fork-2 paused from the checkpoint gone", "fork-3 paused"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn a_failure_that_must_be_is_not_shown_as_one() {
    for (expected_failure, failures) in [(false, 1), (true, 0)] {
        let mut it = Sample::new("fix", 1);
        let command = Some(CommandLine::Shell("pytest".to_owned()));
        it.add(EventBody::Command(Command { command, exit_code: Some(1), expected_failure, ..Command::default() }));
        let html = page(&it.finish(SessionStatus::Running));
        assert_eq!(html.matches("class=\"chip bad\">✗ failed").count(), failures);
        assert_eq!(html.matches("class=\"chip bad\">✗ tests").count(), failures);
        assert_eq!(texts(&html).matches("exit code 1, as expected").count(), 2 * usize::from(expected_failure));
    }
}

#[test]
fn errors_and_milestones_come_before_the_records() {
    let html = page(&bad(1));
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("Failed: the last test run failed") < place("id=\"notes\""));
    assert!(place("http 429: rate limit reached") < place("id=\"timeline\""));
    assert!(place("git push --force origin main") < place("id=\"timeline\""));
}

#[test]
fn an_output_of_ten_megabytes_is_whole_and_folded() {
    let output = "0123456789 <b> & \u{202e}\n".repeat(500_000);
    let mut it = Sample::new("large", 1);
    it.shell("", "yes", 0, &output);
    let session = it.finish(SessionStatus::Completed);
    let html = page(&session);
    check_harmless(&html);
    assert!(texts(&html).contains(&visible(&output)));
    let fold = html.find("lines, 10.5 MB").unwrap();
    assert!(
        html[..fold].rfind("<details class=\"long").unwrap() > html[..fold].rfind("</details>").unwrap_or_default()
    );
    // Once: neither the command nor the next request repeats it.
    assert!(html.len() < 2 * visible(&output).len());
}

#[test]
fn an_empty_session_has_a_page() {
    let session = (good(1).0, Vec::new());
    let html = page(&session);
    check_harmless(&html);
    check_links(&html);
    assert!(html.contains("The session has no records."));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,30}",
        "(?s).{0,20}",
        Just("</script><script>x</script>\u{202e}\" onload='x' javascript:x".to_owned()),
        Just("\n\n<pre>\r\n]]>\u{0}\u{1b}[31m".to_owned()),
        "[a-z\n]{0,400}",
    ]
}

proptest! {
    #[test]
    fn any_session_gives_a_harmless_and_whole_page(
        steps in proptest::collection::vec((0..9_u8, text(), text()), 0..8), title in text(),
    ) {
        let mut it = Sample::new(&title, 1);
        for (kind, one, other) in steps {
            match kind {
                0 => { it.answer(&one, &[(&other, json!({ (one.as_str()): other }))]); }
                1 => { it.shell(&one, &other, 1, &one); }
                2 => { it.edit(&one, &other, Some(&one), &other); }
                3 => { it.file(&one, None, Some(&other)); }
                4 => { it.failed(None, &one); }
                5 => { it.user(&one).compaction(&other); }
                6 => { it.add(EventBody::Opaque(Opaque { data: json!({"text": one, "deep": [other]}) })); }
                7 => { it.subagent(&one, &other, |it| { it.answer(&other, &[]); }); }
                _ => {
                    let response = LlmResponse {
                        content: Some(one.clone()),
                        tool_calls: vec![RequestedCall::new(None, other.clone(), one.clone())],
                        body: json!({"content": [{"type": "thinking", "thinking": other}]}),
                        ..LlmResponse::default()
                    };
                    let request = LlmRequest { messages: json!([one, {"role": other, "content": [{"type": one}]}]), ..LlmRequest::default() };
                    it.add(EventBody::LlmCall(LlmCall { request, response: Some(response), latency_ms: None, cost: None }));
                    let state = CheckpointState { message_history: vec![json!(other)], current_step: one.clone(), workspace: json!(other), tool_state: json!(null) };
                    it.add(EventBody::Checkpoint(Checkpoint { checkpoint_id: one, state, resumable: false, reason: None }));
                }
            }
        }
        let session = it.finish(SessionStatus::Running);
        let html = page(&session);
        check_harmless(&html);
        check_links(&html);
        check_whole(&session, &html);
    }
}
