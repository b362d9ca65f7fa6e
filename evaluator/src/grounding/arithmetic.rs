//! Recognises arithmetic expressions for calculators, such as `(54.85 - 54.04) + 12.10`. The numbers of an expression can
//! have different origins, while an id or a date has one origin as a whole.

/// True for a text of only numbers, operators and parentheses that is arithmetic. Texts that could be an id, a date or a
/// range are not: whole numbers separated only by `-` or `/` without spaces, or a number with a leading zero. Parentheses
/// must match; nothing is evaluated.
pub(super) fn is_arithmetic(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::is_arithmetic;

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
}
