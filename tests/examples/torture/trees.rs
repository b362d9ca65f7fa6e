//! Damaged and hostile files in run folders, reports and cases: every command ends with a message and a code of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;

use crate::attempt::{Attempt, Outcome, ensure};
use crate::prepared::prepare;
use crate::process::{Ended, finish};
use crate::snapshot::write;

/// Commands that read a run folder or a report.
const READERS: [&[&str]; 11] = [
    &["validate", "runs"],
    &["validate", "evaluated"],
    &["validate", "--format", "json", "."],
    &["compare", "runs/baseline/b1", "runs/new/n1", "--cases", "cases.json", "--out", "out"],
    &["compare", "runs/baseline/b1", "runs/new/n1", "runs/new/n2", "--out", "out"],
    &["report", "evaluated/evaluation.json", "--out", "out"],
    &["history", "evaluated", "runs", "--out", "out"],
    &["accept", "runs/new/n1", "--reason", "good", "--allow-failures"],
    &["merge", "--out", "runs/new/whole", "runs/new/part-s1of2", "runs/new/part-s2of2"],
    &["replay", "runs/new/n1/c00.json", "--curl"],
    &["run", "--cases", "cases.json", "--side", "new", "--resume", "n1", "--base-url", "http://127.0.0.1:9"],
];

/// Texts that steer a terminal, a shell, a browser, a spreadsheet or a path.
const TEXTS: [&str; 12] = [
    "\u{1b}]0;t\u{7}\u{1b}[2J",
    "\u{9b}2J\u{202e}\u{200b}",
    "\n::error::owned",
    "../../../../etc/passwd",
    "/etc/passwd",
    "javascript:alert(1)",
    "<script>alert(1)</script>",
    "=1+1",
    "$(touch owned)",
    "\u{0}",
    "-rf",
    "",
];

/// Files that a finished run does not have, and that readers look for.
const ABSENT: [&str; 4] =
    ["runs/new/n1/.lock", "runs/new/n1/labels.json", "runs/new/n2/evaluation.json", "counterproof.toml"];

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    prepare(&attempt.sandbox)?;
    let root = attempt.sandbox.root().as_std_path().to_owned();
    let mut done = Vec::new();
    for _ in 0..attempt.random.u32(1..5) {
        let file = any_file(&root, &mut attempt.random)?;
        let what = damage(&file, &mut attempt.random)?;
        done.push(format!("{what}: {}", file.strip_prefix(&root).unwrap_or(&file).display()));
    }
    for _ in 0..3 {
        let reader = READERS[attempt.random.usize(..READERS.len())];
        let ended = finish(attempt.sandbox.command(reader)).and_then(|ended| {
            ended.ended_properly()?;
            is_harmless(&ended)?;
            Ok(ended)
        });
        if let Err(fault) = ended {
            return Err(crate::attempt::Fault::new(format!("{fault}\n  after: {}", done.join("; "))));
        }
    }
    Ok(())
}

/// A file of the tree, or one that is created for it.
fn any_file(root: &Path, random: &mut Rng) -> std::io::Result<PathBuf> {
    if random.u8(..8) == 0 {
        let path = root.join(ABSENT[random.usize(..ABSENT.len())]);
        // An earlier damage may have left a pipe there, which would block this writer.
        if path.symlink_metadata().is_err() {
            return write(&path, b"{}").map(|()| path);
        }
    }
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files.swap_remove(random.usize(..files.len())))
}

/// Damages a file, and says how.
fn damage(path: &Path, random: &mut Rng) -> std::io::Result<&'static str> {
    let bytes = fs::read(path)?;
    match random.u8(..11) {
        0 => write(path, &flipped(bytes, random)).map(|()| "flipped bytes"),
        1 => write(path, &bytes[..random.usize(..=bytes.len())]).map(|()| "truncated"),
        2 => write(path, &[bytes, vec![random.u8(..); random.usize(..10_000)]].concat()).map(|()| "extended"),
        3 => write(path, b"").map(|()| "emptied"),
        4 => write(path, "[".repeat(random.usize(..200_000)).as_bytes()).map(|()| "deeply nested"),
        5 => fs::remove_file(path).map(|()| "removed"),
        6 => {
            fs::remove_file(path)?;
            fs::create_dir(path).map(|()| "made a folder")
        }
        7 => {
            fs::remove_file(path)?;
            let target = ["/etc/passwd", "/dev/zero", "..", "loop"][random.usize(..4)];
            let target = if target == "loop" { path } else { Path::new(target) };
            std::os::unix::fs::symlink(target, path).map(|()| "made a link")
        }
        // A cases file is named in the command line, where a pipe is allowed, and waited for.
        8 if !path.ends_with("cases.json") => {
            fs::remove_file(path)?;
            Command::new("mkfifo").arg(path).status().map(|_| "made a pipe")
        }
        _ => write(path, &with_hostile_text(&bytes, random)).map(|()| "hostile text"),
    }
}

fn flipped(mut bytes: Vec<u8>, random: &mut Rng) -> Vec<u8> {
    for _ in 0..random.usize(1..20) {
        if !bytes.is_empty() {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
    }
    bytes
}

/// Replaces some strings or numbers of a JSON document, which stays well-formed.
fn with_hostile_text(bytes: &[u8], random: &mut Rng) -> Vec<u8> {
    let Ok(mut document) = serde_json::from_slice(bytes) else { return flipped(bytes.to_vec(), random) };
    let rate = random.f64() * 0.2;
    replace(&mut document, rate, random);
    document.to_string().into_bytes()
}

fn replace(value: &mut serde_json::Value, rate: f64, random: &mut Rng) {
    use serde_json::{Value, json};
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, rate, random)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, rate, random)),
        _ if random.f64() < rate => {
            *value = match random.u8(..8) {
                0 => json!(-1),
                1 => json!(1e308),
                2 => json!(u64::MAX),
                3 => Value::Null,
                4 => json!("x".repeat(random.usize(..300_000))),
                _ => json!(TEXTS[random.usize(..TEXTS.len())]),
            }
        }
        _ => {}
    }
}

/// Nothing in the output steers a terminal, and no panic is hidden in it.
fn is_harmless(ended: &Ended) -> Outcome {
    for text in [&ended.stdout, &ended.stderr] {
        let odd = text.chars().find(|c| *c != '\n' && counterproof_artifact::is_invisible(*c));
        ensure!(odd.is_none(), "{} prints {odd:?}", ended.line);
    }
    Ok(())
}
