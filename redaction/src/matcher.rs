//! The escapes that encoders write for a character, and the ends of a character in any of them.
//!
//! An escape is a sequence of elements. The characters of an escape can be escaped again by another encoder: `&#104;` becomes
//! `%26%23104%3B`.

use std::sync::OnceLock;

use smallvec::SmallVec;

use Element::{Ampersand, AnyCase, Backslashes, Byte, Optional, Percent, SoftBreak, Zeros};

/// Most zeros that pad a number.
const ZEROS: usize = 7;

/// Most backslashes that stand for one, after rounds of escaping.
const BACKSLASHES: usize = 16;

/// Most spaces that indent a line.
const INDENTATION: usize = 16;

/// Most places where the forms of some characters can end. A value of `;` and `&` has up to 18. A value with many backslashes has more
/// in a text of many backslashes, and those that do not fit are ignored.
const MOST_PLACES: usize = 64;

/// A few places in a text; in nearly all texts, one.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(SmallVec<[usize; 8]>);

impl Places {
    pub(super) fn one(place: usize) -> Self {
        let mut places = Self::default();
        places.push(place);
        places
    }

    pub(super) fn push(&mut self, place: usize) {
        if self.0.len() < MOST_PLACES && !self.0.contains(&place) {
            self.0.push(place);
        }
    }

    pub(super) fn as_slice(&self) -> &[usize] {
        &self.0
    }
}

/// How many encoders a form may go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoders {
    None,
    One,
    Two,
}

impl Encoders {
    fn one_less(self) -> Option<Self> {
        match self {
            Self::None => None,
            Self::One => Some(Self::None),
            Self::Two => Some(Self::One),
        }
    }
}

/// A text in which forms are followed.
#[derive(Debug)]
pub(super) struct Matcher<'a> {
    text: &'a [u8],
    /// The place where the form starts.
    start: usize,
    /// True if a form reaches the end of the text.
    pub(super) is_cut: bool,
    /// The last search for each introducer: all forms that start with an escape search for the same ones.
    introduced: [Option<Introduced>; INTRODUCERS.len()],
}

/// The ends of an introducer that may be escaped itself.
#[derive(Debug, Clone)]
struct Introduced {
    at: usize,
    ends: Places,
    is_cut: bool,
}

impl<'a> Matcher<'a> {
    /// Creates a matcher for forms that start at a place.
    pub(super) fn new(text: &'a [u8], start: usize) -> Self {
        Self { text, start, is_cut: false, introduced: Default::default() }
    }

    /// Adds the ends of the forms of an ASCII character that start at a place.
    pub(super) fn ascii(&mut self, byte: u8, at: usize, encoders: Encoders, ends: &mut Places) {
        self.literal(byte, at, ends);
        self.escaped(of_ascii(byte), byte, at, encoders, ends);
    }

    /// Adds the ends of the forms of a character with these escapes.
    pub(super) fn character(
        &mut self,
        literal: &[u8],
        escapes: &[Escapes],
        at: usize,
        encoders: Encoders,
        ends: &mut Places,
    ) {
        let mut after = Places::one(at);
        for byte in literal {
            after = self.each(&after, |matcher, at, next| matcher.literal(*byte, at, next));
        }
        after.as_slice().iter().for_each(|end| ends.push(*end));
        self.escaped(escapes, literal[0], at, encoders, ends);
    }

    fn escaped(&mut self, escapes: &[Escapes], first: u8, at: usize, encoders: Encoders, ends: &mut Places) {
        let Some(encoders) = encoders.one_less() else { return };
        if let Some(at) = self.after_soft_break(at) {
            self.escapes_at(escapes, first, at, encoders, ends);
        }
        self.escapes_at(escapes, first, at, encoders, ends);
    }

    fn escapes_at(&mut self, escapes: &[Escapes], first: u8, at: usize, encoders: Encoders, ends: &mut Places) {
        // Other escapes than those with an introducer are rare: most places end here.
        let starts_escape = |byte: &u8| INTRODUCERS.contains(byte) || b" \"'".contains(&first);
        if !self.text.get(at).is_some_and(starts_escape) {
            return;
        }
        let found = self.text[at];
        for group in escapes {
            // What no further encoder may change has to start with the byte itself.
            if encoders == Encoders::None && group.introducer.byte() != Some(found) {
                continue;
            }
            let introduced = self.introduced(group.introducer, at, encoders);
            if !introduced.as_slice().is_empty() {
                for body in &group.bodies {
                    let after = self.sequence(body, introduced.clone(), encoders);
                    after.as_slice().iter().for_each(|end| ends.push(*end));
                }
            }
        }
    }

