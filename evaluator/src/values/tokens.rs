//! Splits texts and values into words, numbers and dates in a normal form, so that a value is found in any notation:
//! `1,250.00` is `1250`, `May 27, 2024` is `2024-05-27`, and case does not matter. One pass without backtracking. Also recognises
//! arithmetic expressions for calculators, whose numbers can have different origins, while an id or a date has one origin as a whole.

use serde_json::{Number, Value};

use crate::values::key_of;

/// Whole floats below this are written as whole numbers.
const WHOLE_FLOATS: f64 = 1e36;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    /// The preceding words are a date. An ambiguous date gives one token for each reading.
    Date(Date),
    /// The preceding groups of characters as one word, without the separators between them.
    Joined(u64),
}

/// A word or a number of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// Equal for equal words, within one process.
    pub(crate) hash: u64,
    pub(crate) has_digit: bool,
    pub(crate) length: usize,
}

/// A date, as hashes that are equal for equal dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    /// The date with its year; `None` if the text has no year.
    pub(crate) whole: Option<u64>,
    pub(crate) day: u64,
}

impl Date {
    /// The month and the day, as they are found in a date that has a year.
    pub(crate) fn day_of_some_year(self) -> u64 {
        pair(self.day, self.day)
    }
}

pub(crate) fn pair(first: u64, second: u64) -> u64 {
    key_of((first, second))
}

/// Reads texts one after the other as if they were one.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    word: String,
    /// The last three words as parts of a date, oldest first.
    parts: [Part; 3],
    /// Reads ids that are written in groups as one word; `None` to save the time.
    groups: Option<Groups>,
}

/// The last groups of an id such as `DE89 3704 0044` or `555-123-2002`.
#[derive(Debug, Default)]
struct Groups {
    /// The groups without separators.
    joined: String,
    /// Where each group starts in `joined`.
    starts: Vec<usize>,
    /// The end of the last group in the text.
    end: usize,
}

/// Most groups of one id: an IBAN has up to nine.
const GROUPS: usize = 9;

