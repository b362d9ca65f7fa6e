//! The escapes that encoders write for a character.
//!
//! An escape is a sequence of elements. The characters of an escape can be escaped again by another encoder: `&#104;` becomes
//! `%26%23104%3B`.

use std::sync::OnceLock;

/// The bytes with which escapes start.
pub(super) const INTRODUCERS: &[u8] = b"%=\\&";

/// An element of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Byte(u8),
    /// This letter in either case.
    AnyCase(u8),
    /// This byte or nothing.
    Optional(u8),
    /// Zeros that pad a number.
    Zeros,
    /// `%`, and what further rounds of percent-encoding add to it.
    Percent,
    /// A backslash, which every round of escaping doubles.
    Backslashes,
    /// `&`, and what further rounds of escaping for HTML add to it.
    Ampersand,
    /// A line break between two encoded bytes of quoted-printable, or nothing.
    SoftBreak,
}

impl Element {
    /// Returns the byte with which this element starts, if it is the same for all its forms.
    pub(super) fn byte(self) -> Option<u8> {
        match self {
            Byte(byte) => Some(byte),
            Percent => Some(b'%'),
            Backslashes => Some(b'\\'),
            Ampersand => Some(b'&'),
            AnyCase(_) | Optional(_) | Zeros | SoftBreak => None,
        }
    }
}

use Element::{Ampersand, AnyCase, Backslashes, Byte, Optional, Percent, SoftBreak, Zeros};

/// Escapes that start with the same element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Escapes {
    pub(super) introducer: Element,
    /// What follows: one sequence for each escape.
    pub(super) bodies: Vec<Vec<Element>>,
}

/// The names of punctuation in HTML.
const HTML_NAMES: [(char, &str); 31] = [
    ('!', "excl"),
    ('"', "quot"),
    ('#', "num"),
    ('$', "dollar"),
    ('%', "percnt"),
    ('&', "amp"),
    ('\'', "apos"),
    ('(', "lpar"),
    (')', "rpar"),
    ('*', "ast"),
    ('+', "plus"),
    (',', "comma"),
    ('.', "period"),
    ('/', "sol"),
    (':', "colon"),
    (';', "semi"),
    ('<', "lt"),
    ('=', "equals"),
    ('>', "gt"),
    ('?', "quest"),
    ('@', "commat"),
    ('[', "lsqb"),
    ('\\', "bsol"),
    (']', "rsqb"),
    ('^', "Hat"),
    ('_', "lowbar"),
    ('`', "grave"),
    ('{', "lcub"),
    ('|', "verbar"),
    ('}', "rcub"),
    ('~', "tilde"),
];

/// Returns the escapes of an ASCII character.
pub(super) fn of_ascii(byte: u8) -> &'static [Escapes] {
    static ALL: OnceLock<Vec<Vec<Escapes>>> = OnceLock::new();
    let all = ALL.get_or_init(|| (0..=127).map(|byte| of(char::from(byte))).collect());
    all.get(usize::from(byte)).map_or(&[], Vec::as_slice)
}

pub(super) fn of(character: char) -> Vec<Escapes> {
    let mut escapes = vec![
        Escapes { introducer: Percent, bodies: vec![in_bytes(character, &[Percent])] },
        Escapes { introducer: Byte(b'='), bodies: vec![in_bytes(character, &[SoftBreak, Byte(b'=')])] },
        Escapes { introducer: Backslashes, bodies: after_backslash(character) },
        Escapes { introducer: Ampersand, bodies: references(character) },
    ];
    match character {
        ' ' => escapes.extend([b'+', b'_'].map(|byte| Escapes { introducer: Byte(byte), bodies: vec![Vec::new()] })),
        // CSV and SQL double a quote. Shells close the quotes, write an escaped quote, and open them again.
        '"' | '\'' => {
            let quote = Byte(character as u8);
            let bodies = vec![vec![quote], vec![Byte(b'\\'), quote, quote]];
            escapes.push(Escapes { introducer: quote, bodies });
        }
        _ => {}
    }
    escapes
}

/// Returns the hexadecimal digits of each byte of a character, with the elements that start a further byte between them.
fn in_bytes(character: char, start: &[Element]) -> Vec<Element> {
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).bytes().map(|byte| digits(&format!("{byte:02x}")));
    bytes.collect::<Vec<_>>().join(start)
}

fn digits(text: &str) -> Vec<Element> {
    text.bytes().map(|byte| if byte.is_ascii_alphabetic() { AnyCase(byte) } else { Byte(byte) }).collect()
}

fn bytes(text: &str) -> Vec<Element> {
    text.bytes().map(Byte).collect()
}

/// Returns the escapes of JSON, JavaScript, C, Python and shells, without their first backslash.
fn after_backslash(character: char) -> Vec<Vec<Element>> {
    let code = u32::from(character);
    let mut buffer = [0; 2];
    let units = character.encode_utf16(&mut buffer).iter().map(|unit| digits(&format!("{unit:04x}")));
    let mut buffer = [0; 4];
    let octal = character.encode_utf8(&mut buffer).bytes().map(|byte| bytes(&format!("{byte:03o}")));
    let in_braces = [vec![Byte(b'u'), Byte(b'{'), Zeros], digits(&format!("{code:x}")), vec![Byte(b'}')]];
    let mut escapes = vec![
        [vec![Byte(b'x')], in_bytes(character, &[Backslashes, Byte(b'x')])].concat(),
        [vec![Byte(b'u')], units.collect::<Vec<_>>().join(&[Backslashes, Byte(b'u')][..])].concat(),
        in_braces.concat(),
        [vec![Byte(b'U')], digits(&format!("{code:08x}"))].concat(),
        [vec![Optional(b'0')], octal.collect::<Vec<_>>().join(&[Backslashes, Optional(b'0')][..])].concat(),
    ];
    match character {
        '\n' => escapes.push(vec![Byte(b'n')]),
        '\r' => escapes.push(vec![Byte(b'r')]),
        '\t' => escapes.push(vec![Byte(b't')]),
        _ if character.is_ascii_punctuation() || character == ' ' => escapes.push(vec![Byte(character as u8)]),
        _ => {}
    }
    escapes
}

/// Returns the references of HTML and XML, without their ampersand. Browsers do not require the semicolon.
fn references(character: char) -> Vec<Vec<Element>> {
    let code = u32::from(character);
    let decimal = [vec![Byte(b'#'), Zeros], digits(&code.to_string()), vec![Optional(b';')]];
    let hexadecimal = [vec![Byte(b'#'), AnyCase(b'x'), Zeros], digits(&format!("{code:x}")), vec![Optional(b';')]];
    let name = html_name(character).map(|name| [bytes(name), vec![Optional(b';')]].concat());
    [decimal.concat(), hexadecimal.concat()].into_iter().chain(name).collect()
}

/// Returns the name of a character in HTML.
pub(super) fn html_name(character: char) -> Option<&'static str> {
    HTML_NAMES.iter().find_map(|(named, name)| (*named == character).then_some(*name))
}
