//! Tests of matches and non-matches, in complete texts and in streams truncated at any byte.

use proptest::prelude::*;
use serde_json::json;

mod composed;
mod encoders;
mod json;

use super::*;
use encoders::{FOR_URLS, STANDARD, base64, percent};

const SECRET: &str = "p4ss/wörd+\"x\"\\& 1";

fn mask(secret: &str, text: &str) -> String {
    Redactor::new([secret]).unwrap().text(text, &mut Applied::default())
}

#[test]
fn a_mark_is_recognised_in_any_letter_case() {
    for text in ["[redacted]", "token=[REDACTED] é", "é[[Redacted]"] {
        assert!(has_mark(text), "{text}");
    }
    for text in ["", "redacted", "[redacte", "[é]", "[redacted by Anna]"] {
        assert!(!has_mark(text), "{text}");
    }
}

#[test]
fn a_value_is_found_in_every_form() {
    let json_once = serde_json::to_string(SECRET).unwrap().trim_matches('"').to_owned();
    let json_twice = serde_json::to_string(&json_once).unwrap().trim_matches('"').to_owned();
    let ascii = json_once.replace('ö', "\\u00f6").replace('/', "\\/").replace('&', "\\u0026");
    let html = SECRET.replace('&', "&amp;").replace('"', "&quot;").replace('/', "&#x2F;");
    let every_byte = SECRET.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02x}"));
    let form = percent(SECRET).replace("%20", "+");
    let twice = percent(&percent(SECRET));
    for text in [SECRET, &json_once, &json_twice, &ascii, &html, &every_byte, &form, &twice] {
        assert_eq!(mask(SECRET, &format!("<{text}>")), "<[redacted]>", "{text}");
    }
}

#[test]
fn a_value_is_found_in_base64_at_any_alignment() {
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "z", "zz", "zzz"] {
            for alphabet in [STANDARD, FOR_URLS] {
                let text = base64(format!("{before}{SECRET}{after}").as_bytes(), alphabet);
                let masked = mask(SECRET, &text);
                assert!(masked.contains(MASK) && masked.len() < text.len(), "{before}_{after}: {masked}");
                // Only the characters of `before` and `after` remain.
                assert!(masked.len() <= MASK.len() + 2 * (before.len() + after.len()), "{before}_{after}: {masked}");
            }
        }
    }
}

/// Lines like those of a key in PEM, without the words of one.
const LINES: [&str; 3] = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "ggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyji", "q81/WA+8"];

#[test]
fn a_value_with_a_final_line_end_is_found_without_it() {
    for value in ["abcDEF123456\n", "abcDEF123456\r\n", "  abcDEF123456\t\n\n"] {
        for text in ["<abcDEF123456>", "<abcDEF123456 >", "<YWJjREVGMTIzNDU2>", "<abcDEF123456\\n>"] {
            let masked = mask(value, text);
            assert!(
                masked.starts_with("<[redacted]") && masked.len() <= "<[redacted]\\n>".len(),
                "{value:?}: {masked}"
            );
        }
    }
}

#[test]
fn a_value_of_several_lines_is_found_with_other_line_ends_and_line_by_line() {
    for ends in ["\n", "\r\n"] {
        let value = format!("{}{ends}", LINES.join(ends));
        for separator in ["\n", "\r\n", "\\n", "\\r\\n", "\r", " ", "", ", ", "\n    ", "\", \""] {
            let masked = mask(&value, &format!("<{}>", LINES.join(separator)));
            for line in LINES {
                assert!(!masked.contains(line) && masked.contains(MASK), "{separator:?}: {masked}");
            }
        }
        let whole = |separator: &str| mask(&value, &format!("<{}>", LINES.join(separator)));
        assert_eq!(whole("\n"), "<[redacted]>");
        assert_eq!(whole("\\r\\n"), "<[redacted]>");
        for line in LINES {
            assert_eq!(mask(&value, &format!("<{line}>")), "<[redacted]>");
            assert!(
                !mask(&value, &base64(line.as_bytes(), STANDARD)).contains(&base64(line.as_bytes(), STANDARD)[2..8])
            );
        }
    }
    // A shorter line occurs in unrelated text.
    assert_eq!(mask("long-line-1\nshort\nlong-line-2", "short, long-line-1"), "short, [redacted]");
}

