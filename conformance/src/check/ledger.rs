//! The ledger within a log, read again.

/// An event as its line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) stream: String,
    pub(crate) text: String,
}

/// The events of a log; `None` where it has no ledger, an error where the ledger is malformed.
pub(crate) fn read(log: &str) -> Option<Result<Vec<Event>, String>> {
    let (_, ledger) = log.rsplit_once("\n--- BEGIN EVENTS ---\n")?;
    Some(match ledger.strip_suffix("--- END EVENTS ---\n") {
        None => Err("the ledger has no end".to_owned()),
        Some(ledger) => ledger.split_terminator('\n').map(event).collect(),
    })
}

fn event(line: &str) -> Result<Event, String> {
    let parts = line.strip_prefix("[SEQ=").and_then(|rest| {
        let (seq, rest) = rest.split_once("][")?;
        let (stream, text) = rest.split_once("] ")?;
        Some(Event { seq: seq.parse().ok()?, stream: stream.to_owned(), text: text.to_owned() })
    });
    parts.ok_or_else(|| format!("`{line}` is no event"))
}

/// What the contract asks of every ledger.
pub(crate) fn rules(events: &[Event]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (expected, event) in (1..).zip(events) {
        if event.seq != expected {
            wrong.push(format!("sequence number: expected {expected}, found {}", event.seq));
        }
        if !["STDOUT", "STDERR", "META"].contains(&event.stream.as_str()) {
            wrong.push(format!("event type: there is no stream `{}`", event.stream));
        }
    }
    let is_meta = |event: Option<&Event>, start: &str| {
        event.is_some_and(|event| event.stream == "META" && event.text.starts_with(start))
    };
    if !is_meta(events.first(), "safe-run start: cmd=\"") {
        wrong.push("the first event is not the start".to_owned());
    }
    if !is_meta(events.last(), "safe-run exit: code=") {
        wrong.push("the last event is not the exit".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_read_behind_the_last_marker() {
        let log = "=== STDOUT ===\n--- BEGIN EVENTS ---\n\n=== STDERR ===\n\n--- BEGIN EVENTS ---\n\
            [SEQ=1][META] safe-run start: cmd=\"x\"\n[SEQ=2][STDOUT] --- BEGIN EVENTS ---\n[SEQ=3][META] safe-run exit: code=1\n\
            --- END EVENTS ---\n";
        let events = read(log).unwrap().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(rules(&events), Vec::<String>::new());
        assert_eq!(read("merged output\n"), None);
    }

    #[test]
    fn what_breaks_the_rules_is_told() {
        let event = |seq, stream: &str, text: &str| Event { seq, stream: stream.to_owned(), text: text.to_owned() };
        let events = [event(1, "META", "safe-run start: cmd=\"x\""), event(3, "OTHER", "")];
        assert_eq!(
            rules(&events),
            [
                "sequence number: expected 2, found 3",
                "event type: there is no stream `OTHER`",
                "the last event is not the exit"
            ]
        );
    }
}
