//! JSON documents for standard output.

use std::fmt::Write as _;

use serde::Serialize;

/// Serialises a document as indented JSON without control characters, which a terminal would interpret. They occur only in
/// strings, where their escapes are equivalent.
pub(crate) fn to_json(document: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(document).unwrap_or_default();
    safe_json(&json) + "\n"
}

/// Serialises a document as one line of JSON without control characters, and without a newline.
pub(crate) fn to_json_line(document: &impl Serialize) -> String {
    safe_json(&serde_json::to_string(document).unwrap_or_default())
}

/// Returns JSON with the same meaning and without characters that steer a terminal.
pub(crate) fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if c != '\n' && counterproof_artifact::is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    // The older syntax of workflow commands works anywhere in a line. Only a string can have this text.
    safe.replace("##[", "#\\u0023[")
}