#[test]
fn a_value_of_very_many_lines_is_compiled_and_found() {
    let lines: Vec<String> = (0..1200_u32).map(|index| format!("{:09x}", u64::from(index) * 0x9e37_79b9)).collect();
    let value = lines.join("\n");
    assert!(value.len() <= 16 * 1024);
    let redactor = Redactor::of_values([value.as_str()]).unwrap();
    assert_eq!(redactor.text(&lines.join(" "), &mut Applied::default()).split(' ').filter(|it| *it != MASK).count(), 0);
    let text = value.replace('\n', "\r\n");
    assert_eq!(redactor.text(&text, &mut Applied::default()), MASK);
}

#[test]
fn a_redactor_of_values_leaves_keys_of_known_formats() {
    let key = format!("ghp_{}", "a1".repeat(20));
    let of_values = Redactor::of_values([SECRET]).unwrap();
    let text = format!("{SECRET} {key}");
    assert_eq!(of_values.text(&text, &mut Applied::default()), format!("[redacted] {key}"));
    let of_nothing = Redactor::of_values([]).unwrap();
    assert_eq!(of_nothing.bytes(text.as_bytes(), &mut Applied::default()).as_ref(), text.as_bytes());
    assert_eq!(of_nothing.truncated_bytes(text.as_bytes(), &mut Applied::default()).as_ref(), text.as_bytes());
}

#[test]
fn broad_patterns_find_short_keys_that_specific_ones_leave() {
    let text = r#"{"key":"sk-secret-key-12345","token":"ghp_github_token_abc","login":"Password123"}"#;
    assert_eq!(mask(SECRET, text), text);
    let broad = Redactor::broad([]).unwrap().with_mask("[REDACTED]");
    let masked = r#"{"key":"[REDACTED]","token":"[REDACTED]","login":"[REDACTED]"}"#;
    let mut applied = Applied::default();
    assert_eq!(broad.text(text, &mut applied), masked);
    assert_eq!(applied.names(), ["password_word", "short_github_token", "short_secret_key"]);
    for ordinary in ["a task-management tool", "sk-abc", "ghp_abc", "the password is long"] {
        assert_eq!(broad.text(ordinary, &mut applied), ordinary);
    }
    // A specific key keeps its name, and a key that is cut off is masked.
    let mut applied = Applied::default();
    assert_eq!(broad.text(&format!("ghp_{}", "a1".repeat(20)), &mut applied), "[REDACTED]");
    assert_eq!(applied.names(), ["github_token"]);
    let cut = broad.truncated_bytes(b"token: ghp_abc", &mut applied);
    assert_eq!(cut.as_ref(), b"token: [REDACTED]");
    let mut stream = RedactingStream::new(broad);
    let mut out: Vec<u8> = text.as_bytes().chunks(7).flat_map(|piece| stream.push(piece)).collect();
    out.extend(stream.finish().0);
    assert_eq!(String::from_utf8(out).unwrap(), masked);
}

#[test]
fn keys_of_known_formats_are_masked_and_their_surroundings_are_not() {
    let redactor = Redactor::new([]).unwrap();
    let long = "Ab1".repeat(20);
    for (text, masked, name) in [
        (format!("\"sk-proj-{long}\""), "\"[redacted]\"", "secret_key"),
        (format!("a\\nsk-{long}"), "a\\n[redacted]", "secret_key"),
        (format!("ghp_{long}"), "[redacted]", "github_token"),
        (format!("glpat-{long}"), "[redacted]", "gitlab_token"),
        (format!("x github_pat_{long} y"), "x [redacted] y", "github_token"),
        ("AKIAIOSFODNN7EXAMPLE".to_owned(), "[redacted]", "aws_key_id"),
        (format!("AIza{}", &long[..35]), "[redacted]", "google_api_key"),
        (format!("xoxb-{long}"), "[redacted]", "slack_token"),
        (format!("sk_live_{long}"), "[redacted]", "stripe_key"),
        (format!("npm_{}", &long[..36]), "[redacted]", "npm_token"),
        (format!("hf_{long}"), "[redacted]", "hugging_face_token"),
        (format!("authorization: bearer {long}=="), "authorization: bearer [redacted]", "bearer_token"),
        (format!("eyJhbGciOiJI.eyJzdWIiOiIx.{long}"), "[redacted]", "json_web_token"),
        ("postgres://app:hunter2@db/x".to_owned(), "postgres://app:[redacted]@db/x", "url_password"),
        (
            format!("-----BEGIN RSA PRIVATE KEY-----\\n{long}\\n-----END RSA PRIVATE KEY-----\\n"),
            "[redacted]\\n",
            "private_key",
        ),
    ] {
        let mut applied = Applied::default();
        assert_eq!(redactor.text(&text, &mut applied), masked);
        assert_eq!(applied.names(), [name], "{text}");
    }
}

