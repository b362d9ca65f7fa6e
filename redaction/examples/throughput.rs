//! Measures the search for secrets on texts of several kinds, in megabytes per second, and the time to compile it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use counterproof_redaction::{Applied, RedactingStream, Redactor};

/// Length of each text in bytes.
const LENGTH: usize = 4 << 20;

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

/// The shortest of three runs.
fn fastest(mut run: impl FnMut()) -> Duration {
    let time = |()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    [(); 3].map(time).into_iter().min().unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "prints its results")]
fn main() {
    for count in [1, 3, 30] {
        let secrets = secrets(count);
        let compile = || Redactor::new(secrets.iter().map(String::as_str));
        let Ok(redactor) = compile() else { continue };
        println!("secrets: {count}; compiled in {:.1?}", fastest(|| drop(black_box(compile()))));
        for (name, text) in texts(&secrets[0]) {
            let time = fastest(|| {
                let mut stream = RedactingStream::new(redactor.clone());
                text.chunks(64 * 1024).for_each(|piece| drop(black_box(stream.push(piece))));
                black_box(stream.finish_truncated());
            });
            println!("  {name}: {:.0} MB/s", text.len() as f64 / time.as_secs_f64() / 1e6);
        }
        let short = texts(&secrets[0]).into_iter().map(|(_, text)| text[..512].to_vec()).collect::<Vec<_>>();
        let time = fastest(|| {
            for text in &short {
                black_box(redactor.bytes(text, &mut Applied::default()));
            }
        });
        println!("  texts of 512 bytes: {:.1?} each", time / u32::try_from(short.len()).unwrap_or(1));
    }
}
