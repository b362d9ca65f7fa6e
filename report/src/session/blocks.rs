//! Texts of any length, arguments and patches in displayable form. Nothing is left out: what is long is folded.

use counterproof_artifact::one_line;
use serde_json::Value;

use crate::view::display::{number, visible};

/// A text with more lines or bytes than this is folded.
const OPEN_LINES: usize = 24;
const OPEN_BYTES: usize = 4_000;

/// Longest piece of a text that a browser lays out at once, in bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// Longest first line of a folded text, in characters.
const FIRST_LINE: usize = 100;

/// A patch with more lines than this is folded.
const OPEN_PATCH_LINES: usize = 40;

/// A whole text.
#[derive(Debug, Default)]
pub(super) struct TextView {
    /// The text in pieces: a browser skips those out of sight. Empty for an empty text.
    pub(super) pieces: Vec<String>,
    /// How long it is, and how it begins; empty for a text that is not folded.
    pub(super) fold: String,
}

impl TextView {
    pub(super) fn new(text: &str) -> Self {
        let lines = text.lines().count();
        let is_long = lines > OPEN_LINES || text.len() > OPEN_BYTES;
        let fold = if is_long { format!("{}: {}", size(text.len(), lines), first_line(text)) } else { String::new() };
        Self { pieces: pieces(text), fold }
    }

    /// Creates a text that is folded whatever its length is.
    pub(super) fn folded(text: &str) -> Self {
        let mut view = Self::new(text);
        if view.fold.is_empty() && !text.is_empty() {
            view.fold = first_line(text);
        }
        view
    }

    pub(super) fn json(value: &Value) -> Self {
        Self::new(&pretty(value))
    }

    /// Creates a folded value with its beginning on one line.
    pub(super) fn folded_json(value: &Value) -> Self {
        Self { fold: one_line(&value.to_string(), FIRST_LINE), ..Self::new(&pretty(value)) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

fn first_line(text: &str) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let short = one_line(first.trim(), FIRST_LINE);
    if short.is_empty() { "blank".to_owned() } else { short }
}

fn size(bytes: usize, lines: usize) -> String {
    let lines = if lines == 1 { "1 line".to_owned() } else { format!("{} lines", number(lines as u64)) };
    let bytes = match bytes {
        0..10_000 => return lines,
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    format!("{lines}, {bytes}")
}

/// Splits a text, at the ends of lines where there are some.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let most = rest.floor_char_boundary(PIECE_BYTES);
        let end = if most == rest.len() { most } else { rest[..most].rfind('\n').map_or(most, |place| place + 1) };
        pieces.push(visible(&rest[..end]));
        rest = &rest[end..];
    }
    pieces
}

/// An argument of a call.
#[derive(Debug)]
pub(super) struct ArgumentView {
    pub(super) name: String,
    pub(super) text: TextView,
}

/// Returns the arguments of a call. Texts are shown as they are, other values as JSON.
pub(super) fn arguments(arguments: &Value) -> Vec<ArgumentView> {
    let view = |name: &str, value: &Value| {
        let text = value.as_str().map_or_else(|| TextView::json(value), TextView::new);
        ArgumentView { name: visible(name), text }
    };
    match arguments {
        Value::Null => Vec::new(),
        Value::Object(fields) => fields.iter().map(|(name, value)| view(name, value)).collect(),
        other => vec![view("", other)],
    }
}

/// Returns the argument that says most about a call, on one line.
pub(super) fn argument_line(arguments: &Value, longest: usize) -> String {
    let names = ["command", "cmd", "path", "file_path", "filename", "pattern", "query", "url", "description", "prompt"];
    let named = names.into_iter().find_map(|name| arguments[name].as_str());
    let first = || arguments.as_object().and_then(|fields| fields.values().find_map(Value::as_str));
    let text = named.or_else(first).or_else(|| arguments.as_str()).map(str::to_owned);
    let list = || {
        arguments["command"]
            .as_array()
            .map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    };
    let text = list().or(text).unwrap_or_default();
    one_line(text.trim(), longest)
}

/// A unified diff, with the lines of one kind together.
#[derive(Debug, Default)]
pub(super) struct PatchView {
    pub(super) parts: Vec<PatchPart>,
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) is_open: bool,
}

#[derive(Debug)]
pub(super) struct PatchPart {
    /// `added`, `removed`, `place`, or empty for the lines around.
    pub(super) class: &'static str,
    pub(super) text: String,
}

impl PatchView {
    pub(super) fn new(patch: &str) -> Self {
        let mut view =
            Self { is_open: patch.lines().count() <= OPEN_PATCH_LINES && patch.len() <= OPEN_BYTES, ..Self::default() };
        let mut is_header = true;
        for line in patch.split_inclusive('\n') {
            // A removed line can look like the header of a file: `-- a` in SQL.
            let class = match line.as_bytes().first() {
                Some(b'@') => "place",
                _ if is_header => "place",
                Some(b'+') => "added",
                Some(b'-') => "removed",
                _ if line.starts_with("diff ") => "place",
                _ => "",
            };
            is_header = (is_header || line.starts_with("diff ")) && !line.starts_with('@');
            match class {
                "added" => view.added += 1,
                "removed" => view.removed += 1,
                _ => {}
            }
            let text = visible(line);
            match view.parts.last_mut() {
                // Long runs stay apart, for the browser to skip those out of sight.
                Some(last) if last.class == class && last.text.len() < PIECE_BYTES => last.text.push_str(&text),
                _ => view.parts.push(PatchPart { class, text }),
            }
        }
        view
    }

    /// Returns the number of added and removed lines: `+3 −1`.
    pub(super) fn counts(&self) -> String {
        format!("+{} −{}", number(self.added), number(self.removed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_is_folded_and_whole() {
        let text = "line\n".repeat(100_000);
        let view = TextView::new(&text);
        assert_eq!(view.pieces.concat(), text);
        assert_eq!(view.fold, "100\u{202f}000 lines, 500 kB: line");
        assert!(TextView::new("short").fold.is_empty() && TextView::new("").is_empty());
        let one_line = "ä".repeat(50_000);
        assert_eq!(TextView::new(&one_line).pieces.concat(), one_line);
    }

    #[test]
    fn lines_of_a_patch_have_their_kind() {
        let view = PatchView::new("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- not a header\n+new\n\\ No newline");
        let kinds: Vec<_> = view.parts.iter().map(|part| part.class).collect();
        assert_eq!(kinds, ["place", "", "removed", "added", ""]);
        assert_eq!(view.counts(), "+1 −1");
    }

    #[test]
    fn texts_among_arguments_keep_their_lines() {
        let shown = arguments(&json!({"command": "a\nb", "n": {"x": 1}}));
        assert_eq!(shown[0].text.pieces, ["a\nb"]);
        assert_eq!(shown[1].text.pieces, ["{\n  \"x\": 1\n}"]);
        assert_eq!(argument_line(&json!({"z": "no", "command": "ls\n-l"}), 10), "ls -l");
        assert_eq!(argument_line(&json!({"command": ["ls", "-l"]}), 10), "ls -l");
        assert_eq!(argument_line(&json!("oops"), 10), "oops");
    }
}
