//! Tests of both formats, on records that the program writes.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::error::ErrorAtLine;
use super::{EndDetails, LineError, ParsedRecord, RecordFormat};
use crate::capture::Capture;
use crate::{Ending, LogView, Record, Stream};

fn record(printed: &[(Stream, &[u8])]) -> Record {
    let mut capture = Capture::default();
    for (stream, bytes) in printed {
        capture.push(*stream, Duration::from_micros(5), bytes).unwrap();
    }
    Record {
        command: vec!["sh".into(), "-c".into(), "say \"hi\"".into()],
        started_at: Timestamp::UNIX_EPOCH,
        elapsed: Duration::from_micros(9),
        ending: Ending::Killed(15),
        aborted_by: None,
        stopped: None,
        left_behind: 0,
        capture_error: None,
        output_errors: Vec::new(),
        capture,
    }
}

fn log(record: &Record) -> Vec<u8> {
    let mut log = Vec::new();
    record.write_log(LogView::Ledger, &mut log).unwrap();
    log
}

fn events(record: &Record) -> Vec<u8> {
    let mut events = Vec::new();
    record.write_json_lines(&mut events).unwrap();
    events
}

fn sample() -> Record {
    let stdout = b"a\r\n--- BEGIN EVENTS ---\nbase64:x\n";
    record(&[(Stream::Stdout, stdout), (Stream::Stderr, b"\xff\n\nlast\r")])
}

/// Removes what only events have.
fn without_details(recorded: ParsedRecord) -> ParsedRecord {
    ParsedRecord { format: RecordFormat::Log, times: None, end: EndDetails::default(), ..recorded }
}

#[test]
fn a_log_and_its_events_parse_to_the_same_record() {
    let expected = ParsedRecord {
        format: RecordFormat::JsonLines,
        command: "sh -c 'say \"hi\"'".to_owned(),
        times: Some((Timestamp::UNIX_EPOCH, Duration::from_micros(9))),
        exit_code: 143,
        end: EndDetails { signal: Some(15), ..EndDetails::default() },
        stdout: vec!["a".to_owned(), "--- BEGIN EVENTS ---".to_owned(), "base64:YmFzZTY0Ong=".to_owned()],
        stderr: vec!["base64:/w==".to_owned(), String::new(), "last\r".to_owned()],
        notes: Vec::new(),
    };
    assert_eq!(ParsedRecord::parse(&events(&sample())), Ok(expected.clone()));
    assert_eq!(ParsedRecord::parse(&log(&sample())), Ok(without_details(expected)));
}

#[test]
fn events_have_the_details_of_the_end() {
    let record = Record { aborted_by: Some(2), left_behind: 3, ..sample() };
    let end = EndDetails { signal: Some(15), aborted_by: Some(2), left_behind: Some(3) };
    assert_eq!(ParsedRecord::parse(&events(&record)).unwrap().end, end);
    let exited = Record { ending: Ending::Exited(143), ..sample() };
    assert_eq!(ParsedRecord::parse(&events(&exited)).unwrap().end, EndDetails::default());
}

#[test]
fn notes_of_the_recorder_are_parsed() {
    let cut = Record { capture_error: Some(io::Error::other("no room")), ..sample() };
    let notes = vec!["safe-run incomplete: no room".to_owned()];
    assert_eq!(ParsedRecord::parse(&log(&cut)).unwrap().notes, notes);
    assert_eq!(ParsedRecord::parse(&events(&cut)).unwrap().notes, notes);
}

/// Returns the error after a replacement in the text of a record.
fn error_after(record: &[u8], from: &str, to: &str) -> ErrorAtLine {
    let text = String::from_utf8(record.to_vec()).unwrap();
    assert!(text.contains(from), "{text}");
    ParsedRecord::parse(text.replacen(from, to, 1).as_bytes()).unwrap_err()
}

