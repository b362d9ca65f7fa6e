//! Forms of values that differ between any two runs: timestamps, UUIDs and other ids.

use std::collections::HashMap;

use serde_json::Value;

use super::rule::Form;

/// Replaces a normalised value in a view. The NUL prefix makes a collision with an agent's own text unlikely.
const TIMESTAMP: &str = "\u{0}timestamp";
const ID: &str = "\u{0}id";

/// Numbers that count as timestamps: seconds from 2001 to 2286, and the same in milliseconds.
const SECONDS: std::ops::Range<f64> = 1e9..1e10;

/// A one-to-one mapping between the ids of both sides. An id that both sides have maps to itself; any other id maps to the
/// first id that it is compared with.
#[derive(Debug, Clone, Default)]
pub struct Renaming {
    matches_all: bool,
    to_new: HashMap<String, String>,
    to_baseline: HashMap<String, String>,
}

impl Renaming {
    /// Maps every id that both sides have to itself.
    pub fn new(baseline: &[String], new: &[String]) -> Self {
        let mut renaming = Self::default();
        // An id that both sides have names the same thing, so that it must not be mapped to another one.
        let known: std::collections::HashSet<_> = new.iter().collect();
        for id in baseline.iter().filter(|id| known.contains(id)) {
            renaming.matches(id, id);
        }
        renaming
    }

    /// A renaming under which any two ids match.
    pub fn any() -> Self {
        Self { matches_all: true, ..Self::default() }
    }

    /// True if the two ids map to each other. If neither is mapped yet, maps them to each other.
    pub fn matches(&mut self, baseline: &str, new: &str) -> bool {
        if self.matches_all {
            return true;
        }
        match (self.to_new.get(baseline), self.to_baseline.get(new)) {
            (None, None) => {
                self.to_new.insert(baseline.to_owned(), new.to_owned());
                self.to_baseline.insert(new.to_owned(), baseline.to_owned());
                true
            }
            (Some(there), Some(_)) => there == new,
            _ => false,
        }
    }
}

/// Replaces everything of a form in a value by a placeholder, and returns the replaced ids. `None` if the value contains
/// nothing of that form.
pub(super) fn reduced(value: &Value, form: Form) -> Option<(Value, Vec<String>)> {
    match (form, value) {
        (Form::Timestamp, Value::Number(number)) => {
            let number = number.as_f64()?;
            // Narrow ranges, so that amounts and counters are not taken for times.
            let is_time = SECONDS.contains(&number) || SECONDS.contains(&(number / 1000.0));
            is_time.then(|| (Value::from(TIMESTAMP), Vec::new()))
        }
        (Form::Timestamp, Value::String(text)) => {
            let (rest, found) = without(text, TIMESTAMP, timestamp_length);
            (!found.is_empty()).then(|| (Value::from(rest), Vec::new()))
        }
        (Form::Uuid, Value::String(text)) => {
            let (rest, found) = without(text, ID, uuid_length);
            (!found.is_empty()).then(|| (Value::from(rest), found))
        }
        (Form::Id, Value::String(id)) => Some((Value::from(ID), vec![id.clone()])),
        // The number 5 and the string "5" are different ids.
        (Form::Id, Value::Number(id)) => Some((Value::from([ID]), vec![format!("\u{0}{id}")])),
        _ => None,
    }
}

