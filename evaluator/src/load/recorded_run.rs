//! What the artifact of a recorded run states about the processes that recorded it.

use counterproof_artifact::Extra;
use serde_json::Value;

/// The field of an artifact with the facts of a recorded run.
const FIELD: &str = "recorded_run";

/// The kind of a source that records the calls of a server: a shim or a proxy of the guard.
const SERVER: &str = "server";

/// True if a guard recorded the calls of a server, and can thus have refused some.
pub(crate) fn has_guard(extra: &Extra) -> bool {
    let sources = extra.get(FIELD).and_then(|recorded| recorded["sources"].as_array());
    sources.into_iter().flatten().any(|source: &Value| source["kind"] == SERVER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_source_of_a_server_is_a_guard() {
        let extra = |recorded: Value| Extra::from_iter([(FIELD.to_owned(), recorded)]);
        assert!(has_guard(&extra(json!({"sources": [{"kind": "agent"}, {"kind": "server"}]}))));
        for recorded in [json!({"sources": [{"kind": "agent"}]}), json!({"sources": []}), json!({}), json!("run-1")] {
            assert!(!has_guard(&extra(recorded.clone())), "{recorded}");
        }
        assert!(!has_guard(&Extra::new()));
    }
}