    fn introduced(&mut self, introducer: Element, at: usize, encoders: Encoders) -> Places {
        let slot = introducer.byte().and_then(|byte| INTRODUCERS.iter().position(|it| *it == byte));
        let slot = slot.filter(|_| encoders == Encoders::One);
        let known = slot.and_then(|slot| self.introduced[slot].as_ref()).filter(|known| known.at == at);
        if let Some(Introduced { ends, is_cut, .. }) = known.cloned() {
            self.is_cut |= is_cut;
            return ends;
        }
        // Set aside, so that the entry records only whether this search was cut.
        let was_cut = std::mem::take(&mut self.is_cut);
        let mut ends = Places::default();
        self.element(introducer, at, encoders, &mut ends);
        if let Some(slot) = slot {
            self.introduced[slot] = Some(Introduced { at, ends: ends.clone(), is_cut: self.is_cut });
        }
        self.is_cut |= was_cut;
        ends
    }

    fn sequence(&mut self, elements: &[Element], mut places: Places, encoders: Encoders) -> Places {
        for element in elements {
            places = self.each(&places, |matcher, at, next| matcher.element(*element, at, encoders, next));
            if places.as_slice().is_empty() {
                break;
            }
        }
        places
    }

    /// Continues from each place, and returns all ends.
    pub(super) fn each(&mut self, from: &Places, mut step: impl FnMut(&mut Self, usize, &mut Places)) -> Places {
        let mut next = Places::default();
        from.as_slice().iter().for_each(|at| step(self, *at, &mut next));
        next
    }

    fn element(&mut self, element: Element, at: usize, encoders: Encoders, ends: &mut Places) {
        match element {
            Element::Byte(byte) => self.ascii(byte, at, encoders, ends),
            Element::AnyCase(letter) => {
                self.ascii(letter.to_ascii_lowercase(), at, encoders, ends);
                self.ascii(letter.to_ascii_uppercase(), at, encoders, ends);
            }
            Element::Optional(byte) => {
                ends.push(at);
                self.ascii(byte, at, encoders, ends);
            }
            Element::Zeros => self.zeros(at, encoders, ends),
            Element::Percent => {
                // Each further round encodes the percent sign itself: `%25`, `%2525`.
                self.ascii(b'%', at, encoders, ends);
                self.repeated(b"25", 2, Encoders::None, ends);
            }
            Element::Backslashes => {
                self.ascii(b'\\', at, encoders, ends);
                let run = self.text[at..].iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count();
                if run > 1 {
                    ends.push(at + run);
                }
                // More backslashes may follow in the next piece.
                self.is_cut |= run > 0 && at + run == self.text.len();
            }
            Element::Ampersand => {
                self.ascii(b'&', at, encoders, ends);
                self.repeated(b"amp;", 2, encoders, ends);
            }
            Element::SoftBreak => {
                ends.push(at);
                self.soft_break(at, encoders, ends);
            }
        }
    }

    /// Adds the places after further repetitions of a text.
    fn repeated(&mut self, text: &[u8], most: usize, encoders: Encoders, ends: &mut Places) {
        let mut places = ends.clone();
        for _ in 0..most {
            for byte in text {
                places = self.each(&places, |matcher, at, next| matcher.ascii(*byte, at, encoders, next));
            }
            places.as_slice().iter().for_each(|end| ends.push(*end));
        }
    }

    fn zeros(&mut self, at: usize, encoders: Encoders, ends: &mut Places) {
        // No number starts with a zero, so all of them pad it.
        let mut places = Places::one(at);
        for _ in 0..ZEROS {
            let next = self.each(&places, |matcher, at, next| matcher.ascii(b'0', at, encoders, next));
            if next.as_slice().is_empty() {
                break;
            }
            places = next;
        }
        places.as_slice().iter().for_each(|end| ends.push(*end));
    }