#[test]
fn a_value_before_the_secret_part_of_a_key_is_masked() {
    for (user, password) in [("user-s3cret", "hunter2"), ("user-s3cret", "user-s3cret"), ("a", "user-s3cret")] {
        let text = format!("see postgres://{user}:{password}@db/x");
        let masked = mask("user-s3cret", &text);
        assert!(!masked.contains("s3cret") && !masked.contains("hunter2") && masked.ends_with("@db/x"), "{masked}");
    }
    let over_both = mask("user:hunter2", "see postgres://user:hunter2-and-more@db/x");
    assert_eq!(over_both, "see postgres://[redacted][redacted]@db/x");
}

#[test]
fn the_docs_list_every_key_pattern() {
    let docs = include_str!("../../../docs/runner.md");
    for pattern in KEY_PATTERNS {
        let row = format!("| `{}` | {} |", pattern.name, pattern.looks_like);
        assert!(docs.contains(&row), "docs/runner.md has no row {row}");
    }
}

#[test]
fn ordinary_text_is_not_masked() {
    let redactor = Redactor::new(["abc"]).unwrap();
    for text in [
        "task-refund-customer-order-number-seventeen",
        "the bearer of this letter is authorised",
        "abc abc abc",
        "http://localhost:8787/run-case and mail a:b@c",
        "risk-free and disk-usage",
    ] {
        let mut applied = Applied::default();
        assert_eq!(redactor.text(text, &mut applied), text);
        assert!(applied.is_empty());
    }
}

/// Truncates a text after each of its bytes and masks it, complete and as a stream. Both results must be equal.
fn mask_truncated(redactor: &Redactor, text: &[u8]) -> Vec<(String, Applied)> {
    let cut = |length: usize| {
        let (mut applied, text) = (Applied::default(), &text[..length]);
        let masked = redactor.truncated_bytes(text, &mut applied).into_owned();
        let mut stream = RedactingStream::new(redactor.clone());
        let mut streamed: Vec<u8> = text.chunks(7).flat_map(|piece| stream.push(piece)).collect();
        let (rest, stream_applied) = stream.finish_truncated();
        streamed.extend(rest);
        assert_eq!((&masked, &applied), (&streamed, &stream_applied), "truncated after {length}");
        (String::from_utf8_lossy(&masked).into_owned(), applied)
    };
    (0..=text.len()).map(cut).collect()
}

#[test]
fn a_value_truncated_at_any_byte_is_masked_completely() {
    let redactor = Redactor::new([SECRET]).unwrap();
    let json = serde_json::to_string(SECRET).unwrap().trim_matches('"').to_owned();
    let twice = serde_json::to_string(&json).unwrap().trim_matches('"').to_owned();
    let ascii = json.replace('ö', "\\u00f6").replace('/', "\\/");
    for form in [SECRET.to_owned(), json, twice, ascii, percent(SECRET), percent(&percent(SECRET))] {
        let text = format!("...{form}");
        for (length, (masked, applied)) in mask_truncated(&redactor, text.as_bytes()).into_iter().enumerate().skip(3) {
            let begun = length - 3;
            let expected = if begun < SHORTEST { "..." } else { "...[redacted]" };
            assert_eq!((masked.as_str(), applied.is_empty()), (expected, begun < SHORTEST), "{}", &text.len());
        }
    }
}

#[test]
fn base64_of_a_value_truncated_at_any_byte_is_masked() {
    let redactor = Redactor::new([SECRET]).unwrap();
    for before in ["..", "...", "...."] {
        let (all, alone) =
            (base64(format!("{before}{SECRET}").as_bytes(), STANDARD), base64(before.as_bytes(), STANDARD));
        for (length, (masked, _)) in mask_truncated(&redactor, all.as_bytes()).into_iter().enumerate() {
            // The last character of the text before may hold bits of the value.
            assert!(masked.strip_suffix(MASK).unwrap_or(&masked).len() <= alone.len(), "{before} {length}: {masked}");
        }
    }
}