/// Replaces everything of a form in a text, and returns what was replaced, in lower case.
fn without(text: &str, token: &str, length: impl Fn(&[u8]) -> Option<usize>) -> (String, Vec<String>) {
    let (mut rest, mut found) = (String::with_capacity(text.len()), Vec::new());
    let (mut from, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let starts = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        // All forms are ASCII, so every slice starts and ends at a character boundary.
        match length(&bytes[at..]).filter(|_| starts) {
            Some(length) => {
                rest.push_str(&text[from..at]);
                rest.push_str(token);
                found.push(text[at..at + length].to_ascii_lowercase());
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    rest.push_str(&text[from..]);
    (rest, found)
}

/// Returns the length of the UUID (RFC 9562) at the start of the text.
fn uuid_length(text: &[u8]) -> Option<usize> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut at = 0;
    for (index, group) in GROUPS.into_iter().enumerate() {
        if index > 0 {
            (text.get(at) == Some(&b'-')).then_some(())?;
            at += 1;
        }
        text.get(at..at + group)?.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += group;
    }
    ends(text, at).then_some(at)
}

/// Returns the length of the timestamp at the start of the text: a date and a time as in ISO 8601 or RFC 3339, with optional
/// seconds, fraction and offset.
fn timestamp_length(text: &[u8]) -> Option<usize> {
    let mut at = pattern_length(text, "dddd-dd-dd")?;
    matches!(text.get(at), Some(b'T' | b't' | b' ')).then_some(())?;
    at += 1;
    at += pattern_length(&text[at..], "dd:dd")?;
    at += pattern_length(&text[at..], ":dd").unwrap_or(0);
    if matches!(text.get(at), Some(b'.' | b',')) {
        let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at += if digits > 0 { digits + 1 } else { 0 };
    }
    at += match text.get(at) {
        Some(b'Z' | b'z') => 1,
        Some(b'+' | b'-') => {
            let offset = &text[at + 1..];
            ["dd:dd", "dddd", "dd"].iter().find_map(|form| pattern_length(offset, form)).map_or(0, |length| length + 1)
        }
        _ => 0,
    };
    ends(text, at).then_some(at)
}

/// Returns the pattern's length if the text starts with it. `d` matches a digit, any other byte itself.
fn pattern_length(text: &[u8], pattern: &str) -> Option<usize> {
    let taken = text.get(..pattern.len())?;
    let fits = |(byte, wanted): (&u8, u8)| if wanted == b'd' { byte.is_ascii_digit() } else { *byte == wanted };
    taken.iter().zip(pattern.bytes()).all(fits).then_some(pattern.len())
}

fn ends(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|next| !next.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same(form: Form, old: &Value, new: &Value) -> bool {
        match (reduced(old, form), reduced(new, form)) {
            (Some((old, _)), Some((new, _))) => old == new,
            _ => old == new,
        }
    }

    #[test]
    fn timestamps_are_found_alone_and_within_a_text() {
        for (old, new) in [
            (json!("2026-01-31T12:00:00Z"), json!("2027-02-01 08:15")),
            (json!("seen 2026-01-31T12:00:00.123+01:00, done"), json!("seen 2026-01-31T12:00Z, done")),
            (json!(1_700_000_000), json!(1_800_000_000_000_u64)),
        ] {
            assert!(same(Form::Timestamp, &old, &new), "{old} {new}");
        }
        for (old, new) in [
            (json!("2026-01-31"), json!("2026-02-01")),
            (json!(5), json!(6)),
            (json!("at 2026-01-31T12:00:00Z"), json!("on 2026-01-31T12:00:00Z")),
            (json!("2026-01-31T12:00:00Z"), json!("never")),
        ] {
            assert!(!same(Form::Timestamp, &old, &new), "{old} {new}");
        }
    }

    #[test]
    fn uuids_are_found_alone_and_within_a_text() {
        let (one, other) = ("0f8fad5b-d9cb-469f-a165-70867728950e", "7C9E6679-7425-40DE-944B-E07FC1F90AE7");
        let (rest, ids) = reduced(&json!(format!("id {one} and {other}!")), Form::Uuid).unwrap();
        assert_eq!(ids, [one.to_owned(), other.to_ascii_lowercase()]);
        assert_eq!(rest, json!(format!("id {ID} and {ID}!")));
        assert_eq!(reduced(&json!(format!("x{one}")), Form::Uuid), None);
        assert_eq!(reduced(&json!(format!("ä {one}0")), Form::Uuid), None);
    }

    #[test]
    fn a_renaming_is_one_to_one() {
        let mut renaming = Renaming::new(&["kept".into(), "a".into()], &["b".into(), "kept".into()]);
        assert!(renaming.matches("kept", "kept") && !renaming.matches("kept", "b") && !renaming.matches("a", "kept"));
        assert!(renaming.matches("a", "b") && renaming.matches("a", "b"));
        assert!(!renaming.matches("a", "c") && !renaming.matches("d", "b"));
    }
}