#[test]
fn an_invalid_log_is_reported_with_its_line() {
    // 1 head, 2 one, 3 two, 4 blank, 5 head, 6 oops, 7 blank, 8 begin, 9 start, 10 one, 11 two, 12 oops, 13 exit, 14 end
    let log = log(&record(&[(Stream::Stdout, b"one\ntwo\n"), (Stream::Stderr, b"oops")]));
    for (from, to, line, error) in [
        ("[SEQ=3]", "[SEQ=4]", 11, LineError::SequenceNumber { expected: 3, found: 4 }),
        ("[SEQ=3]", "[SEQ=x]", 11, LineError::NotAnEvent),
        ("[SEQ=3][STDOUT]", "[SEQ=3][STDLOG]", 11, LineError::NotAnEvent),
        ("[SEQ=2][STDOUT] one", "[SEQ=2][STDOUT] base64:!", 10, LineError::Base64),
        ("safe-run start", "start", 9, LineError::NoStart),
        ("[SEQ=5][META] safe-run exit: code=143\n", "", 12, LineError::NoExit),
        ("[SEQ=5][META] safe-run exit: code=143\n--- END EVENTS ---\n", "", 12, LineError::NoExit),
        ("code=143\n--- END EVENTS ---\n", "co", 13, LineError::NotAnEvent),
        ("--- END EVENTS ---\n", "--- END EVENTS ---\nmore\n", 15, LineError::TrailingText),
        ("--- BEGIN EVENTS ---\n", "", 13, LineError::NoLedger),
        ("two\n\n", "twice\n\n", 3, LineError::SectionMismatch),
        ("two\n\n", "two\nthree\n\n", 4, LineError::SectionMismatch),
        ("one\n", "", 2, LineError::SectionMismatch),
        ("=== STDERR ===\n", "", 5, LineError::SectionMismatch),
        ("oops\n\n", "oops\n", 7, LineError::SectionMismatch),
        ("=== STDOUT ===\n", "", 1, LineError::SectionMismatch),
    ] {
        assert_eq!(error_after(&log, from, to), (line, error), "{from:?} to {to:?}");
    }
    assert_eq!(ParsedRecord::parse(b""), Err((1, LineError::NoLedger)));
    assert_eq!(ParsedRecord::parse(b"some output\n"), Err((1, LineError::NoLedger)));
}

#[test]
fn invalid_events_are_reported_with_their_line() {
    let events = events(&record(&[(Stream::Stdout, b"one\n\xff\n")]));
    let missing = |event, field| LineError::MissingField { event, field };
    let exit = "\"META\",\"at_us\":9,\"text\":\"safe-run exit: code=143\",\"exit_code\":143,\"signal\":15}";
    for (from, to, line, error) in [
        ("\"seq\":2", "\"seq\":3", 2, LineError::SequenceNumber { expected: 2, found: 3 }),
        ("\"text\":\"/w==\"", "\"text\":\"/\"", 3, LineError::Base64),
        ("\"STDOUT\"", "\"STDLOG\"", 2, LineError::NotAnEvent),
        ("safe-run-event.v1", "safe-run-event.v2", 1, LineError::NotAnEvent),
        ("safe-run start", "start", 1, LineError::NoStart),
        ("\"started_at\":", "\"began_at\":", 1, missing("start of the command", "started_at")),
        ("\"args\":", "\"words\":", 1, missing("start of the command", "args")),
        ("\"args\":[", "\"args\":[],\"words\":[", 1, missing("start of the command", "args")),
        ("\"text\":\"one\"", "\"words\":\"one\"", 2, missing("event", "text")),
        (exit, "\"META\",\"at_us\":9,\"text\":\"exit: code=143\"}", 4, LineError::NoExit),
    ] {
        assert_eq!(error_after(&events, from, to), (line, error), "{from:?} to {to:?}");
    }
    let torn = &events[..events.len() - 5];
    assert!(matches!(ParsedRecord::parse(torn), Err((4, LineError::Json(_)))));
    let ends = events.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place);
    let third = ends.clone().nth(2).unwrap();
    assert_eq!(ParsedRecord::parse(&events[..=third]), Err((3, LineError::NoExit)));
}

