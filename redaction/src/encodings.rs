//! Encodes a value as common libraries do: its base64 digits, and the texts to search for within base64 and hexadecimal.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

/// The base64 digits of a value that starts at some byte of a larger text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base64 {
    /// True where a digit before the known ones encodes bits of the value and of the preceding byte.
    pub(super) shares_first: bool,
    /// The digits that depend on the value alone, in the standard alphabet.
    pub(super) digits: Vec<u8>,
    /// True where a digit after the known ones encodes bits of the value and of the following byte.
    pub(super) shares_last: bool,
}

/// Returns the digits of a value for each position modulo three.
pub(super) fn base64(value: &[u8]) -> [Base64; 3] {
    [0, 1, 2].map(|offset| base64_at(value, offset))
}

fn base64_at(value: &[u8], offset: usize) -> Base64 {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Bits, not bytes: the value starts within a group of three bytes, and each digit encodes six bits.
    let bit = |index: usize| {
        let byte = (index / 8).checked_sub(offset).and_then(|at| value.get(at)).copied().unwrap_or_default();
        byte >> (7 - index % 8) & 1
    };
    let (start, end) = (offset * 8, (offset + value.len()) * 8);
    let digit = |index: usize| {
        let sextet = (index * 6..index * 6 + 6).fold(0, |sextet, at| sextet << 1 | bit(at));
        ALPHABET[usize::from(sextet)]
    };
    Base64 {
        shares_first: !start.is_multiple_of(6),
        digits: (start.div_ceil(6)..end / 6).map(digit).collect(),
        shares_last: !end.is_multiple_of(6),
    }
}

/// Returns the digits of a value in lower case hexadecimal.
pub(super) fn hexadecimal(value: &[u8]) -> String {
    each_byte(value, |byte| format!("{byte:02x}"))
}

/// Returns every text that one common encoder makes of a value, except the value itself.
pub(super) fn all(value: &str) -> BTreeSet<String> {
    let mut texts = escapes_of_json(value);
    texts.extend(escapes_of_bytes(value));
    texts.extend(references(value));
    texts.extend(quotes(value));
    let digits = base64(value.as_bytes()).map(|it| String::from_utf8_lossy(&it.digits).into_owned());
    texts.extend(digits.iter().map(|digits| digits.replace('+', "-").replace('/', "_")));
    texts.extend(digits);
    let hexadecimal = hexadecimal(value.as_bytes());
    texts.extend([hexadecimal.to_uppercase(), hexadecimal]);
    texts.remove(value);
    texts
}

fn escapes_of_json(value: &str) -> BTreeSet<String> {
    let quoted = Value::from(value).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    let with_slashes = json.replace('/', "\\/");
    let in_ascii = |text: &str| each_character(text, |it| if it.is_ascii() { it.to_string() } else { units(it) });
    let all = each_character(value, units);
    [in_ascii(&json), in_ascii(&with_slashes), json, with_slashes, all].into()
}

fn units(character: char) -> String {
    let mut buffer = [0; 2];
    character.encode_utf16(&mut buffer).iter().fold(String::new(), |mut text, unit| {
        let _ = write!(text, "\\u{unit:04x}");
        text
    })
}

/// Percent-encoding, quoted-printable, and `\x`: each for the bytes that need it, and for all bytes.
fn escapes_of_bytes(value: &str) -> BTreeSet<String> {
    let unless = |kept: &'static [u8], escape: fn(u8) -> String| {
        each_byte(value.as_bytes(), |byte| {
            let keeps = byte.is_ascii_alphanumeric() || kept.contains(&byte);
            if keeps { char::from(byte).to_string() } else { escape(byte) }
        })
    };
    let all = |escape: fn(u8) -> String| each_byte(value.as_bytes(), escape);
    // Names of the sets: RFC 3986, `encodeURIComponent`, forms, and what quoted-printable leaves as it is.
    let (rfc, component, form) = (b"-_.~".as_slice(), b"-_.~!'()*".as_slice(), b"-_.*".as_slice());
    let printable = b" !\"#$%&'()*+,-./:;<>?@[\\]^_`{|}~".as_slice();
    let form = unless(form, |byte| format!("%{byte:02X}"));
    [
        unless(rfc, |byte| format!("%{byte:02X}")),
        unless(rfc, |byte| format!("%{byte:02x}")),
        unless(component, |byte| format!("%{byte:02X}")),
        unless(rfc, |byte| format!("%{byte:02X}")).replace("%20", "+"),
        form.replace("%20", "+"),
        unless(printable, |byte| format!("={byte:02X}")),
        unless(printable, |byte| format!("\\x{byte:02x}")),
        all(|byte| format!("%{byte:02X}")),
        all(|byte| format!("%{byte:02x}")),
        all(|byte| format!("={byte:02X}")),
        all(|byte| format!("\\x{byte:02x}")),
        all(|byte| format!("\\x{byte:02X}")),
    ]
    .into()
}

/// References of HTML and XML: for the characters that need one, and for all characters.
fn references(value: &str) -> BTreeSet<String> {
    let markup = value.replace('&', "&amp;").replace('<', "&lt;");
    let closed = markup.replace('>', "&gt;");
    let quoted = [markup, closed].map(|text| text.replace('"', "&quot;"));
    let mut texts: BTreeSet<String> = ["'", "&#39;", "&#x27;", "&apos;"]
        .iter()
        .flat_map(|single| quoted.iter().map(|text| text.replace('\'', single)))
        .collect();
    let all = |reference: fn(u32) -> String| each_character(value, |it| reference(u32::from(it)));
    texts.extend([
        all(|code| format!("&#{code};")),
        all(|code| format!("&#x{code:x};")),
        all(|code| format!("&#x{code:X};")),
    ]);
    texts
}

/// Quotes as SQL, CSV, shells and programming languages write them.
fn quotes(value: &str) -> [String; 4] {
    [
        value.replace('\'', "''"),
        value.replace('"', "\"\""),
        value.replace('\'', r"'\''"),
        value.replace('\\', r"\\").replace('\'', r"\'").replace('"', "\\\""),
    ]
}

fn each_byte(bytes: &[u8], encode: impl Fn(u8) -> String) -> String {
    bytes.iter().map(|byte| encode(*byte)).collect()
}

fn each_character(text: &str, encode: impl Fn(char) -> String) -> String {
    text.chars().map(encode).collect()
}
