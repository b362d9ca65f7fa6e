//! Secrets through encoders: a program prints a secret in some form, and no file of the run has it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use counterproof_tests::files_below;
use fastrand::Rng;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::finish;
use crate::snapshot::write;

/// An encoder of the list in `docs/runner.md`.
type Encoder = fn(&str) -> String;

const NAMED: [(&str, Encoder); 9] = [
    ("JSON", |text| each(text, |byte| format!("\\u{byte:04x}"))),
    ("\\x", |text| each(text, |byte| format!("\\x{byte:02x}"))),
    ("octal", |text| each(text, |byte| format!("\\{byte:03o}"))),
    ("percent", |text| each(text, |byte| format!("%{byte:02X}"))),
    ("HTML decimal", |text| each(text, |byte| format!("&#{byte};"))),
    ("HTML hexadecimal", |text| each(text, |byte| format!("&#x{byte:X};"))),
    ("quoted-printable", |text| each(text, |byte| format!("={byte:02X}"))),
    ("base64", |text| STANDARD.encode(text)),
    ("URL-safe base64", |text| URL_SAFE.encode(text)),
];

/// Encodes each character. All secrets here are ASCII.
fn each(text: &str, encode: impl Fn(u8) -> String) -> String {
    text.bytes().map(encode).collect()
}

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    let random = &mut attempt.random;
    let secret = secret(random);
    let depth = random.usize(..3);
    let chosen: Vec<_> = (0..depth).map(|_| NAMED[random.usize(..NAMED.len())]).collect();
    if is_documented(&chosen) {
        return Ok(());
    }
    let form = chosen.iter().fold(secret.clone(), |text, (_, encode)| encode(&text));
    let (before, after) = (noise(random), noise(random));
    let text = format!("{before} {form} {after}");
    let sandbox = &attempt.sandbox;
    write(sandbox.path("text.txt").as_std_path(), text.as_bytes())?;
    write(sandbox.path("cases.json").as_std_path(), br#"[{"id": "c1", "input": {"user": "go"}}]"#)?;
    // Not an answer, so that the whole output is kept as evidence.
    let line = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--retries", "0"];
    let agent = ["--agent-cmd", "cat text.txt", "--secret", "env:SECRET"];
    let mut command = sandbox.command(line.into_iter().chain(agent));
    command.env("SECRET", &secret);
    let ended = finish(command)?;
    ended.ended_properly()?;
    let names: Vec<_> = chosen.iter().map(|(name, _)| *name).collect();
    let runs = sandbox.path("runs");
    let mut is_kept = false;
    for (path, bytes) in files_below(&runs) {
        let text = String::from_utf8_lossy(&bytes);
        for wanted in [&secret, &form] {
            ensure!(!text.contains(wanted.as_str()), "{path} has `{secret}` through {names:?}");
        }
        is_kept |= text.contains("[redacted]");
    }
    for text in [&ended.stdout, &ended.stderr] {
        ensure!(!text.contains(&secret) && !text.contains(&form), "the output has `{secret}` through {names:?}");
    }
    if is_kept { Ok(()) } else { Err(Fault::new(format!("nothing was redacted of `{secret}` through {names:?}"))) }
}

/// Whether `docs/runner.md` says that the form is not found.
fn is_documented(chosen: &[(&str, Encoder)]) -> bool {
    let is_uncommon = |name: &str| ["octal", "quoted-printable"].contains(&name);
    matches!(chosen, [(inner, _), (outer, _)] if outer.contains("base64") && is_uncommon(inner))
}

/// A secret of printable ASCII.
fn secret(random: &mut Rng) -> String {
    (0..random.usize(8..40)).map(|_| char::from(random.u8(b'!'..=b'~'))).collect()
}

/// Text around the secret that is no part of it.
fn noise(random: &mut Rng) -> String {
    let words = ["order", "refund", "&amp;", "%20", "\\n", "a=b", "{\"k\":1}", "ok."];
    (0..random.usize(..200)).map(|_| words[random.usize(..words.len())]).collect::<Vec<_>>().join(" ")
}