#[test]
fn contradicting_events_are_reported_with_line_and_field() {
    // 1 start, 2 one, 3 exit with code 143 by signal 15
    let events = events(&record(&[(Stream::Stdout, b"one\n")]));
    for (from, to, line, error) in [
        ("\"exit_code\":143", "\"exit_code\":0", 3, LineError::Contradiction("exit_code", "text")),
        ("code=143\"", "code=0\"", 3, LineError::Contradiction("exit_code", "text")),
        ("\"exit_code\":143,", "", 3, LineError::MissingField { event: "exit of the command", field: "exit_code" }),
        (
            "\"exit_code\":143,",
            "\"exit_code\":null,",
            3,
            LineError::MissingField { event: "exit of the command", field: "exit_code" },
        ),
        ("\"signal\":15", "\"signal\":9", 3, LineError::Contradiction("signal", "exit_code")),
        ("\"signal\":15", "\"signal\":2147483647", 3, LineError::Contradiction("signal", "exit_code")),
        ("\"args\":[\"sh\",", "\"args\":[\"bash\",", 1, LineError::Contradiction("args", "text")),
        ("\"args\":[\"sh\",", "\"args\":[{\"base64\":\"c2g=\"},\"-x\",", 1, LineError::Contradiction("args", "text")),
        ("\"args\":[\"sh\",", "\"args\":[{\"base64\":\"!\"},", 1, LineError::Base64),
        ("cmd=\"sh", "cmd=\"zsh", 1, LineError::Contradiction("args", "text")),
        ("\"text\":\"one\"", "\"text\":\"one\",\"signal\":15", 2, LineError::MisplacedField("signal")),
        ("\"text\":\"one\"", "\"text\":\"one\",\"args\":[\"sh\"]", 2, LineError::MisplacedField("args")),
    ] {
        // The quotes of the command are escaped in the JSON text.
        let from = from.replace("cmd=\"", "cmd=\\\"");
        let to = to.replace("cmd=\"", "cmd=\\\"");
        assert_eq!(error_after(&events, &from, &to), (line, error), "{from:?} to {to:?}");
    }
    for (from, to, line, field) in [
        ("\"exit_code\":143", "\"exit_code\":\"143\"", 3, "exit_code"),
        ("\"signal\":15", "\"signal\":15.5", 3, "signal"),
        ("\"signal\":15", "\"aborted_by\":\"TERM\"", 3, "aborted_by"),
        ("\"signal\":15", "\"left_behind\":-1", 3, "left_behind"),
        ("\"args\":[\"sh\",", "\"args\":[1,", 1, "args"),
        ("\"text\":\"one\"", "\"text\":1", 2, "text"),
        ("\"text\":\"one\"", "\"text\":\"one\",\"line_end\":\"cr\"", 2, "line_end"),
    ] {
        let (found, error) = error_after(&events, from, to);
        assert!(
            found == line && matches!(&error, LineError::InvalidField { field: name, .. } if *name == field),
            "{to}: {error}"
        );
    }
}

proptest! {
    #[test]
    fn any_output_is_parsed_back(
        printed in prop::collection::vec(
            (any::<bool>(), prop::sample::select(vec![
                &b"a"[..], b"\n", b"\r\n", b"\r", b"--- BEGIN EVENTS ---\n", b"--- END EVENTS ---\n", b"=== STDERR ===\n",
                b"\n\n", b"base64:", b"\xff", b"[SEQ=1][META] safe-run start: cmd=\"x\"\n", b"{", b" ",
            ])), 0..12)
    ) {
        let printed: Vec<_> = printed.into_iter()
            .map(|(is_error, bytes)| (if is_error { Stream::Stderr } else { Stream::Stdout }, bytes)).collect();
        let record = record(&printed);
        let from_events = ParsedRecord::parse(&events(&record)).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        let from_log = ParsedRecord::parse(&log(&record)).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert_eq!(&without_details(from_events), &from_log);
        let mut lines = [Vec::new(), Vec::new()];
        crate::capture::for_each_line(&record.capture, |stream, _, line| {
            let mut bytes = Vec::new();
            line.write_to(&mut bytes)?;
            lines[stream as usize].push(crate::record::ledger_text(&bytes));
            Ok::<_, io::Error>(())
        }).unwrap();
        prop_assert_eq!([from_log.stdout, from_log.stderr], lines);
    }

    #[test]
    #[cfg(unix)]
    fn any_command_agrees_with_its_text(words in prop::collection::vec(any::<Vec<u8>>(), 1..5)) {
        use std::os::unix::ffi::OsStringExt as _;
        let command = words.into_iter().map(std::ffi::OsString::from_vec).collect();
        let record = Record { command, ..sample() };
        prop_assert_eq!(ParsedRecord::parse(&events(&record)).map(|recorded| recorded.command), Ok(record.command_line()));
    }

    #[test]
    fn a_truncated_log_is_never_accepted(cut in 0.0..1.0_f64) {
        let log = log(&sample());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an offset within the log")]
        let cut = (cut * log.len() as f64) as usize;
        prop_assert!(ParsedRecord::parse(&log[..cut]).is_err());
    }
}