impl Groups {
    /// Adds the group at `start..end` of a text, and takes every sequence of groups that ends with it.
    fn add(&mut self, text: &str, start: usize, end: usize, take: &mut impl FnMut(Token)) {
        let group = &text[start..end];
        // Short groups of capital letters are part of ids: KV-4410-228.
        let has_digit = group.bytes().any(|byte| byte.is_ascii_digit());
        let is_group = end - start <= 16
            && group.is_ascii()
            && (has_digit || (end - start <= 4 && group.bytes().all(|byte| byte.is_ascii_uppercase())));
        let gap =
            text.get(self.end..start).filter(|gap| gap.len() <= 2 && gap.bytes().all(|c| b" -./()+".contains(&c)));
        if gap.is_none() || !is_group || self.starts.len() >= GROUPS {
            self.joined.clear();
            self.starts.clear();
        }
        self.end = end;
        if !is_group {
            return;
        }
        self.starts.push(self.joined.len());
        let letters = group.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| char::from(byte.to_ascii_lowercase()));
        self.joined.extend(letters);
        for &from in self.starts.iter().rev().skip(1) {
            take(Token::Joined(key_of(&self.joined[from..])));
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Part {
    #[default]
    Other,
    /// A number of at most four digits, and its number of digits.
    Number(u16, usize),
    Month(u16),
}

impl Reader {
    /// Starts a new text.
    pub(crate) fn restart(&mut self) {
        self.parts = Default::default();
        if let Some(groups) = &mut self.groups {
            *groups = Groups::default();
        }
    }

    /// From now on, also reads ids that are written in groups as one word.
    pub(crate) fn join_groups(&mut self) {
        self.groups = Some(Groups::default());
    }

    /// Reads a string or a number. Other values have no tokens.
    pub(crate) fn leaf(&mut self, value: &Value, take: &mut impl FnMut(Token)) {
        match value {
            Value::String(text) => self.text(text, take),
            Value::Number(number) => self.text(&plain(number), take),
            _ => {}
        }
    }

    pub(crate) fn text(&mut self, text: &str, take: &mut impl FnMut(Token)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        if let Some(groups) = &mut self.groups {
            *groups = Groups::default();
        }
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            at = match byte {
                b'0'..=b'9' => self.number(text, at, take),
                // An escape within a string that contains JSON: `\\n` is a line break, not the letter n.
                b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't')) => at + 2,
                _ if byte.is_ascii_alphabetic() || byte >= 0x80 => self.run(text, at, take),
                _ => at + 1,
            };
            if let Some(groups) = &mut self.groups
                && (byte.is_ascii_alphanumeric() || byte >= 0x80)
            {
                groups.add(text, start, at, take);
            }
        }
    }

    /// Reads a token that starts with a digit, and returns its end.
    fn number(&mut self, text: &str, start: usize, take: &mut impl FnMut(Token)) -> usize {
        let bytes = text.as_bytes();
        let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(start);
        let mut end = whole;
        // Thousands separators: groups of exactly three digits. `1,2` is a list.
        while whole - start <= 3 && bytes.get(end) == Some(&b',') && digits(end + 1) == end + 4 {
            end += 4;
        }
        let fraction = (bytes.get(end) == Some(&b'.')).then(|| digits(end + 1)).filter(|after| *after > end + 1);
        // Dates and versions are not fractions: 27.05.2024, 1.2.3.
        let dotted = |at: usize| bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let is_behind_a_dot = start >= 2 && bytes[start - 1] == b'.' && bytes[start - 2].is_ascii_digit();
        let fraction = fraction.filter(|after| !dotted(*after) && !is_behind_a_dot);
        // Digits alone can be a date part, the start of an id, or a number with a unit.
        if end == whole && fraction.is_none() {
            let letters = whole + bytes[whole..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            let after = bytes.get(letters);
            let time = letters == whole + 1 && bytes[whole].eq_ignore_ascii_case(&b't');
            let mixed = after.is_some_and(|byte| byte.is_ascii_digit() || *byte >= 0x80) && !time;
            // 50kg and 27T10:00 start with a number; 9f3c is an id.
            if letters > whole && mixed {
                return self.run(text, start, take);
            }
            self.emit_number(&text[start..whole], take);
            return if time { letters } else { whole };
        }
        // The normal form has no separators and no trailing zeros, so that 1,250.00 and 1250 are equal.
        let mut plain: String = text[start..end].chars().filter(|c| *c != ',').collect();
        if let Some(after) = fraction {
            let fraction = text[end + 1..after].trim_end_matches('0');
            if !fraction.is_empty() {
                plain.push('.');
                plain.push_str(fraction);
            }
            end = after;
        }
        self.emit_number(&plain, take);
        end
    }

    fn emit_number(&mut self, number: &str, take: &mut impl FnMut(Token)) {
        // Only numbers of at most four digits can be a year, a month or a day.
        let part = match number.len() {
            1..=4 => number.parse().map_or(Part::Other, |value| Part::Number(value, number.len())),
            _ => Part::Other,
        };
        let word = Word { hash: key_of(number), has_digit: true, length: number.len() };
        self.emit(word, Some(part), take);
        // 20240527
        if let (8, Ok(compact)) = (number.len(), number.parse::<u32>()) {
            let parts = [compact / 10_000, compact / 100 % 100, compact % 100];
            // Four digits at most, so the default is never used.
            let [year, month, day] = parts.map(|part| u16::try_from(part).unwrap_or_default());
            if (1900..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day) {
                let whole = Some(whole_hash(year, month, day));
                take(Token::Date(Date { whole, day: yearless(month, day) }));
            }
        }
    }

    /// Reads letters and digits, and returns their end.
    fn run(&mut self, text: &str, start: usize, take: &mut impl FnMut(Token)) -> usize {
        // In scripts without spaces, each character is a word.
        self.word.clear();
        let (mut end, mut length, mut has_digit) = (start, 0, false);
        for c in text[start..].chars() {
            // A character of a script without spaces ends the word before it, and is a word itself.
            if !c.is_alphanumeric() || (stands_alone(c) && length > 0) {
                break;
            }
            end += c.len_utf8();
            length += 1;
            has_digit |= c.is_numeric();
            // The common case; `to_lowercase` consults the Unicode tables.
            if c.is_ascii() {
                self.word.push(c.to_ascii_lowercase());
            } else {
                self.word.extend(c.to_lowercase());
            }
            if stands_alone(c) {
                break;
            }
        }
        if length == 0 {
            return start + text[start..].chars().next().map_or(1, char::len_utf8);
        }
        let part = match self.word.as_str() {
            // 27th of May; 3 to 6 July
            "st" | "nd" | "rd" | "th" | "of" | "to" | "and" | "until" | "through" | "the" => None,
            word => Some(month(word).map_or(Part::Other, Part::Month)),
        };
        let word = Word { hash: key_of(short_form(&self.word)), has_digit, length };
        self.emit(word, part, take);
        end
    }

    /// Emits a word, and the dates that end with it. A word without a `part` can stand within a date.
    fn emit(&mut self, word: Word, part: Option<Part>, take: &mut impl FnMut(Token)) {
        take(Token::Word(word));
        let Some(part) = part else { return };
        // A window of three words: a date has at most three parts.
        self.parts = [self.parts[1], self.parts[2], part];
        dates(self.parts, &mut |date| take(date));
    }
}

