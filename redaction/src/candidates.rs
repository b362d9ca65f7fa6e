//! Regular expressions that match wherever a form of a value may start.
//!
//! They match more than that: the first few characters decide, and [`Needle::follow`] checks the rest. Every repetition has
//! a bound, so that a text cannot make one match arbitrarily long.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::escapes;
use crate::matcher::Encoders;
use crate::needle::{Content, Digits, Needle};

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
    let bytes = joined(|character| Some(hexadecimal(&format!("{:02x}", first_byte(character)))));
    let octal = joined(|character| Some(format!("{:03o}", first_byte(character))));
    let units = joined(|character| Some(hexadecimal(&format!("{:04x}", character.encode_utf16(&mut [0; 2])[0]))));
    let numbers = joined(|character| Some(hexadecimal(&format!("{:x}", u32::from(character)))));
    let decimals = joined(|character| Some(u32::from(character).to_string()));
    let names = joined(|character| escapes::html_name(character).map(str::to_owned));
    let short = joined(short_escape);
    let after_backslash = format!(
        r"x(?:{bytes})|u(?:{units})|u\{{0{{0,6}}(?:{numbers})|U0{{2,7}}(?:{numbers})|0?(?:{octal}){}",
        if short.is_empty() { String::new() } else { format!("|{short}") }
    );
    let names = if names.is_empty() { names } else { format!("|{names}") };
    let after_ampersand = format!(r"#0{{0,7}}(?:{decimals})|#[xX]0{{0,7}}(?:{numbers}){names}");
    let once = |byte: u8| {
        let name = escapes::html_name(char::from(byte)).unwrap_or_default();
        format!(
            r"(?:(?:[%=](?:25){{0,2}}|\\{{1,8}}(?:x|u00|u\{{|U0{{6}}))(?i:{byte:02x})\}}?|\\{{1,8}}0?{byte:03o}|&(?:amp;){{0,2}}(?:#0{{0,7}}{byte}|#[xX]0{{0,7}}(?i:{byte:02x})|{name});?)"
        )
    };
    let (percent, equals, backslash, ampersand) = (once(b'%'), once(b'='), once(b'\\'), once(b'&'));
    // The rest of an escape that is escaped itself is either literal or escaped as well.
    format!(
        r"[%=](?:25){{0,2}}(?:{bytes})|(?:{percent}|{equals})(?:(?:25){{0,2}}(?:{bytes})|{INTRODUCER})|\\{{1,16}}(?:{after_backslash})|{backslash}{{1,2}}(?:{after_backslash}|u?{INTRODUCER})|&(?:amp;){{0,2}}(?:{after_ampersand})|{ampersand}(?:(?:amp;){{0,2}}(?:{after_ampersand})|{INTRODUCER})"
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
fn hexadecimal(digits: &str) -> String {
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
