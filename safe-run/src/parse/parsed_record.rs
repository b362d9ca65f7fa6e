//! A record read back: from its log, or from the JSON lines of its events. What is not whole is an error with its line, and never
//! half a record.

use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

/// What a log or a file of events tells of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What it was read from.
    pub kind: RecordKind,
    /// The command as `sh` reads it.
    pub command: String,
    /// When it was started and how long it took; a log does not say.
    pub times: Option<(Timestamp, Duration)>,
    /// The code that safe-run exited with.
    pub exit_code: i32,
    /// What else is known of the end; a log does not say.
    pub end: EndDetails,
    /// The lines of standard output without their ends, as the ledger writes them: a text, or `base64:` and bytes.
    pub stdout: Vec<String>,
    /// The lines of standard error, in the same way.
    pub stderr: Vec<String>,
    /// What the recorder says beside the start and the end, such as that not all output could be kept.
    pub notes: Vec<String>,
}

/// What a record was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A log with a ledger.
    Log,
    /// The JSON lines of the events.
    Events,
}

/// What the last event tells beside the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndDetails {
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The signal that safe-run was sent and passed on.
    pub aborted_by: Option<i32>,
    /// How many processes the command left behind, where it was any.
    pub left_behind: Option<u32>,
}

/// What could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum RereadError {
    /// The file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no whole record.
    #[error("`{path}`, line {line}: {wrong}")]
    Broken {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        wrong: Wrong,
    },
}

/// What is wrong with a line of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The file ends without a ledger: no log at all, or one of the merged view.
    #[error("there is no ledger of events up to here")]
    NoLedger,
    /// A line of the ledger that is no event.
    #[error("this is no event")]
    NoEvent,
    /// A line of JSON that is no event.
    #[error("this is no event: {0}")]
    Json(String),
    /// A field that an event must have.
    #[error("the {of} has no `{field}`")]
    Missing {
        /// The event.
        of: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field that is of another type, or has a value that means nothing.
    #[error("`{field}` cannot be used: {why}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A field of the start or of the exit, in another event.
    #[error("`{0}` stands in an event that has no such field")]
    Misplaced(&'static str),
    /// Two fields of an event that cannot both be true.
    #[error("`{0}` and `{1}` do not tell the same")]
    Contradiction(&'static str, &'static str),
    /// Events are numbered without gaps.
    #[error("expected event {expected}, found event {found}")]
    Number {
        /// The number that follows.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// A record begins with the start of the command.
    #[error("the first event is not the start of the command")]
    NoStart,
    /// A record ends with the exit of the command.
    #[error("the record breaks off before the exit of the command")]
    NoExit,
    /// Nothing follows the end.
    #[error("something follows the end of the record")]
    Beyond,
    /// The text of an event says that it is base64.
    #[error("the text is no base64")]
    Base64,
    /// A line of a section that the ledger does not have, or not like this.
    #[error("the section and the ledger do not tell the same")]
    Section,
}

/// A line, counted from 1, and what is wrong there.
pub(super) type At = (usize, Wrong);

/// An event where it stands.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) line: usize,
    pub(super) seq: u64,
    pub(super) source: Source,
    /// As the ledger writes it.
    pub(super) text: String,
    pub(super) started_at: Option<Timestamp>,
    pub(super) at: Option<Duration>,
    pub(super) end: EndDetails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stdout,
    Stderr,
    Meta,
}

impl Source {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "STDOUT" => Some(Source::Stdout),
            "STDERR" => Some(Source::Stderr),
            "META" => Some(Source::Meta),
            _ => None,
        }
    }
}

impl Recorded {
    /// Reads a file: a log with a ledger, or JSON lines. All of it is held in memory.
    pub fn read(path: &Utf8Path) -> Result<Self, RereadError> {
        Self::read_with_bytes(path).map(|(recorded, _)| recorded)
    }

    /// The same with the bytes that were read, for a pipe gives them once.
    pub(crate) fn read_with_bytes(path: &Utf8Path) -> Result<(Self, Vec<u8>), RereadError> {
        let bytes = fs::read(path).map_err(|source| RereadError::Read { path: path.to_owned(), source })?;
        let recorded = Self::parse(&bytes);
        let recorded = recorded.map_err(|(line, wrong)| RereadError::Broken { path: path.to_owned(), line, wrong })?;
        Ok((recorded, bytes))
    }

    fn parse(bytes: &[u8]) -> Result<Self, At> {
        // A log begins with the header of a section.
        if bytes.starts_with(b"{") {
            assemble(RecordKind::Events, super::json_lines::parse(bytes)?)
        } else {
            super::log::parse(bytes)
        }
    }
}