/// Emits the possible dates of three consecutive words.
fn dates(parts: [Part; 3], take: &mut impl FnMut(Token)) {
    use Part::{Month, Number};
    let mut whole = |year: u16, month: u16, day: u16| {
        if (1..=12).contains(&month) && (1..=31).contains(&day) {
            take(Token::Date(Date { whole: Some(whole_hash(year, month, day)), day: yearless(month, day) }));
        }
    };
    match parts {
        [Number(year, 4), Number(month, 1..=2), Number(day, 1..=2)] => whole(year, month, day),
        [Number(first, 1..=2), Number(second, 1..=2), Number(year, 4)] => {
            // Day and month can be in either order; both readings are emitted.
            whole(year, first, second);
            if first != second {
                whole(year, second, first);
            }
        }
        [Month(month), Number(day, 1..=2), Number(year, 4)] | [Number(day, 1..=2), Month(month), Number(year, 4)] => {
            whole(year, month, day);
        }
        // The first day of `3 to 6 July`, and the last of `July 3 to 6`.
        [Number(day @ 1..=31, 1..=2), Number(_, 1..=2), Month(month)]
        | [Month(month), Number(_, 1..=2), Number(day @ 1..=31, 1..=2)] => {
            take(Token::Date(Date { whole: None, day: yearless(month, day) }));
            if let Number(last @ 1..=31, 1..=2) = parts[1] {
                take(Token::Date(Date { whole: None, day: yearless(month, last) }));
            }
        }
        [_, Month(month), Number(day @ 1..=31, 1..=2)] | [_, Number(day @ 1..=31, 1..=2), Month(month)] => {
            // Under this second hash, a text without the year can still be the origin of a full date.
            take(Token::Date(Date { whole: None, day: yearless(month, day) }));
        }
        _ => {}
    }
}

fn yearless(month: u16, day: u16) -> u64 {
    key_of((month, day))
}

fn whole_hash(year: u16, month: u16, day: u16) -> u64 {
    key_of((year, month, day))
}

/// The hash of an id as a whole: letter case and separators do not matter.
pub(crate) fn id_hash(text: &str) -> u64 {
    let plain: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    key_of(plain.as_str())
}

/// True for a text that is only a date, with or without a weekday and a time of day.
pub(crate) fn is_date(text: &str) -> bool {
    const OTHERS: [&str; 12] = ["st", "nd", "rd", "th", "of", "the", "at", "t", "z", "am", "pm", "utc"];
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let is_part = |part: &str| {
        let part = part.to_ascii_lowercase();
        let word = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_weekday = DAYS.iter().any(|day| word.starts_with(day) && (word.len() == 3 || word.ends_with("day")));
        // `27T10` is a day and an hour.
        let is_time = word.strip_prefix('t').is_some_and(|hour| hour.bytes().all(|byte| byte.is_ascii_digit()));
        word.is_empty() || OTHERS.contains(&word) || is_time || is_weekday || month(word).is_some()
    };
    text.len() <= 40
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.split(|c: char| !c.is_ascii_alphanumeric()).all(is_part)
}

/// Returns the usual abbreviation of a word of postal addresses, and every other word unchanged.
fn short_form(word: &str) -> &str {
    match word {
        "street" => "st",
        "avenue" => "ave",
        "road" => "rd",
        "drive" => "dr",
        "lane" => "ln",
        "boulevard" => "blvd",
        "apartment" => "apt",
        "suite" => "ste",
        other => other,
    }
}

