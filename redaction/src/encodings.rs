//! The forms of a configured value: its variants, its base64 and hexadecimal, and the expressions that match wherever one of its forms may
//! start. They match more than that: the first few characters decide, and [`Needle::follow`](crate::value_search) checks the rest.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::matcher::{self, Encoders};
use crate::redactor::SHORTEST;
use crate::value_search::{Content, Digits, LONGEST_COMPOSED, Needle};

/// The base64 digits of a value that starts at some byte of a larger text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base64 {
    /// True if a digit before the known ones encodes bits of the value and of the preceding byte.
    pub(super) shares_first: bool,
    /// The digits that depend on the value alone, in the standard alphabet.
    pub(super) digits: Vec<u8>,
    /// True if a digit after the known ones encodes bits of the value and of the following byte.
    pub(super) shares_last: bool,
}

/// Returns the digits of a value for each position modulo three.
pub(super) fn base64(value: &[u8]) -> [Base64; 3] {
    // The digits depend on where the value starts within a group of three bytes.
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
        // Only the digits all of whose bits belong to the value.
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
    // Some encoders, such as PHP's, escape slashes, and some, such as Python's, everything beyond ASCII.
    let with_slashes = json.replace('/', "\\/");
    let in_ascii = |text: &str| each_character(text, |it| if it.is_ascii() { it.to_string() } else { units(it) });
    let all = each_character(value, units);
    // In upper case, as .NET writes them.
    let in_upper_case = all.to_uppercase().replace("\\U", "\\u");
    [in_ascii(&json), in_ascii(&with_slashes), json, with_slashes, all, in_upper_case].into()
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
        unless(rfc, |byte| format!("%{byte:02x}")).replace("%20", "+"),
        unless(printable, |byte| format!("={byte:02X}")),
        unless(printable, |byte| format!("\\x{byte:02x}")),
        unless(printable, |byte| format!("\\x{byte:02X}")),
        unless(rfc, |byte| format!("\\x{byte:02x}")),
        unless(rfc, |byte| format!("\\x{byte:02X}")),
        all(|byte| format!("%{byte:02X}")),
        all(|byte| format!("%{byte:02x}")),
        all(|byte| format!("={byte:02X}")),
        all(|byte| format!("={byte:02x}")),
        all(|byte| format!("\\x{byte:02x}")),
        all(|byte| format!("\\x{byte:02X}")),
    ]
    .into()
}

/// References of HTML and XML: for the characters that need one, and for all characters.
fn references(value: &str) -> BTreeSet<String> {
    let markup = value.replace('&', "&amp;").replace('<', "&lt;");
    let closed = markup.replace('>', "&gt;");
    let quoted = [markup, closed].map(|text| ["&quot;", "&#34;"].map(|double| text.replace('"', double)));
    let quoted = quoted.as_flattened();
    let mut texts: BTreeSet<String> = ["'", "&#39;", "&#039;", "&#x27;", "&apos;"]
        .iter()
        .flat_map(|single| quoted.iter().map(|text| text.replace('\'', single)))
        .collect();
    let all = |reference: fn(u32) -> String| each_character(value, |it| reference(u32::from(it)));
    texts.extend([
        all(|code| format!("&#{code};")),
        all(|code| format!("&#x{code:x};")),
        all(|code| format!("&#x{code:X};")),
        all(|code| format!("&#X{code:X};")),
    ]);
    texts
}

/// Quotes as SQL, CSV, shells and programming languages write them.
fn quotes(value: &str) -> [String; 6] {
    [
        value.replace('\'', "''"),
        value.replace('"', "\"\""),
        value.replace('\'', r"'\''"),
        value.replace('\'', "'\"'\"'"),
        each_character(
            value,
            |it| {
                if it.is_ascii_punctuation() || it == ' ' { format!("\\{it}") } else { it.to_string() }
            },
        ),
        value.replace('\\', r"\\").replace('\'', r"\'").replace('"', "\\\""),
    ]
}

fn each_byte(bytes: &[u8], encode: impl Fn(u8) -> String) -> String {
    bytes.iter().map(|byte| encode(*byte)).collect()
}

fn each_character(text: &str, encode: impl Fn(char) -> String) -> String {
    text.chars().map(encode).collect()
}

/// Minimum length of a single line of a multi-line value that is redacted, in bytes. Shorter lines occur in unrelated text.
pub const SHORTEST_LINE: usize = 8;

/// Longest value whose lines are redacted one by one, in bytes.
const LONGEST_IN_LINES: usize = LONGEST_COMPOSED;

/// The texts to search for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variants<'a> {
    /// The values themselves, and their variants with all lines.
    pub(crate) whole: BTreeSet<std::borrow::Cow<'a, str>>,
    pub(crate) lines: BTreeSet<&'a str>,
}

impl<'a> Variants<'a> {
    /// Returns the variants of values. Texts shorter than [`SHORTEST`] are left out.
    pub(crate) fn new(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut variants = Self::default();
        values.into_iter().for_each(|value| variants.add(value));
        variants.whole.retain(|text| text.len() >= SHORTEST);
        let whole = &variants.whole;
        // A line that is a value itself is searched in all forms already.
        variants.lines.retain(|line| !whole.contains(*line));
        variants
    }

