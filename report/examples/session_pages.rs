//! Writes the pages of invented sessions for the browser tests: ordinary ones, one with texts that try to leave their place,
//! and a large one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "an example stops at the first error"
)]

#[path = "../../sessions/tests/samples/mod.rs"]
mod samples;

use camino::Utf8PathBuf;
use counterproof_report::session::{SessionSource, write_session_page};
use counterproof_sessions::event::{Checkpoint, CheckpointState, EventBody, Opaque, SessionEvent};
use counterproof_sessions::session::{Fork, Parent, SessionHead, SessionStatus};
use samples::Sample;
use serde_json::json;

/// What an agent could try. Each would set `injected`, or ask for something outside.
const HOSTILE: &str = "</pre></code></script><script>injected=1</script><img src=x onerror=injected=1><svg onload=injected=1>\
    \"' onmouseover='injected=1' style='position:fixed;inset:0' <a href=\"javascript:injected=1\">javascript:injected=1</a>\
    <style>body{display:none}</style><iframe srcdoc='<script>parent.injected=1</script>'></iframe>\
    <base href='https://outside.example/'><meta http-equiv=refresh content='0;url=https://outside.example/'>\
    {{7*7}} <!-- ]]> --!> \u{202e}desrever\u{2066}\u{200b}\u{0}\u{1b}[31mred\u{1b}]8;;https://outside.example/\u{7}\u{2028}";

fn hostile() -> (SessionHead, Vec<SessionEvent>) {
    let mut it = Sample::new(HOSTILE, 3);
    it.user(HOSTILE).wait(10);
    it.failed(Some(500), HOSTILE);
    it.shell(HOSTILE, HOSTILE, 1, HOSTILE);
    it.edit(HOSTILE, HOSTILE, Some(HOSTILE), HOSTILE);
    it.answer(HOSTILE, &[(HOSTILE, json!({ (HOSTILE): [HOSTILE] }))]);
    it.subagent(HOSTILE, HOSTILE, |it| {
        it.answer(HOSTILE, &[]);
    });
    it.compaction(HOSTILE);
    let state = CheckpointState {
        message_history: vec![json!(HOSTILE), json!({"role": HOSTILE, "content": HOSTILE})],
        current_step: HOSTILE.to_owned(),
        workspace: json!({ (HOSTILE): HOSTILE }),
        tool_state: json!(HOSTILE),
    };
    it.add(EventBody::Checkpoint(Checkpoint {
        checkpoint_id: HOSTILE.to_owned(),
        state,
        resumable: true,
        reason: None,
    }));
    it.add(EventBody::Opaque(Opaque { data: json!({"type": HOSTILE, "text": HOSTILE}) }));
    let (head, events) = it.finish(SessionStatus::Interrupted);
    let parent = Some(Parent { session_id: HOSTILE.to_owned(), checkpoint_id: Some(HOSTILE.to_owned()) });
    (SessionHead { parent, ..head }, events)
}

/// 200 turns, one of them with an output of 10 MB.
fn large() -> (SessionHead, Vec<SessionEvent>) {
    let mut it = Sample::new("Port the parser to the new grammar, with all of its tests", 5);
    it.user("Port the parser.").wait(10);
    for turn in 0..200_usize {
        let output = if turn == 100 {
            "an output line of 40 bytes, no. 12345678\n".repeat(250_000)
        } else {
            format!("{turn} passed\n").repeat(turn)
        };
        it.shell(&format!("Step {turn}."), &format!("cargo test step_{turn}"), i64::from(turn % 9 == 4), &output);
        if turn % 5 == 0 {
            it.edit(
                "I change the rule.",
                &format!("src/rule_{}.rs", turn % 30),
                Some("old rule\n"),
                &"new rule\n".repeat(turn + 1),
            );
        }
        let state = CheckpointState {
            message_history: Vec::new(),
            current_step: "edit".to_owned(),
            workspace: json!({"commit": format!("{turn:040x}")}),
            tool_state: json!({ "turn": turn }),
        };
        let (checkpoint_id, resumable) = (format!("checkpoint-{turn}"), turn % 7 != 6);
        let reason = (!resumable).then(|| "a command without a sandbox was stopped".to_owned());
        it.add(EventBody::Checkpoint(Checkpoint { checkpoint_id, state, resumable, reason }));
        if turn % 60 == 59 {
            it.compaction("Summary of the work so far.");
        }
    }
    it.answer("The parser is ported.", &[]);
    it.finish(SessionStatus::Completed)
}

fn main() {
    let folder = Utf8PathBuf::from(std::env::args().nth(1).expect("the folder for the pages"));
    let sessions = [
        ("good", samples::good(1)),
        ("bad", samples::bad(1)),
        ("long", samples::long(1)),
        ("hostile", hostile()),
        ("large", large()),
    ];
    let fork = |checkpoint_id| Fork { session_id: HOSTILE.to_owned(), checkpoint_id, status: HOSTILE.to_owned() };
    let forks = [fork(None), fork(Some("0199".to_owned())), fork(Some(HOSTILE.to_owned()))];
    for (name, (head, events)) in sessions {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        let forks = if name == "hostile" { &forks[..] } else { &[] };
        let source = SessionSource { head: &head, events: &events, forks, ledger: Some("ledger.db") };
        write_session_page(&source, &folder.join(name).join("session.html")).unwrap();
    }
}
