//! The search for secrets in texts of several kinds, and the time to compile it.

#![allow(clippy::expect_used, reason = "a benchmark may panic")]

use counterproof_redaction::{Applied, RedactingStream, Redactor};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

/// Length of each text in bytes.
const LENGTH: usize = 4 << 20;

/// Length of a short text, whose cost is mostly the start of a search.
const SHORT: usize = 512;

/// Numbers of secrets that are searched for.
const COUNTS: [usize; 3] = [1, 3, 30];

fn main() {
    divan::main();
}

fn secrets(count: usize) -> Vec<String> {
    // A mixed value per number: letters, digits and punctuation, as passwords and tokens have.
    (0..count)
        .map(|number| format!("tok{number:02}-{:x}/Pass+w0rd&{number}", 0x9e37_79b9_7f4a_7c15_u64 ^ number as u64))
        .collect()
}

/// Repeats a text up to the measured length.
fn filled(part: &str) -> Vec<u8> {
    part.bytes().cycle().take(LENGTH).collect()
}

/// Texts by name. Some contain parts of a secret.
fn texts(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let answer = r#"{"type": "tool_result", "ts": 1712, "call_id": "c1", "status": "ok", "payload_summary": "order 4711 of Ada, see https://shop.example/orders/4711?x=1"}, "#;
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg";
    let half = &secret[..secret.len() / 2];
    let encoded = half.bytes().fold(String::new(), |text, byte| text + &format!("&#{byte};"));
    vec![
        ("answers in JSON", filled(answer)),
        ("prose", filled("The agent refunds the order and tells the customer about it. Then it closes the ticket, ")),
        ("base64", filled(base64)),
        ("escapes of JSON", filled(r#"{\"a\": \"b\\n\u00e4\", \\\"c\\\": \"\/\"}, "#)),
        ("percent-encoding", filled("q=%7B%22a%22%3A%20%22%C3%A4%22%7D&r=%252F")),
        ("character references", filled("&lt;p&gt;&#104;&#x65;&quot;&amp;#39;&nbsp;")),
        ("backslashes", filled("\\")),
        ("first halves of a secret", filled(half)),
        ("first halves, encoded", filled(&encoded)),
        ("a secret per kilobyte", filled(&format!("{secret}{}", &answer.repeat(8)[..1000]))),
    ]
}

fn redactor(secrets: &[String]) -> Redactor {
    Redactor::new(secrets.iter().map(String::as_str)).expect("the secrets are long enough")
}

#[divan::bench(args = COUNTS)]
fn compile(bencher: Bencher<'_, '_>, count: usize) {
    let secrets = secrets(count);
    bencher.bench(|| redactor(black_box(&secrets)));
}

/// Names of the texts, in their order.
fn names() -> Vec<&'static str> {
    texts(&secrets(1)[0]).into_iter().map(|(name, _)| name).collect()
}

#[divan::bench(consts = COUNTS, args = names(), sample_count = 3, sample_size = 1)]
fn stream<const COUNT: usize>(bencher: Bencher<'_, '_>, name: &str) {
    let (secrets, text) = text(COUNT, name);
    let redactor = redactor(&secrets);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| {
        let mut stream = RedactingStream::new(redactor.clone());
        text.chunks(64 * 1024).for_each(|piece| drop(black_box(stream.push(piece))));
        black_box(stream.finish_truncated());
    });
}

#[divan::bench(consts = COUNTS, args = names())]
fn short<const COUNT: usize>(bencher: Bencher<'_, '_>, name: &str) {
    let (secrets, text) = text(COUNT, name);
    let redactor = redactor(&secrets);
    bencher.bench(|| {
        black_box(redactor.bytes(&text[..SHORT], &mut Applied::default()));
    });
}

fn text(count: usize, name: &str) -> (Vec<String>, Vec<u8>) {
    let secrets = secrets(count);
    let (_, text) = texts(&secrets[0]).into_iter().find(|(known, _)| *known == name).expect("a name of a text");
    (secrets, text)
}
