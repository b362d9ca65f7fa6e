//! Imports files that a person names, and prints what became of them:
//! `COUNTERPROOF_IMPORT=FOLDER cargo test -p counterproof-sessions --test it -- --ignored --nocapture`.

use camino::Utf8PathBuf;
use counterproof_sessions::event::EventBody;

use crate::import_kit::{import_all, tokens};

#[test]
#[ignore = "needs files of a person"]
fn real_files_are_imported() {
    let paths: Vec<Utf8PathBuf> = std::env::var("COUNTERPROOF_IMPORT")
        .expect("COUNTERPROOF_IMPORT names files")
        .split(':')
        .map(Utf8PathBuf::from)
        .collect();
    let imported = import_all(&paths, None);
    for session in &imported.sessions {
        let head = &session.head;
        let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
        for event in session.events() {
            *kinds.entry(event.body.kind()).or_default() += 1;
            if let EventBody::LlmCall(call) = &event.body {
                assert!(call.request.messages.is_array());
            }
        }
        println!(
            "{} parent={:?} {:?} {:?} {}..{:?} tokens={:?} {kinds:?}",
            head.session_id,
            head.parent.as_ref().map(|parent| &parent.session_id),
            head.status,
            head.title,
            head.started_at,
            head.ended_at,
            tokens(session),
        );
    }
    println!("{}", serde_json::to_string_pretty(&imported.report).unwrap());
    println!(
        "coverage {} problems {:?} unrecognized {:?}",
        imported.report.coverage(),
        imported.report.problems,
        imported.report.unrecognized
    );
}
