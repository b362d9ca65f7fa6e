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

/// JSON of encoders that escape what HTML gives a meaning, in either case of the digits.
fn json_for_html(text: &str, unit: fn(u32) -> String) -> String {
    each_character(&json(text), |it| match it {
        '<' | '>' | '&' | '\'' | '+' => unit(u32::from(it)),
        _ if it.is_ascii() => it.to_string(),
        _ => it.encode_utf16(&mut [0; 2]).iter().map(|it| unit(u32::from(*it))).collect(),
    })
}

fn html_with(text: &str, double: &str, single: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', double).replace('\'', single)
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Every encoder. Those of whole texts (base64, hexadecimal) come last.
pub(super) const ENCODERS: [Encoder; 56] = [
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
    Encoder {
        name: "json of Go",
        encode: |text| {
            json_for_html(text, |unit| format!("\\u{unit:04x}")).replace("\\u0027", "'").replace("\\u002b", "+")
        },
    },
    Encoder {
        name: "json of .NET",
        encode: |text| {
            json_for_html(&text.replace('"', "\u{1}"), |unit| format!("\\u{unit:04X}")).replace("\\u0001", "\\u0022")
        },
    },
    Encoder {
        name: "json of PHP for HTML",
        encode: |text| json_for_html(text, |unit| format!("\\u{unit:04X}")).replace("\\u002B", "+").replace('/', "\\/"),
    },
    Encoder { name: "UNITS", encode: |text| units(text, |_| false).to_uppercase().replace("\\U", "\\u") },
    Encoder { name: "specials after \\x", encode: |text| escaped(text, |byte| format!("\\x{byte:02x}")) },
    Encoder { name: "specials after \\X", encode: |text| escaped(text, |byte| format!("\\x{byte:02X}")) },
    Encoder { name: "BYTES after \\x", encode: |text| each_byte(text, |byte| format!("\\x{byte:02X}")) },
    Encoder { name: "percent, lower", encode: |text| escaped(text, |byte| format!("%{byte:02x}")) },
    Encoder { name: "form, lower", encode: |text| escaped(text, |byte| format!("%{byte:02x}")).replace("%20", "+") },
    Encoder {
        name: "form of browsers",
        encode: |text| {
            each_byte(text, |byte| match byte {
                b' ' => "+".to_owned(),
                b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
                _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
        },
    },
    Encoder {
        name: "component",
        encode: |text| {
            each_byte(text, |byte| {
                if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
        },
    },
    Encoder { name: "html of Go", encode: |text| html_with(text, "&#34;", "&#39;") },
    Encoder { name: "html of PHP", encode: |text| html_with(text, "&quot;", "&#039;") },
    Encoder { name: "html of Python", encode: |text| html_with(text, "&quot;", "&#x27;") },
    Encoder { name: "xml", encode: |text| html_with(text, "&quot;", "&apos;") },
    Encoder {
        name: "hexadecimal, padded",
        encode: |text| each_character(text, |it| format!("&#x{:06x};", u32::from(it))),
    },
    Encoder {
        name: "hexadecimal in upper case",
        encode: |text| each_character(text, |it| format!("&#X{:X};", u32::from(it))),
    },
    Encoder { name: "quoted-printable, lower", encode: |text| each_byte(text, |byte| format!("={byte:02x}")) },
    Encoder {
        name: "quoted-printable in one line",
        encode: |text| {
            each_byte(text, |byte| match byte {
                b' '..=b'<' | b'>'..=b'~' => char::from(byte).to_string(),
                _ => format!("={byte:02X}"),
            })
        },
    },
    Encoder {
        name: "mail header",
        encode: |text| escaped(text, |byte| if byte == b' ' { "_".to_owned() } else { format!("={byte:02X}") }),
    },
    Encoder { name: "shell of Python", encode: |text| text.replace('\'', "'\"'\"'") },
    Encoder {
        name: "double quotes of shells",
        encode: |text| {
            each_character(text, |it| if "\"\\$`".contains(it) { format!("\\{it}") } else { it.to_string() })
        },
    },
    Encoder {
        name: "words of shells",
        encode: |text| {
            each_character(text, |it| {
                if it.is_ascii_punctuation() || it == ' ' { format!("\\{it}") } else { it.to_string() }
            })
        },
    },
    Encoder { name: "octal with zero", encode: |text| each_byte(text, |byte| format!("\\0{byte:03o}")) },
    Encoder { name: "hex in lines", encode: |text| in_lines(&hex(text), 6, "\n") },
    Encoder { name: "hex", encode: hex },
    Encoder { name: "HEX", encode: |text| hex(text).to_uppercase() },
    Encoder { name: "base64", encode: |text| base64(text.as_bytes(), STANDARD) },
    Encoder { name: "base64 for URLs", encode: |text| base64(text.as_bytes(), FOR_URLS) },
    Encoder { name: "base64 after one byte", encode: |text| base64(format!(":{text}").as_bytes(), STANDARD) },
    Encoder { name: "base64 after two bytes", encode: |text| base64(format!("a:{text}").as_bytes(), FOR_URLS) },
    Encoder { name: "base64 in lines", encode: |text| in_lines(&base64(text.as_bytes(), STANDARD), 5, "\r\n") },
];
