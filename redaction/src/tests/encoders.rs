//! Encoders written for the tests alone, so that they share no mistake with the search.

use std::fmt::Write as _;

/// An encoder of texts, as a common library or command writes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoder {
    pub(super) name: &'static str,
    pub(super) encode: fn(&str) -> String,
}

fn each_byte(text: &str, encode: impl Fn(u8) -> String) -> String {
    text.bytes().map(encode).collect()
}

fn each_character(text: &str, encode: impl Fn(char) -> String) -> String {
    text.chars().map(encode).collect()
}

fn escaped(text: &str, encode: impl Fn(u8) -> String) -> String {
    each_byte(text, |byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            encode(byte)
        }
    })
}

fn in_lines(text: &str, width: usize, line_break: &str) -> String {
    let lines: Vec<_> = text.as_bytes().chunks(width).map(String::from_utf8_lossy).collect();
    lines.join(line_break)
}

pub(super) const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(char::from(alphabet[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

pub(super) fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

pub(super) fn percent(text: &str) -> String {
    escaped(text, |byte| format!("%{byte:02X}"))
}

fn units(text: &str, skip: fn(char) -> bool) -> String {
    each_character(text, |character| {
        if skip(character) {
            return character.to_string();
        }
        character.encode_utf16(&mut [0; 2]).iter().fold(String::new(), |text, unit| text + &format!("\\u{unit:04x}"))
    })
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn quoted_printable(text: &str) -> String {
    let encoded = each_byte(text, |byte| match byte {
        b' '..=b'<' | b'>'..=b'~' => char::from(byte).to_string(),
        _ => format!("={byte:02X}"),
    });
    // A soft line break may not be inside an escape; this width is a multiple of none, so break at plain characters only.
    let mut text = String::new();
    for (index, character) in encoded.chars().enumerate() {
        let before = encoded.as_bytes()[..index].iter().rev().take(2).any(|byte| *byte == b'=');
        if index > 0 && index % 7 == 0 && !before {
            text.push_str("=\r\n");
        }
        text.push(character);
    }
    text
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Every encoder. Those of whole texts (base64, hexadecimal) come last.
pub(super) const ENCODERS: [Encoder; 31] = [
    Encoder { name: "nothing", encode: str::to_owned },
    Encoder { name: "json", encode: json },
    Encoder { name: "json with slashes", encode: |text| json(text).replace('/', "\\/") },
    Encoder { name: "json in ascii", encode: |text| units(&json(text), |character| character.is_ascii()) },
    Encoder { name: "units", encode: |text| units(text, |_| false) },
    Encoder {
        name: "units in braces",
        encode: |text| each_character(text, |it| format!("\\u{{{:x}}}", u32::from(it))),
    },
    Encoder { name: "bytes after \\x", encode: |text| each_byte(text, |byte| format!("\\x{byte:02x}")) },
    Encoder { name: "octal", encode: |text| each_byte(text, |byte| format!("\\{byte:03o}")) },
    Encoder { name: "\\U", encode: |text| each_character(text, |it| format!("\\U{:08x}", u32::from(it))) },
    Encoder { name: "percent", encode: percent },
    Encoder { name: "form", encode: |text| percent(text).replace("%20", "+") },
    Encoder { name: "percent, all", encode: |text| each_byte(text, |byte| format!("%{byte:02x}")) },
    Encoder { name: "html", encode: html },
    Encoder { name: "decimal", encode: |text| each_character(text, |it| format!("&#{};", u32::from(it))) },
    Encoder { name: "decimal, padded", encode: |text| each_character(text, |it| format!("&#{:07};", u32::from(it))) },
    Encoder { name: "hexadecimal", encode: |text| each_character(text, |it| format!("&#x{:x};", u32::from(it))) },
    Encoder { name: "HEXADECIMAL", encode: |text| each_character(text, |it| format!("&#X{:04X};", u32::from(it))) },
    Encoder { name: "decimal without ;", encode: |text| each_character(text, |it| format!("&#{}", u32::from(it))) },
    Encoder { name: "quoted-printable", encode: quoted_printable },
    Encoder { name: "quoted-printable, all", encode: |text| each_byte(text, |byte| format!("={byte:02X}")) },
    Encoder { name: "sql", encode: |text| text.replace('\'', "''") },
    Encoder { name: "csv", encode: |text| text.replace('"', "\"\"") },
    Encoder { name: "shell", encode: |text| text.replace('\'', "'\\''") },
    Encoder {
        name: "backslashes",
        encode: |text| text.replace('\\', "\\\\").replace('\'', "\\'").replace('"', "\\\""),
    },
    Encoder { name: "hex", encode: hex },
    Encoder { name: "HEX", encode: |text| hex(text).to_uppercase() },
    Encoder { name: "base64", encode: |text| base64(text.as_bytes(), STANDARD) },
    Encoder { name: "base64 for URLs", encode: |text| base64(text.as_bytes(), FOR_URLS) },
    Encoder { name: "base64 after one byte", encode: |text| base64(format!(":{text}").as_bytes(), STANDARD) },
    Encoder { name: "base64 after two bytes", encode: |text| base64(format!("a:{text}").as_bytes(), FOR_URLS) },
    Encoder { name: "base64 in lines", encode: |text| in_lines(&base64(text.as_bytes(), STANDARD), 5, "\r\n") },
];