/// Formats a number without exponent.
fn plain(number: &Number) -> String {
    if let Some(whole) = number.as_i128() {
        return whole.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    if float.abs() < WHOLE_FLOATS { float.to_string() } else { number.to_string() }
}

/// True for characters of scripts without spaces between words: Thai to Khmer, and Chinese, Japanese and Korean.
const fn stands_alone(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0xD7FF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

fn month(word: &str) -> Option<u16> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let fits = |name: &str| {
        name == word || (word.len() == 3 && name.starts_with(word)) || (word == "sept" && name.starts_with(word))
    };
    (1..).zip(NAMES).find(|(_, name)| fits(name)).map(|(number, _)| number)
}

/// True for a text of only numbers, operators and parentheses that is arithmetic. Texts that could be an id, a date or a
/// range are not: whole numbers separated only by `-` or `/` without spaces, or a number with a leading zero. Parentheses
/// must match; nothing is evaluated.
pub(crate) fn is_arithmetic(text: &str) -> bool {
    let (mut at, mut depth, mut numbers) = (0, 0_usize, 0_usize);
    let (mut awaits_number, mut plainly) = (true, false);
    while let Some(&byte) = text.as_bytes().get(at) {
        let rest = &text[at..];
        at += match byte {
            b' ' => 1,
            b'(' if awaits_number => {
                depth += 1;
                1
            }
            b')' if !awaits_number && depth > 0 => {
                depth -= 1;
                1
            }
            // A sign.
            b'-' if awaits_number && rest[1..].starts_with(|c: char| c.is_ascii_digit() || c == '(') => 1,
            _ if awaits_number => {
                let Some(number) = number(rest) else { return false };
                // A decimal point rules out an id, a date and a range of whole numbers.
                plainly |= rest[..number].contains('.');
                (numbers, awaits_number) = (numbers + 1, false);
                number
            }
            _ => {
                let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) else {
                    return false;
                };
                let is_spaced = text[..at].ends_with(' ') && rest[operator.len()..].starts_with(' ');
                // `12-34` and `5/27` can be ids, ranges or dates. Spaces around the operator, or any other operator, make it arithmetic.
                plainly |= is_spaced || !matches!(operator, "-" | "/");
                awaits_number = true;
                operator.len()
            }
        };
    }
    numbers > 1 && depth == 0 && !awaits_number && plainly
}

/// Longer operators come first, because the first match is used.
const OPERATORS: [&str; 11] = ["**", "//", "+", "-", "*", "/", "%", "^", "×", "÷", "−"];

/// Returns the length of the number at the start of a text: `12`, `1,250.00` and `0.5`, but not `007`, `1.2.3` or `12a`.
fn number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    if whole == 0 || (whole > 1 && bytes[0] == b'0') {
        return None;
    }
    let mut end = whole;
    while whole <= 3 && bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
        end += 4;
    }
    if bytes.get(end) == Some(&b'.') {
        match digits(end + 1) {
            0 => return None,
            fraction => end += 1 + fraction,
        }
    }
    // `1.2.3`, `12a` and `1,23` are not numbers as a whole.
    let goes_on = text[end..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | ','));
    (!goes_on).then_some(end)
}