    /// Adds the end of a soft line break of quoted-printable.
    pub(super) fn soft_break(&mut self, at: usize, encoders: Encoders, ends: &mut Places) {
        let equals = self.each(&Places::one(at), |matcher, at, next| matcher.ascii(b'=', at, encoders, next));
        let returned = self.each(&equals, |matcher, at, next| {
            next.push(at);
            matcher.ascii(b'\r', at, encoders, next);
        });
        self.each(&returned, |matcher, at, next| matcher.ascii(b'\n', at, encoders, next))
            .as_slice()
            .iter()
            .for_each(|end| ends.push(*end));
    }

    /// Adds the end of a line break and of the indentation of the next line.
    pub(super) fn line_break(&mut self, at: usize, encoders: Encoders, ends: &mut Places) {
        let mut places = Places::one(at);
        // Twice, since `\r\n` is two characters.
        for _ in 0..2 {
            places = self.each(&places, |matcher, at, next| {
                matcher.ascii(b'\r', at, encoders, next);
                matcher.ascii(b'\n', at, encoders, next);
            });
            for at in places.as_slice() {
                let spaces = self.text[*at..].iter().take(INDENTATION).take_while(|byte| b" \t".contains(byte)).count();
                ends.push(at + spaces);
                self.is_cut |= at + spaces == self.text.len();
            }
        }
    }

    /// Returns the place and the letter or digit there, if there is only one place.
    pub(super) fn alphanumeric(&self, places: &Places) -> Option<(usize, u8)> {
        let [at] = places.as_slice() else { return None };
        Some((*at, self.text.get(*at).copied().filter(u8::is_ascii_alphanumeric)?))
    }

    /// Adds the place after one of these bytes.
    pub(super) fn any_of(&mut self, bytes: &[u8], at: usize, ends: &mut Places) {
        match self.text.get(at) {
            Some(byte) if bytes.contains(byte) => ends.push(at + 1),
            Some(_) => {}
            None => self.is_cut = true,
        }
    }

    /// Returns whether a base64 digit of either alphabet is at a place.
    pub(super) fn is_base64_digit(&mut self, at: usize) -> bool {
        self.is_cut |= at == self.text.len();
        self.text.get(at).is_some_and(|byte| is_base64_digit(*byte))
    }

    /// Adds the end of one literal byte. Quoted-printable can break a line before any byte but the first.
    fn literal(&mut self, byte: u8, at: usize, ends: &mut Places) {
        let Some(found) = self.text.get(at) else {
            self.is_cut = true;
            return;
        };
        if *found == byte {
            ends.push(at + 1);
        } else if let Some(at) = self.after_soft_break(at) {
            match self.text.get(at) {
                Some(found) if *found == byte => ends.push(at + 1),
                Some(_) => {}
                None => self.is_cut = true,
            }
        }
    }

    /// Returns the place after a soft line break that is not escaped.
    fn after_soft_break(&mut self, at: usize) -> Option<usize> {
        if at <= self.start || self.text.get(at) != Some(&b'=') {
            return None;
        }
        let rest = &self.text[at + 1..];
        self.is_cut |= rest.is_empty() || rest == b"\r";
        match rest {
            [b'\r', b'\n', ..] => Some(at + 3),
            [b'\n', ..] => Some(at + 2),
            _ => None,
        }
    }
}

/// True for the digits of both alphabets of base64.
pub(super) fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

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
        // A form encodes a space as `+`, and a mail header (RFC 2047) as `_`.
        ' ' => escapes.extend([b'+', b'_'].map(|byte| Escapes { introducer: Byte(byte), bodies: vec![Vec::new()] })),
        // CSV and SQL double a quote. Shells close the quotes, write an escaped quote, and open them again.
        '"' | '\'' => {
            let quote = Byte(character as u8);
            let mut bodies = vec![vec![quote], vec![Byte(b'\\'), quote, quote]];
            if character == '\'' {
                // In double quotes, as Python does it.
                bodies.push(vec![Byte(b'"'), quote, Byte(b'"'), quote]);
            }
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

pub(super) fn html_name(character: char) -> Option<&'static str> {
    HTML_NAMES.iter().find_map(|(named, name)| (*named == character).then_some(*name))
}
