//! Parses the ledger of a log and checks its rules.

use crate::trial::{FileContents, TrialOutcome};

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LedgerEvent {
    pub(super) seq: u64,
    pub(super) stream: String,
    pub(super) text: String,
}

/// A malformed ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LedgerError {
    #[error("the ledger has no end")]
    NoEnd,
    #[error("`{0}` is not an event")]
    NotAnEvent(String),
}

/// Parses the events of a log. Returns `None` if the log has no ledger.
pub(super) fn parse(log: &str) -> Option<Result<Vec<LedgerEvent>, LedgerError>> {
    // The last marker counts: the sections can contain the same line, but every line of output in the ledger has a prefix.
    let (_, ledger) = log.rsplit_once("\n--- BEGIN EVENTS ---\n")?;
    Some(match ledger.strip_suffix("--- END EVENTS ---\n") {
        None => Err(LedgerError::NoEnd),
        Some(ledger) => ledger.split_terminator('\n').map(parse_event).collect(),
    })
}

fn parse_event(line: &str) -> Result<LedgerEvent, LedgerError> {
    let parts = line.strip_prefix("[SEQ=").and_then(|rest| {
        let (seq, rest) = rest.split_once("][")?;
        let (stream, text) = rest.split_once("] ")?;
        Some(LedgerEvent { seq: seq.parse().ok()?, stream: stream.to_owned(), text: text.to_owned() })
    });
    parts.ok_or_else(|| LedgerError::NotAnEvent(line.to_owned()))
}

/// Checks every ledger that a program has left in its log folder.
pub(crate) fn check_ledgers(outcome: &TrialOutcome) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, contents) in outcome.after.in_folder(&outcome.log_folder) {
        let FileContents::Bytes(bytes) = contents else { continue };
        match parse(&String::from_utf8_lossy(bytes)) {
            None => {}
            Some(Ok(events)) => problems.extend(check_rules(&events)),
            Some(Err(error)) => problems.push(format!("`{name}` is malformed: {error}")),
        }
    }
    problems
}

/// Checks the rules of the contract for a ledger.
fn check_rules(events: &[LedgerEvent]) -> Vec<String> {
    let mut problems = Vec::new();
    for (expected, event) in (1..).zip(events) {
        if event.seq != expected {
            problems.push(format!("sequence number: expected {expected}, found {}", event.seq));
        }
        if !["STDOUT", "STDERR", "META"].contains(&event.stream.as_str()) {
            problems.push(format!("event type: unknown stream `{}`", event.stream));
        }
    }
    let is_meta = |event: Option<&LedgerEvent>, start: &str| {
        event.is_some_and(|event| event.stream == "META" && event.text.starts_with(start))
    };
    if !is_meta(events.first(), "safe-run start: cmd=\"") {
        problems.push("the first event is not the start".to_owned());
    }
    if !is_meta(events.last(), "safe-run exit: code=") {
        problems.push("the last event is not the exit".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_begins_after_the_last_marker() {
        let log = "=== STDOUT ===\n--- BEGIN EVENTS ---\n\n=== STDERR ===\n\n--- BEGIN EVENTS ---\n\
            [SEQ=1][META] safe-run start: cmd=\"x\"\n[SEQ=2][STDOUT] --- BEGIN EVENTS ---\n[SEQ=3][META] safe-run exit: code=1\n\
            --- END EVENTS ---\n";
        let events = parse(log).unwrap().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(check_rules(&events), Vec::<String>::new());
        assert_eq!(parse("merged output\n"), None);
    }

    #[test]
    fn violated_rules_are_reported() {
        let event =
            |seq, stream: &str, text: &str| LedgerEvent { seq, stream: stream.to_owned(), text: text.to_owned() };
        let events = [event(1, "META", "safe-run start: cmd=\"x\""), event(3, "OTHER", "")];
        assert_eq!(
            check_rules(&events),
            [
                "sequence number: expected 2, found 3",
                "event type: unknown stream `OTHER`",
                "the last event is not the exit"
            ]
        );
    }

    #[test]
    fn a_malformed_ledger_is_an_error() {
        let ledger = |body: &str| format!("\n--- BEGIN EVENTS ---\n{body}");
        assert_eq!(parse(&ledger("[SEQ=1][META] x\n")), Some(Err(LedgerError::NoEnd)));
        for line in ["noise", "[SEQ=x][META] a", "[SEQ=1] a"] {
            let error = LedgerError::NotAnEvent(line.to_owned());
            assert_eq!(parse(&ledger(&format!("{line}\n--- END EVENTS ---\n"))), Some(Err(error)));
        }
        assert_eq!(check_rules(&[]).len(), 2, "an empty ledger has neither start nor exit");
    }
}