/// Calls `take` with the hash of each word of a value, at any depth. Keys are not words.
pub(crate) fn each_word(value: &Value, take: &mut impl FnMut(u64)) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| each_word(value, take)),
        Value::Array(items) => items.iter().for_each(|item| each_word(item, take)),
        leaf => Reader::default().leaf(leaf, &mut |token| {
            if let Token::Word(word) = token {
                take(word.hash);
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_arithmetic, *};

    fn words(value: &Value) -> Vec<u64> {
        let mut found = Vec::new();
        Reader::default().leaf(value, &mut |token| {
            if let Token::Word(Word { hash, .. }) = token {
                found.push(hash);
            }
        });
        found
    }

    fn dates_of(text: &str) -> Vec<Date> {
        let mut found = Vec::new();
        Reader::default().text(text, &mut |token| {
            if let Token::Date(date) = token {
                found.push(date);
            }
        });
        found
    }

    #[test]
    fn a_number_is_equal_in_all_notations() {
        for (number, texts) in [
            (json!(1250), &["1,250.00", "$1,250", "1250 EUR", "1250EUR", "1250.0"][..]),
            (json!(50.5), &["50.50", "50.5%", "50.5kg"]),
            (json!(27), &["27th", "27T10:00"]),
        ] {
            let number = words(&number);
            for text in texts {
                assert_eq!(words(&json!(text))[0], number[0], "{text}");
            }
        }
        assert_eq!(words(&json!(5.0)), words(&json!("5")));
        assert_ne!(words(&json!("007")), words(&json!(7)), "an id with zeros in front is another id");
        assert_ne!(words(&json!("1,2"))[0], words(&json!(12))[0], "a list is no number");
        assert_eq!(words(&json!("27.05.2024")).len(), 3);
    }

    #[test]
    fn ids_are_words_and_letter_case_does_not_matter() {
        assert_eq!(words(&json!("#W4776164")), words(&json!("w4776164")));
        assert_eq!(words(&json!("9f3c")).len(), 1);
        assert_eq!(words(&json!("Zürich STRASSE")), words(&json!("zürich strasse")));
        assert_eq!(words(&json!("注文")).len(), 2, "each is a word where there are no spaces");
        assert_eq!(words(&json!("a\\nb")), words(&json!("a b")), "a line break within a string within a string");
    }

    #[test]
    fn a_date_is_found_in_common_notations() {
        let date = Date { whole: Some(whole_hash(2024, 5, 27)), day: yearless(5, 27) };
        for text in [
            "2024-05-27T10:00:00Z",
            "May 27, 2024",
            "27 May 2024",
            "the 27th of May 2024",
            "05/27/2024",
            "27.5.2024",
            "20240527",
        ] {
            assert!(dates_of(text).contains(&date), "{text}");
        }
        assert!(dates_of("on May 27").contains(&Date { whole: None, ..date }));
        assert!(!dates_of("2024-05-28, May 28").contains(&date));
        for text in ["2024-05-27", "2024-05-27T10:30:00Z", "Monday, May 27th, 2024", "27.5.2024 at 10:30", "27 May"] {
            assert!(is_date(text), "{text}");
        }
        for text in ["2024-05-27 or later", "W27", "may", "room 27"] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn groups_of_an_id_are_joined() {
        let joined = |text: &str| {
            let mut reader = Reader::default();
            reader.join_groups();
            let mut found = Vec::new();
            reader.text(text, &mut |token| {
                if let Token::Joined(hash) = token {
                    found.push(hash);
                }
            });
            found
        };
        for (text, id) in [
            ("to DE89 3704 0044 0532 0130 00, please", "DE89370400440532013000"),
            ("call (555) 123-2002", "5551232002"),
            ("12 555-123-2002", "5551232002"),
        ] {
            assert!(joined(text).contains(&id_hash(id)), "{text}");
        }
        assert!(!joined("3704 and 0044").contains(&id_hash("37040044")));
    }

    #[test]
    fn numbers_with_operators_and_parentheses_are_arithmetic() {
        for text in [
            "(54.85 - 54.04) + (12.10 - 11.00)",
            "54.85-54.04",
            "100*3",
            "(100-20)*2",
            "1,250.00 / 12",
            "-(120 + 30) × 0.5",
            "12 - 34",
            " 2 ** 10 ",
        ] {
            assert!(is_arithmetic(text), "{text}");
        }
    }

    #[test]
    fn ids_dates_ranges_and_texts_with_words_are_not_arithmetic() {
        for text in [
            "",
            "54.85",
            "-54.85",
            "2024-12-27",
            "12/27/2024",
            "555-1234",
            "(555)-123-4567",
            "(555) 123-4567",
            "+49-170-1234567",
            "978-3-16-148410-0",
            "2024-05-27 + 3",
            "1.2.3 - 1",
            "12 + a",
            "12 + W34",
            "$12 + $34",
            "12 +",
            "12 34",
            "(12 + 34",
            "12 + 34)",
            "()",
            "1, 2",
            "12:30 - 13:30",
            "12 + + 34",
            "12 ± 34",
        ] {
            assert!(!is_arithmetic(text), "{text}");
        }
    }

    #[test]
    fn the_words_of_a_value_are_those_of_its_leaves() {
        let mut found = Vec::new();
        each_word(&json!({"key": ["one two", {"n": 50.0}], "flag": true}), &mut |word| found.push(word));
        assert_eq!(found, [words(&json!("one two")), words(&json!(50))].concat());
    }
}