#[test]
fn a_truncated_long_value_is_masked_after_a_short_value_that_is_its_prefix() {
    let redactor = Redactor::new(["abcd", "abcd-efgh-ijkl"]).unwrap();
    let mut applied = Applied::default();
    assert_eq!(redactor.truncated_bytes(b"x abcd-efgh-", &mut applied).as_ref(), b"x [redacted]");
    assert_eq!(redactor.truncated_bytes(b"abcd abcd-", &mut applied).as_ref(), b"[redacted] [redacted]");
}

#[test]
fn a_truncated_key_of_a_known_format_is_masked_after_its_prefix() {
    let redactor = Redactor::new([]).unwrap();
    let long = "Ab1".repeat(20);
    for (prefix, key) in [
        ("\"sk-", long.as_str()),
        ("ghp_", &long),
        ("github_pat_", &long),
        ("glpat-", &long),
        ("AKIA", "IOSFODNN7EXAMPLE"),
        ("AIza", &long[..35]),
        ("xoxb-", &long),
        ("sk_live_", &long),
        ("npm_", &long[..36]),
        ("hf_", &long),
        ("bearer ", &long),
        ("eyJ", "hbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"),
        ("postgres://app:", "hunter2"),
        ("-----BEGIN RSA PRIVATE KEY-----", &long),
    ] {
        let truncated = mask_truncated(&redactor, format!("{prefix}{key}").as_bytes());
        for (length, (masked, _)) in truncated.into_iter().enumerate().skip(prefix.len()) {
            let rest = masked.strip_suffix(MASK).unwrap_or(&masked);
            assert!(prefix.starts_with(rest), "{prefix} truncated after {length}: {masked}");
        }
    }
}

#[test]
fn truncated_text_without_a_value_is_not_masked() {
    let redactor = Redactor::new([SECRET]).unwrap();
    for text in [
        "",
        "an ordinary text",
        "http://localhost/",
        "{\"a\": \"b\"",
        "p4ss is how it begins, but it goes on otherwise",
    ] {
        let mut applied = Applied::default();
        assert_eq!(redactor.truncated_bytes(text.as_bytes(), &mut applied).as_ref(), text.as_bytes());
        assert!(applied.is_empty());
    }
}

#[test]
fn masked_json_is_valid_and_has_every_field() {
    let redactor = Redactor::new(["12345678", "tok-a-9999"]).unwrap();
    let mut applied = Applied::default();
    let mut value = json!({
        "n": 912_345_678, "k": 1, "deep": [{"x": "see tok-a-9999"}],
        "tok-a-9999": 1, "dG9rLWEtOTk5OQ": 2,
    });
    redactor.json(&mut value, &mut applied);
    assert_eq!(
        value,
        json!({"n": "9[redacted]", "k": 1, "deep": [{"x": "see [redacted]"}], "[redacted]": 1, "[redacted]+": 2})
    );
}

#[test]
fn debug_output_of_the_redactor_contains_no_value() {
    assert!(!format!("{:?}", Redactor::new(["s3cret-s3cret"]).unwrap()).contains("s3cret"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_stream_in_any_pieces_gives_the_bytes_of_the_complete_text(
        places in prop::collection::vec(0..200_000_usize, 0..6), pieces in prop::collection::vec(1..70_000_usize, 1..12),
    ) {
        let mut text = vec![b'.'; 200_000];
        for place in places {
            text.splice(place..place, SECRET.bytes());
        }
        let redactor = Redactor::new([SECRET]).unwrap();
        let mut stream = RedactingStream::new(redactor.clone());
        let (mut out, mut rest) = (Vec::new(), text.as_slice());
        for piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            out.extend(stream.push(now));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let (end, _) = stream.finish();
        out.extend(end);
        prop_assert!(out == redactor.bytes(&text, &mut Applied::default()).as_ref());
    }

    #[test]
    fn every_value_is_found(value in "\\PC{4,40}", around in "[a-z]{0,5}") {
        let masked = mask(&value, &format!("{around}{value}{around}"));
        prop_assert!(masked.contains(MASK));
    }
}