    fn add(&mut self, value: &'a str) {
        // Programs trim what they read, so a final line end is rarely echoed.
        let trimmed = value.trim();
        self.whole.extend([value.into(), trimmed.into()]);
        if !trimmed.contains(['\n', '\r']) {
            return;
        }
        let with_lf = trimmed.replace("\r\n", "\n").replace('\r', "\n");
        self.whole.extend([with_lf.replace('\n', "\r\n").into(), with_lf.into()]);
        if value.len() <= LONGEST_IN_LINES {
            let lines = trimmed.split(['\n', '\r']).map(str::trim);
            self.lines.extend(lines.filter(|line| line.len() >= SHORTEST_LINE));
        }
    }
}

/// A line break, also escaped.
const LINE_BREAK: &str =
    r"(?:[\r\n]|\\{1,8}(?:[rn]|x0|u000)|[%=](?:25)?0[aAdD]|=\r?\n|&#0{0,5}(?:1[03]|[xX]0{0,3}[aAdD]))";

/// A line break in base64 of an encoded form.
const LITERAL_BREAK: &str = r"(?:[\r\n]|\\{1,2}(?:[rn]|u000|x0)|[%=]0[aAdD]|=\r?\n|&#(?:1[03]|[xX][aAdD]))";

/// A soft line break of quoted-printable, also escaped.
const SOFT_BREAK: &str = r"(?:=(?:\r?\n|\\{1,8}[rn]|[%=&])|[%=](?:25)?3[dD]|\\{1,8}(?:x|u00|u\{)3[dD]|&(?:amp;)?(?:#0{0,7}(?:61|[xX]0{0,5}3[dD])|equals))";

/// The start of an escape of anything.
const INTRODUCER: &str = r"[%=\\&]";

/// An escape that a soft line break divides.
const BROKEN_ESCAPE: &str = r"[%=\\&][#0-9A-Za-z{]{0,9}=[\r\n]";

/// Returns the patterns for the starts of these forms.
pub(super) fn patterns(needles: &[Needle]) -> BTreeSet<String> {
    let mut patterns: BTreeSet<String> = needles.iter().map(literal_start).collect();
    let firsts = |wanted: fn(&Needle) -> bool| -> BTreeSet<char> {
        needles.iter().filter(|needle| wanted(needle)).flat_map(|needle| needle.alternatives(0)).collect()
    };
    let escaped = firsts(|needle| needle.encoders() != Encoders::None);
    if !escaped.is_empty() {
        patterns.insert(escaped_start(&escaped));
    }
    // A line break after the first digit is one pattern for all forms: most digits are the first of some form.
    let digits = firsts(|needle| needle.content == Content::Encoded);
    if !digits.is_empty() {
        patterns.insert(format!("[{}]{LITERAL_BREAK}", digits.into_iter().map(literal).collect::<String>()));
    }
    patterns.insert(BROKEN_ESCAPE.to_owned());
    patterns
}

/// Returns a pattern for a form whose first character is literal.
fn literal_start(needle: &Needle) -> String {
    let one_of = |index: usize| {
        let [one, other] = needle.alternatives(index).map(literal);
        if one == other { one } else { format!("(?:{one}|{other})") }
    };
    match (needle.digits, needle.content) {
        (Digits::Text, _) => text_start(&needle.characters),
        // The pattern for all forms covers a line break after the first digit.
        (_, Content::Encoded) => {
            let [one, two, three, four] = [0, 1, 2, 3].map(one_of);
            format!("{one}{two}(?:{LITERAL_BREAK}|{three}(?:{LITERAL_BREAK}|{four}))")
        }
        (digits, Content::Value) => {
            // An escape of `+` or `/` within base64.
            let next = |index: usize| {
                let special = needle.characters[index] == '+' || needle.characters[index] == '/';
                if special { format!("{}|{INTRODUCER}", one_of(index)) } else { one_of(index) }
            };
            let [one, two, three, four] = [one_of(0), next(1), next(2), next(3)];
            let after_byte = if digits == Digits::Hexadecimal { "|[ :-]" } else { "" };
            format!("{one}(?:{LINE_BREAK}|(?:{two})(?:{LINE_BREAK}{after_byte}|(?:{three})(?:{LINE_BREAK}|{four})))")
        }
    }
}

/// Returns a pattern for the first characters of a value. A character that no encoder changes is followed by the next one.
fn text_start(characters: &[char]) -> String {
    let mut pattern = String::new();
    for character in characters.iter().take(3).rev() {
        let start = match character {
            ' ' => "(?: |\\+|_)".to_owned(),
            _ if character.is_ascii_alphanumeric() => literal(*character),
            _ => format!(r"\\{{0,8}}{}", literal(*character)),
        };
        pattern = if pattern.is_empty() { start } else { format!("{start}(?:{pattern})") };
        if !std::ptr::eq(character, &raw const characters[0]) {
            let escape = if character.is_ascii_alphanumeric() { SOFT_BREAK } else { INTRODUCER };
            pattern = format!("{pattern}|{escape}");
        }
        if matches!(character, '"' | '\'') {
            // Doubled, or closed and opened again.
            pattern = format!(r"{pattern}|{}[\x22'\\%&=]", literal(*character));
        }
    }
    pattern
}

