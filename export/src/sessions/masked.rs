//! Masks what differs between any two sessions that do the same: the folder, temporary files, ids, times.

use std::borrow::Cow;
use std::sync::LazyLock;

use counterproof_sessions::event::{EventBody, SessionEvent};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// Nesting of a value that is taken over. A document may have 127 levels, and the artifact adds some around the value.
const MAX_DEPTH: usize = 100;

/// Most folders that are searched for in each text.
const MAX_FOLDERS: usize = 8;

/// Ids and temporary paths, which occur in arguments too. The first group names the mask.
const IDS: &str = r"(?x)
    (?<uuid> \b [0-9a-fA-F]{8} (?:-[0-9a-fA-F]{4}){3} - [0-9a-fA-F]{12} \b)
  | (?<tmp> (?:/private)? (?: /(?:var/)?tmp/ | /var/folders/[^/\s]+/[^/\s]+/T/ ) [^/\s'\x22`:;,)\]}]+ )
  | (?<address> \b 0x [0-9a-fA-F]{6,16} \b)
  | (?<port> (?: localhost | 127\.0\.0\.1 | \[::1\] ) : [0-9]{4,5} \b)
  | (?<hex> \b [0-9a-f]{7,64} \b)
";

/// Times and durations, which an output states.
const TIMES: &str = r"(?x)
    (?<time> \b [0-9]{4}-[0-9]{2}-[0-9]{2} [T\x20] [0-9]{2}:[0-9]{2} (?: :[0-9]{2} (?:[.,][0-9]+)? )? (?: Z | [+-][0-9]{2}:?[0-9]{2} )? )
  | (?<clock> \b [0-9]{2}:[0-9]{2}:[0-9]{2} (?:[.,][0-9]+)? \b)
  | (?<duration> \b (?: [0-9]+\.[0-9]+ \s? (?:seconds|secs|sec|s|minutes|mins|min|m) | [0-9]+(?:\.[0-9]+)? \s? (?:ms|µs|us|ns) ) \b)
  | (?: \b (?:in|Time:|took|after) \s) (?<seconds> [0-9]+ \s? (?:seconds|secs|sec|s) ) \b
";

#[expect(clippy::expect_used, reason = "a test compiles both expressions")]
static IDS_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(IDS).expect("a valid expression"));
#[expect(clippy::expect_used, reason = "a test compiles both expressions")]
static TIMES_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(TIMES).expect("a valid expression"));

/// Masks the texts of one session.
#[derive(Debug)]
pub(super) struct Masker<'a> {
    session_id: &'a str,
    /// The working folders, the longest first.
    folders: Vec<&'a str>,
}

impl<'a> Masker<'a> {
    pub(super) fn new(session_id: &'a str, events: &'a [SessionEvent]) -> Self {
        let mut folders: Vec<&str> = Vec::new();
        for event in events {
            let EventBody::Command(command) = &event.body else { continue };
            let Some(folder) = command.cwd.as_deref().map(|folder| folder.trim_end_matches(['/', '\\'])) else {
                continue;
            };
            // A folder such as `/tmp` is part of paths that have nothing to do with the session.
            let is_deep = folder.split(['/', '\\']).filter(|name| !name.is_empty()).count() > 1;
            if is_deep && !folders.iter().any(|known| is_within(folder, known)) && folders.len() < MAX_FOLDERS {
                folders.retain(|known| !is_within(known, folder));
                folders.push(folder);
            }
        }
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
        Self { session_id, folders }
    }

    /// Masks a text that the agent wrote: paths and ids.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for folder in &self.folders {
            text = replace_folder(text, folder);
        }
        // A session may have a short id that its author chose, which is a word in other texts.
        if self.session_id.len() >= 8 && text.contains(self.session_id) {
            text = Cow::Owned(text.replace(self.session_id, "<session>"));
        }
        replace(text, &IDS_REGEX).into_owned()
    }

    /// Masks an output of a tool: times and durations too.
    pub(super) fn output(&self, text: &str) -> String {
        replace(Cow::Owned(self.text(text)), &TIMES_REGEX).into_owned()
    }

    /// Masks the texts of a value, without its keys. A value that is too deep becomes a text.
    pub(super) fn value(&self, value: &Value) -> Value {
        if is_deeper(value, MAX_DEPTH) {
            Value::String(self.text(&value.to_string()))
        } else {
            self.shallow_value(value)
        }
    }

    fn shallow_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.shallow_value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(name, value)| (name.clone(), self.shallow_value(value))).collect::<Map<_, _>>(),
            ),
            other => other.clone(),
        }
    }
}

