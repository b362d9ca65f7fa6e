//! Two encoders, one after the other, cut at every byte.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::encoders::{ENCODERS, Encoder};
use super::{MASK, mask_truncated};
use crate::{Applied, Redactor, SHORTEST};

/// Values of the kinds that people configure: a token, a password with every special character, and letters beyond ASCII.
const VALUES: [&str; 4] =
    ["hunter2-Tok3n", "p4ss/w'rd+\"x\"\\& 1<>=%#;", "sch\u{f6}n-\u{1f511}-gehe\u{ed}m", "0a1b2c3d4e5f"];

fn is_in_digits(encoder: Encoder) -> bool {
    ["base64", "hex in lines"].iter().any(|name| encoder.name.contains(name))
        || encoder.name.eq_ignore_ascii_case("hex")
}

/// Base64 and hexadecimal of these are documented as not found.
fn is_documented(inner: Encoder, outer: Encoder) -> bool {
    let is_uncommon = [
        "base64 in lines",
        "hex in lines",
        "json of Go",
        "json of .NET",
        "json of PHP for HTML",
        "mail header",
        "octal with zero",
        "hexadecimal, padded",
        "quoted-printable",
        "units in braces",
        "octal",
        "\\U",
        "decimal, padded",
        "HEXADECIMAL",
        "decimal without ;",
    ]
    .contains(&inner.name);
    is_in_digits(outer) && is_uncommon
}

/// The longest text that may remain around a mask: digits of base64 that hold bits of the neighbours as well.
fn remainder(inner: Encoder, outer: Encoder) -> usize {
    let (inner, outer) = (inner.name.contains("base64"), outer.name.contains("base64"));
    match (inner, outer) {
        (false, false) => 0,
        (true, false) => 60,
        _ => 24,
    }
}

fn pairs() -> impl Iterator<Item = (Encoder, Encoder)> {
    let all = ENCODERS.into_iter().flat_map(|inner| ENCODERS.map(|outer| (inner, outer)));
    all.filter(|(inner, outer)| !is_documented(*inner, *outer))
}

#[test]
fn a_value_is_masked_after_any_two_encoders() {
    let mut missed = BTreeSet::new();
    for value in VALUES {
        let redactor = Redactor::new([value]).unwrap();
        for (inner, outer) in pairs() {
            let text = (outer.encode)(&(inner.encode)(value));
            let masked = redactor.text(&format!("<{text}>"), &mut Applied::default());
            let rest = masked.replacen(MASK, "", 1).len() - 2;
            if !masked.contains(MASK) || rest > remainder(inner, outer) {
                missed.insert(format!("{} > {}: {value}: {masked}", inner.name, outer.name));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

#[test]
fn the_longest_form_of_a_value_is_masked_wherever_the_text_is_cut() {
    let redactor = Redactor::new(["aAaa0AAa"]).unwrap();
    let escaped = |text: &str| {
        let escapes = text.chars().map(|it| format!("\\U{:08x}", u32::from(it)));
        escapes.collect::<Vec<_>>().concat()
    };
    for reference in ["&#0000097;", "&#x000000061;", "&amp;amp;#x000000061;"] {
        let of_value = |value: &str| {
            let in_hex = |it: char| format!("{:02x}", u32::from(it));
            let number = |it: char| reference.replace("97", &u32::from(it).to_string()).replace("61", &in_hex(it));
            value.chars().map(number).collect::<Vec<_>>().concat()
        };
        let text = format!("<{}", escaped(&of_value("aAaa0AAa")));
        for (length, (masked, _)) in mask_truncated(&redactor, text.as_bytes()).into_iter().enumerate() {
            let rest = masked.strip_suffix(MASK).unwrap_or(&masked);
            assert!(rest.len() <= 1, "{reference} cut after {length}: {masked}");
        }
    }
}

/// Characters that end one reference and start the next one, so that a text can be read in many ways.
#[test]
fn a_value_that_looks_like_escapes_is_masked_after_any_two_encoders() {
    for value in ["z[>(;&(K.Z", ";&;&;&;&;&", "&#38;&#59;", "&amp;&amp;#x26;", "=3D=3D=\\\\x3D", "%25%2525&;"] {
        let redactor = Redactor::new([value]).unwrap();
        for (inner, outer) in pairs().filter(|(inner, outer)| remainder(*inner, *outer) == 0) {
            let text = (outer.encode)(&(inner.encode)(value));
            let masked = redactor.text(&format!("<{text}>"), &mut Applied::default());
            assert_eq!(masked, format!("<{MASK}>"), "{} > {}: {value}", inner.name, outer.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_value_is_masked_after_two_encoders_wherever_the_text_is_cut(
        value in "[A-Za-z0-9]{2}[!-~]{6,16}", index in 0..ENCODERS.len() * ENCODERS.len(),
    ) {
        let (inner, outer) = (ENCODERS[index / ENCODERS.len()], ENCODERS[index % ENCODERS.len()]);
        prop_assume!(!is_documented(inner, outer));
        let redactor = Redactor::new([value.as_str()]).unwrap();
        let text = format!("<{}", (outer.encode)(&(inner.encode)(&value)));
        // Digits that other bytes share can remain at the start, and so can less than two characters of the value.
        let mut most = remainder(inner, outer) + 1;
        if is_in_digits(inner) || is_in_digits(outer) {
            most += SHORTEST - 1;
        }
        for (length, (masked, applied)) in mask_truncated(&redactor, text.as_bytes()).into_iter().enumerate() {
            let rest = masked.strip_suffix(MASK).unwrap_or(&masked);
            prop_assert!(rest.len() <= most, "{} > {} cut after {length}: {value}: {masked}", inner.name, outer.name);
            prop_assert!(length <= most + SHORTEST || !applied.is_empty(), "{} > {}: {masked}", inner.name, outer.name);
        }
    }
}