/// Returns a pattern for escapes of these characters.
fn escaped_start(firsts: &BTreeSet<char>) -> String {
    let joined = |part: fn(char) -> Option<String>| -> String {
        let parts: BTreeSet<String> = firsts.iter().filter_map(|character| part(*character)).collect();
        parts.into_iter().collect::<Vec<_>>().join("|")
    };
    let bytes = joined(|character| Some(hexadecimal_candidates(&format!("{:02x}", first_byte(character)))));
    let octal = joined(|character| Some(format!("{:03o}", first_byte(character))));
    let units =
        joined(|character| Some(hexadecimal_candidates(&format!("{:04x}", character.encode_utf16(&mut [0; 2])[0]))));
    let numbers = joined(|character| Some(hexadecimal_candidates(&format!("{:x}", u32::from(character)))));
    let decimals = joined(|character| Some(u32::from(character).to_string()));
    let names = joined(|character| matcher::html_name(character).map(str::to_owned));
    let short = joined(short_escape);
    let after_backslash = format!(
        r"x(?:{bytes})|u(?:{units})|u\{{0{{0,6}}(?:{numbers})|U0{{2,7}}(?:{numbers})|0?(?:{octal}){}",
        if short.is_empty() { String::new() } else { format!("|{short}") }
    );
    let names = if names.is_empty() { names } else { format!("|{names}") };
    let after_ampersand = format!(r"#0{{0,7}}(?:{decimals})|#[xX]0{{0,7}}(?:{numbers}){names}");
    let once = |byte: u8| {
        let name = matcher::html_name(char::from(byte)).unwrap_or_default();
        // A backslash before itself is a longer run of backslashes.
        let quoted = if byte == b'\\' { String::new() } else { format!(r"\\{{1,8}}{}|", literal(char::from(byte))) };
        format!(
            r"(?:{quoted}(?:[%=](?:25){{0,2}}|\\{{1,8}}(?:x|u00|u\{{|U0{{6}}))(?i:{byte:02x})\}}?|\\{{1,8}}0?{byte:03o}|&(?:amp;){{0,2}}(?:#0{{0,7}}{byte}|#[xX]0{{0,7}}(?i:{byte:02x})|{name});?)"
        )
    };
    let (percent, equals, backslash, ampersand) = (once(b'%'), once(b'='), once(b'\\'), once(b'&'));
    // The rest of an escape that is escaped itself is either literal or escaped as well.
    format!(
        r"[%=](?:25){{0,2}}(?:{bytes})|(?:{percent}|{equals})(?:(?:25){{0,2}}(?:{bytes})|{INTRODUCER})|\\{{1,16}}(?:{after_backslash})|\\{{2,16}}u\\\{{|{backslash}{{1,2}}(?:{after_backslash}|u?{INTRODUCER})|&(?:amp;){{0,2}}(?:{after_ampersand})|{ampersand}(?:(?:amp;){{0,2}}(?:{after_ampersand})|{INTRODUCER})"
    )
}

fn first_byte(character: char) -> u8 {
    character.encode_utf8(&mut [0; 4]).as_bytes()[0]
}

fn short_escape(character: char) -> Option<String> {
    match character {
        '\n' => Some("n".to_owned()),
        '\r' => Some("r".to_owned()),
        '\t' => Some("t".to_owned()),
        _ if character.is_ascii_punctuation() => Some(literal(character)),
        _ => None,
    }
}

/// Returns a pattern for hexadecimal digits in either case.
fn hexadecimal_candidates(digits: &str) -> String {
    let class = |digit: char| {
        if digit.is_ascii_alphabetic() { format!("[{digit}{}]", digit.to_ascii_uppercase()) } else { digit.to_string() }
    };
    digits.chars().map(class).collect()
}

fn literal(character: char) -> String {
    character.encode_utf8(&mut [0; 4]).bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, r"\x{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_variants_for_white_space_line_ends_and_lines() {
        let variants = Variants::new([" one-two-three\r\nfour\nfive-six-seven\n\n", "plain", "abc\n"]);
        let whole: Vec<&str> = variants.whole.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            whole,
            [
                " one-two-three\r\nfour\nfive-six-seven\n\n",
                "abc\n",
                "one-two-three\nfour\nfive-six-seven",
                "one-two-three\r\nfour\nfive-six-seven",
                "one-two-three\r\nfour\r\nfive-six-seven",
                "plain",
            ]
        );
        assert_eq!(variants.lines.into_iter().collect::<Vec<_>>(), ["five-six-seven", "one-two-three"]);
    }
}
