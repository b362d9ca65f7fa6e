//! Forms of values that differ between any two runs: points in time, UUIDs and other ids.

use std::collections::HashMap;

use serde_json::Value;

use super::rule::Form;

/// Stands in a view for what a form leaves open. No JSON text of an agent's own begins like this by chance.
const TIMESTAMP: &str = "\u{0}timestamp";
const ID: &str = "\u{0}id";

/// Numbers that are taken for points in time: seconds from 2001 to 2286, and the same in milliseconds.
const SECONDS: std::ops::Range<f64> = 1e9..1e10;

/// Which id of new stands for which of the baseline. An id that both sides have stands for itself, any other for the one
/// that it meets first.
#[derive(Debug, Clone, Default)]
pub struct Renaming {
    anything_goes: bool,
    to_new: HashMap<String, String>,
    to_baseline: HashMap<String, String>,
}

impl Renaming {
    /// Lets every id that both sides have stand for itself.
    pub fn of(baseline: &[String], new: &[String]) -> Self {
        let mut renaming = Self::default();
        let known: std::collections::HashSet<_> = new.iter().collect();
        for id in baseline.iter().filter(|id| known.contains(id)) {
            renaming.meet(id, id);
        }
        renaming
    }

    /// A renaming that takes every id for every other.
    pub fn any() -> Self {
        Self { anything_goes: true, ..Self::default() }
    }

    /// True where the two stand for each other, or have stood for nothing before and from now on do.
    pub fn meet(&mut self, baseline: &str, new: &str) -> bool {
        if self.anything_goes {
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

/// What is left of a value without what its form leaves open, and the ids that were left out; `None` where the value has
/// nothing of that form.
pub(super) fn reduced(value: &Value, form: Form) -> Option<(Value, Vec<String>)> {
    match (form, value) {
        (Form::Timestamp, Value::Number(number)) => {
            let number = number.as_f64()?;
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
        // A number and the text of its digits are two ids.
        (Form::Id, Value::Number(id)) => Some((Value::from([ID]), vec![format!("\u{0}{id}")])),
        _ => None,
    }
}

/// A text in which everything of a form is replaced, and what that was, in lower case.
fn without(text: &str, token: &str, length: impl Fn(&[u8]) -> Option<usize>) -> (String, Vec<String>) {
    let (mut rest, mut found) = (String::with_capacity(text.len()), Vec::new());
    let (mut from, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let starts = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        // Only ASCII is of a form, so the slices lie between characters.
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

/// The bytes of the UUID (RFC 9562) that the text starts with.
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

/// The bytes of the point in time that the text starts with: a date and a time as ISO 8601 or RFC 3339 writes them, with or
/// without seconds, a fraction and an offset.
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

/// The bytes that a pattern takes of the start of a text: `d` is a digit, anything else itself.
fn pattern_length(text: &[u8], pattern: &str) -> Option<usize> {
    let taken = text.get(..pattern.len())?;
    let fits = |(byte, wanted): (&u8, u8)| if wanted == b'd' { byte.is_ascii_digit() } else { *byte == wanted };
    taken.iter().zip(pattern.bytes()).all(fits).then_some(pattern.len())
}

/// True where no letter or digit goes on.
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
    fn points_in_time_are_found_alone_and_within_a_text() {
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
    fn a_renaming_holds_both_ways() {
        let mut renaming = Renaming::of(&["kept".into(), "a".into()], &["b".into(), "kept".into()]);
        assert!(renaming.meet("kept", "kept") && !renaming.meet("kept", "b") && !renaming.meet("a", "kept"));
        assert!(renaming.meet("a", "b") && renaming.meet("a", "b"));
        assert!(!renaming.meet("a", "c") && !renaming.meet("d", "b"));
    }
}