/// How the text of the first event begins.
pub(super) const START: &str = "safe-run start: cmd=\"";

/// How the text of the last event begins.
pub(super) const EXIT: &str = "safe-run exit: code=";

/// A record of its events.
pub(super) fn assemble(kind: RecordKind, events: Vec<Told>) -> Result<Recorded, At> {
    for (expected, event) in (1..).zip(&events) {
        if event.seq != expected {
            return Err((event.line, Wrong::Number { expected, found: event.seq }));
        }
    }
    let last = events.last().map_or(1, |event| event.line);
    let meta = |event: Option<&Told>, start: &str| {
        event.filter(|event| event.source == Source::Meta)?.text.strip_prefix(start).map(str::to_owned)
    };
    let command = meta(events.first(), START).and_then(|line| Some(line.strip_suffix('"')?.to_owned()));
    let command = command.ok_or((events.first().map_or(1, |event| event.line), Wrong::NoStart))?;
    let code = meta(events.last(), EXIT).and_then(|code| code.parse().ok());
    let exit_code = code.ok_or((last, Wrong::NoExit))?;
    let times = events.first().and_then(|event| event.started_at).zip(events.last().and_then(|event| event.at));
    let end = events.last().map(|event| event.end).unwrap_or_default();
    let (stdout, stderr, notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut recorded = Recorded { kind, command, times, exit_code, end, stdout, stderr, notes };
    let between = events.len() - 1;
    for event in events.into_iter().take(between).skip(1) {
        match event.source {
            Source::Stdout => recorded.stdout.push(event.text),
            Source::Stderr => recorded.stderr.push(event.text),
            Source::Meta => recorded.notes.push(event.text),
        }
    }
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::Tape;
    use crate::{Ending, Record, Stream, View};

    fn record(printed: &[(Stream, &[u8])]) -> Record {
        let mut tape = Tape::default();
        for (stream, bytes) in printed {
            tape.push(*stream, Duration::from_micros(5), bytes).unwrap();
        }
        Record {
            command: vec!["sh".into(), "-c".into(), "say \"hi\"".into()],
            started_at: Timestamp::UNIX_EPOCH,
            elapsed: Duration::from_micros(9),
            ending: Ending::Killed(15),
            aborted_by: None,
            left_behind: 0,
            lost: None,
            unwritten: Vec::new(),
            tape,
        }
    }

    fn log(record: &Record) -> Vec<u8> {
        let mut log = Vec::new();
        record.write_log(View::Ledger, &mut log).unwrap();
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

    /// What a log has of a record that was read from events.
    fn without_details(recorded: Recorded) -> Recorded {
        Recorded { kind: RecordKind::Log, times: None, end: EndDetails::default(), ..recorded }
    }

    #[test]
    fn a_log_and_its_events_tell_the_same() {
        let expected = Recorded {
            kind: RecordKind::Events,
            command: "sh -c 'say \"hi\"'".to_owned(),
            times: Some((Timestamp::UNIX_EPOCH, Duration::from_micros(9))),
            exit_code: 143,
            end: EndDetails { signal: Some(15), ..EndDetails::default() },
            stdout: vec!["a".to_owned(), "--- BEGIN EVENTS ---".to_owned(), "base64:YmFzZTY0Ong=".to_owned()],
            stderr: vec!["base64:/w==".to_owned(), String::new(), "last\r".to_owned()],
            notes: Vec::new(),
        };
        assert_eq!(Recorded::parse(&events(&sample())), Ok(expected.clone()));
        assert_eq!(Recorded::parse(&log(&sample())), Ok(without_details(expected)));
    }

    #[test]
    fn the_events_tell_how_it_ended() {
        let record = Record { aborted_by: Some(2), left_behind: 3, ..sample() };
        let end = EndDetails { signal: Some(15), aborted_by: Some(2), left_behind: Some(3) };
        assert_eq!(Recorded::parse(&events(&record)).unwrap().end, end);
        let exited = Record { ending: Ending::Exited(143), ..sample() };
        assert_eq!(Recorded::parse(&events(&exited)).unwrap().end, EndDetails::default());
    }

    #[test]
    fn what_the_recorder_says_is_kept() {
        let cut = Record { lost: Some(io::Error::other("no room")), ..sample() };
        let notes = vec!["safe-run incomplete: no room".to_owned()];
        assert_eq!(Recorded::parse(&log(&cut)).unwrap().notes, notes);
        assert_eq!(Recorded::parse(&events(&cut)).unwrap().notes, notes);
    }

    /// What is wrong with a record after a change of its text, and where.
    fn broken(record: &[u8], from: &str, to: &str) -> At {
        let text = String::from_utf8(record.to_vec()).unwrap();
        assert!(text.contains(from), "{text}");
        Recorded::parse(text.replacen(from, to, 1).as_bytes()).unwrap_err()
    }

    #[test]
    fn a_broken_log_is_told_with_its_line() {
        // 1 head, 2 one, 3 two, 4 blank, 5 head, 6 oops, 7 blank, 8 begin, 9 start, 10 one, 11 two, 12 oops, 13 exit, 14 end
        let log = log(&record(&[(Stream::Stdout, b"one\ntwo\n"), (Stream::Stderr, b"oops")]));
        for (from, to, line, wrong) in [
            ("[SEQ=3]", "[SEQ=4]", 11, Wrong::Number { expected: 3, found: 4 }),
            ("[SEQ=3]", "[SEQ=x]", 11, Wrong::NoEvent),
            ("[SEQ=3][STDOUT]", "[SEQ=3][STDLOG]", 11, Wrong::NoEvent),
            ("[SEQ=2][STDOUT] one", "[SEQ=2][STDOUT] base64:!", 10, Wrong::Base64),
            ("safe-run start", "start", 9, Wrong::NoStart),
            ("[SEQ=5][META] safe-run exit: code=143\n", "", 12, Wrong::NoExit),
            ("[SEQ=5][META] safe-run exit: code=143\n--- END EVENTS ---\n", "", 12, Wrong::NoExit),
            ("code=143\n--- END EVENTS ---\n", "co", 13, Wrong::NoEvent),
            ("--- END EVENTS ---\n", "--- END EVENTS ---\nmore\n", 15, Wrong::Beyond),
            ("--- BEGIN EVENTS ---\n", "", 13, Wrong::NoLedger),
            ("two\n\n", "twice\n\n", 3, Wrong::Section),
            ("two\n\n", "two\nthree\n\n", 4, Wrong::Section),
            ("one\n", "", 2, Wrong::Section),
            ("=== STDERR ===\n", "", 5, Wrong::Section),
            ("oops\n\n", "oops\n", 7, Wrong::Section),
            ("=== STDOUT ===\n", "", 1, Wrong::Section),
        ] {
            assert_eq!(broken(&log, from, to), (line, wrong), "{from:?} to {to:?}");
        }
        assert_eq!(Recorded::parse(b""), Err((1, Wrong::NoLedger)));
        assert_eq!(Recorded::parse(b"some output\n"), Err((1, Wrong::NoLedger)));
    }

    #[test]
    fn broken_events_are_told_with_their_line() {
        let events = events(&record(&[(Stream::Stdout, b"one\n\xff\n")]));
        let missing = |of, field| Wrong::Missing { of, field };
        let exit = "\"META\",\"at_us\":9,\"text\":\"safe-run exit: code=143\",\"exit_code\":143,\"signal\":15}";
        for (from, to, line, wrong) in [
            ("\"seq\":2", "\"seq\":3", 2, Wrong::Number { expected: 2, found: 3 }),
            ("\"text\":\"/w==\"", "\"text\":\"/\"", 3, Wrong::Base64),
            ("\"STDOUT\"", "\"STDLOG\"", 2, Wrong::NoEvent),
            ("safe-run-event.v1", "safe-run-event.v2", 1, Wrong::NoEvent),
            ("safe-run start", "start", 1, Wrong::NoStart),
            ("\"started_at\":", "\"began_at\":", 1, missing("start of the command", "started_at")),
            ("\"args\":", "\"words\":", 1, missing("start of the command", "args")),
            ("\"args\":[", "\"args\":[],\"words\":[", 1, missing("start of the command", "args")),
            ("\"text\":\"one\"", "\"words\":\"one\"", 2, missing("event", "text")),
            (exit, "\"META\",\"at_us\":9,\"text\":\"exit: code=143\"}", 4, Wrong::NoExit),
        ] {
            assert_eq!(broken(&events, from, to), (line, wrong), "{from:?} to {to:?}");
        }
        let torn = &events[..events.len() - 5];
        assert!(matches!(Recorded::parse(torn), Err((4, Wrong::Json(_)))));
        let ends = events.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place);
        let third = ends.clone().nth(2).unwrap();
        assert_eq!(Recorded::parse(&events[..=third]), Err((3, Wrong::NoExit)));
    }

    #[test]
    fn events_that_contradict_themselves_are_told_with_line_and_field() {
        // 1 start, 2 one, 3 exit with code 143 by signal 15
        let events = events(&record(&[(Stream::Stdout, b"one\n")]));
        for (from, to, line, wrong) in [
            ("\"exit_code\":143", "\"exit_code\":0", 3, Wrong::Contradiction("exit_code", "text")),
            ("code=143\"", "code=0\"", 3, Wrong::Contradiction("exit_code", "text")),
            ("\"exit_code\":143,", "", 3, Wrong::Missing { of: "exit of the command", field: "exit_code" }),
            (
                "\"exit_code\":143,",
                "\"exit_code\":null,",
                3,
                Wrong::Missing { of: "exit of the command", field: "exit_code" },
            ),
            ("\"signal\":15", "\"signal\":9", 3, Wrong::Contradiction("signal", "exit_code")),
            ("\"signal\":15", "\"signal\":2147483647", 3, Wrong::Contradiction("signal", "exit_code")),
            ("\"args\":[\"sh\",", "\"args\":[\"bash\",", 1, Wrong::Contradiction("args", "text")),
            ("\"args\":[\"sh\",", "\"args\":[{\"base64\":\"c2g=\"},\"-x\",", 1, Wrong::Contradiction("args", "text")),
            ("\"args\":[\"sh\",", "\"args\":[{\"base64\":\"!\"},", 1, Wrong::Base64),
            ("cmd=\"sh", "cmd=\"zsh", 1, Wrong::Contradiction("args", "text")),
            ("\"text\":\"one\"", "\"text\":\"one\",\"signal\":15", 2, Wrong::Misplaced("signal")),
            ("\"text\":\"one\"", "\"text\":\"one\",\"args\":[\"sh\"]", 2, Wrong::Misplaced("args")),
        ] {
            // The command's quotes stand escaped in its text.
            let from = from.replace("cmd=\"", "cmd=\\\"");
            let to = to.replace("cmd=\"", "cmd=\\\"");
            assert_eq!(broken(&events, &from, &to), (line, wrong), "{from:?} to {to:?}");
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
            let (found, wrong) = broken(&events, from, to);
            assert!(
                found == line && matches!(&wrong, Wrong::Field { field: name, .. } if *name == field),
                "{to}: {wrong}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_a_command_prints_is_read_back(
            printed in prop::collection::vec(
                (any::<bool>(), prop::sample::select(vec![
                    &b"a"[..], b"\n", b"\r\n", b"\r", b"--- BEGIN EVENTS ---\n", b"--- END EVENTS ---\n", b"=== STDERR ===\n",
                    b"\n\n", b"base64:", b"\xff", b"[SEQ=1][META] safe-run start: cmd=\"x\"\n", b"{", b" ",
                ])), 0..12)
        ) {
            let printed: Vec<_> = printed.into_iter()
                .map(|(is_error, bytes)| (if is_error { Stream::Stderr } else { Stream::Stdout }, bytes)).collect();
            let record = record(&printed);
            let from_events = Recorded::parse(&events(&record)).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            let from_log = Recorded::parse(&log(&record)).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            prop_assert_eq!(&without_details(from_events), &from_log);
            let mut lines = [Vec::new(), Vec::new()];
            crate::record::lines(&record.tape, |stream, _, line| {
                let mut bytes = Vec::new();
                line.write_to(&mut bytes)?;
                lines[stream as usize].push(crate::record::text_of(&bytes));
                Ok::<_, io::Error>(())
            }).unwrap();
            prop_assert_eq!([from_log.stdout, from_log.stderr], lines);
        }

        #[test]
        #[cfg(unix)]
        fn whatever_a_command_is_called_with_fits_its_text(words in prop::collection::vec(any::<Vec<u8>>(), 1..5)) {
            use std::os::unix::ffi::OsStringExt as _;
            let command = words.into_iter().map(std::ffi::OsString::from_vec).collect();
            let record = Record { command, ..sample() };
            prop_assert_eq!(Recorded::parse(&events(&record)).map(|recorded| recorded.command), Ok(record.command_line()));
        }

        #[test]
        fn a_log_that_was_cut_is_never_taken_for_a_whole_one(cut in 0.0..1.0_f64) {
            let log = log(&sample());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place within the log")]
            let cut = (cut * log.len() as f64) as usize;
            prop_assert!(Recorded::parse(&log[..cut]).is_err());
        }
    }
}
