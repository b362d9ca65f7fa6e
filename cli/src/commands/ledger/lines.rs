//! Events as lines of text for people.

use counterproof_ledger::query::StoredEvent;
use serde_json::Value;

use super::table::short_time;

/// The longest line in characters.
const LONGEST: usize = 400;

/// Returns an event as one line: its time, run and type, and what its type adds.
pub(super) fn event_line(event: &StoredEvent) -> String {
    let parts = match serde_json::from_str(&event.line) {
        Ok(fields) => parts(&fields),
        // The ledger stores events with numbers, texts and depths that this reader does not represent.
        Err(_) => vec![short_time(&event.ts), event.run_id.clone(), event.kind.clone(), event.line.clone()],
    };
    counterproof_artifact::one_line(&parts.join("  "), LONGEST)
}

fn parts(event: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = &event["call"];
    let mut parts = vec![short_time(&text(&event["ts"])), text(&event["run_id"]), text(&event["type"])];
    if call["server_name"].is_string() || call["tool_name"].is_string() {
        parts.push(format!("{}/{}", text(&call["server_name"]), text(&call["tool_name"])));
    }
    let decision = &event["decision"];
    let values = [
        &decision["action"],
        &decision["rule_id"],
        &decision["explain"]["reason_code"],
        &event["run"]["status"],
        &event["status"],
        &event["error"]["class"],
        &event["health"]["message"],
    ];
    parts.extend(values.into_iter().filter_map(Value::as_str).map(str::to_owned));
    if let Some(latency) = event["latency_ms"].as_u64() {
        parts.push(format!("{latency} ms"));
    }
    parts.extend(call["call_id"].as_str().map(str::to_owned));
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_cannot_be_parsed_is_shown_as_it_was_written() {
        let nested = "[".repeat(200) + &"]".repeat(200);
        for value in ["1e999", "\"\\ud800\"", "\"\u{202e}\"", &nested] {
            let line = format!("{{\"n\":{value}}}");
            let (ts, run_id, kind) = ("2026-01-31T12:00:00.000000000Z".to_owned(), "r1".to_owned(), "x".to_owned());
            let shown = event_line(&StoredEvent { id: 1, ts, run_id, kind, line });
            assert!(!shown.contains('\u{202e}'), "{shown}");
            if value != "\"\u{202e}\"" {
                let expected = format!("2026-01-31T12:00:00.000Z  r1  x  {{\"n\":{value}");
                assert!(expected.starts_with(shown.trim_end_matches(['…', '}'])), "{shown}");
            }
        }
    }
}