fn is_within(folder: &str, outer: &str) -> bool {
    folder.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|item| is_deeper(item, levels - 1)),
        _ => false,
    }
}

fn replace_folder<'t>(text: Cow<'t, str>, folder: &str) -> Cow<'t, str> {
    if !text.contains(folder) {
        return text;
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(place) = rest.find(folder) {
        let end = place + folder.len();
        let is_whole = !rest[end..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        masked.push_str(&rest[..place]);
        masked.push_str(if is_whole { "<workspace>" } else { folder });
        rest = &rest[end..];
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

fn replace<'t>(text: Cow<'t, str>, regex: &Regex) -> Cow<'t, str> {
    let replacement = |found: &Captures<'_>| -> String {
        let names = ["uuid", "tmp", "address", "port", "hex", "time", "clock", "duration", "seconds"];
        let whole = &found[0];
        let named = names.into_iter().find_map(|name| Some((name, found.name(name)?)));
        let Some((name, part)) = named else { return whole.to_owned() };
        // A number and a word can be written with these digits too.
        let is_mixed = |text: &str| {
            text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        if name == "hex" && !is_mixed(part.as_str()) {
            return whole.to_owned();
        }
        let mask = match name {
            "hex" => "<hex>",
            "uuid" => "<uuid>",
            "tmp" => "<tmp>",
            "address" => "<address>",
            "port" => "<port>",
            "time" | "clock" => "<time>",
            _ => "<duration>",
        };
        format!("{}{mask}", &whole[..whole.len() - part.as_str().len()])
    };
    match regex.replace_all(&text, replacement) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => Cow::Owned(masked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterproof_sessions::event::Command;
    use jiff::Timestamp;

    fn in_folders(folders: &[&str]) -> Vec<SessionEvent> {
        let command =
            |folder: &&str| EventBody::Command(Command { cwd: Some((*folder).to_owned()), ..Command::default() });
        folders.iter().map(|folder| SessionEvent::captured(Timestamp::UNIX_EPOCH, command(folder))).collect()
    }

    #[test]
    fn what_differs_between_sessions_is_masked() {
        let events = in_folders(&["/home/ann/shop/src", "/home/ann/shop", "/tmp"]);
        let masker = Masker::new("session-4711", &events);
        for (text, masked) in [
            ("/home/ann/shop/a.py and /home/ann/shopping", "<workspace>/a.py and /home/ann/shopping"),
            ("cd /home/ann/shop/src", "cd <workspace>/src"),
            ("cat /tmp/tmp.Xy12/out.txt /private/tmp/b", "cat <tmp>/out.txt <tmp>"),
            ("[main 1a2b3c4] Fix 1234567 defaced", "[main <hex>] Fix 1234567 defaced"),
            ("session-4711 0190f3c2-7b1e-7a11-9c3d-000000000001", "<session> <uuid>"),
            ("http://127.0.0.1:45123/ at 0x7ffee4b1c0", "http://<port>/ at <address>"),
            ("sleep 5; wait 2.5s", "sleep 5; wait 2.5s"),
        ] {
            assert_eq!(masker.text(text), masked);
        }
        for (text, masked) in [
            ("4 passed in 0.03s", "4 passed in <duration>"),
            ("Ran 3 tests in 2s, 3 items", "Ran 3 tests in <duration>, 3 items"),
            ("2026-01-31T12:00:00.5Z 12:00:01 [INFO]", "<time> <time> [INFO]"),
            ("5 s of 12 ms and 3 files", "5 s of <duration> and 3 files"),
        ] {
            assert_eq!(masker.output(text), masked);
        }
    }

    #[test]
    fn a_deep_value_becomes_a_text() {
        let mut value = Value::from(1);
        for _ in 0..120 {
            value = Value::Array(vec![value]);
        }
        assert!(Masker::new("", &[]).value(&value).is_string());
    }
}
