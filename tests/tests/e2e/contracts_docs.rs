//! Runs the tutorial of `docs/contracts.md`: its files are written, and its commands are run and print what the page shows.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, write};
use counterproof_tests::{Sandbox, program};

/// In the page, this means any text within a line, and any lines on a line of its own.
const ANYTHING: char = '…';

/// A fenced block: the words after the fence, and its lines.
struct Block {
    info: String,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(info), None) => open = Some(Block { info: info.to_owned(), lines: Vec::new() }),
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

/// A shell session in which the working directory stays.
struct Session<'s> {
    sandbox: &'s Sandbox,
    folder: Utf8PathBuf,
}

impl Session<'_> {
    /// Runs a command. Returns the lines of both streams, and the exit code if it is not 0.
    fn run(&mut self, line: &str) -> Vec<String> {
        let place = self.sandbox.path(".folder");
        let script = format!("{line}\ncode=$?\npwd > '{place}'\nexit $code");
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = program().parent().unwrap().display().to_string();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1\n{script}")]).current_dir(&self.folder);
        command.env("PATH", format!("{folder}:{path}")).env("HOME", self.sandbox.root());
        command.env("COUNTERPROOF_LOCKS", self.sandbox.path("locks")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        match output.status.code() {
            Some(0) => {}
            code => lines.push(format!("exit code {}", code.unwrap_or(-1))),
        }
        self.folder = std::fs::read_to_string(place).unwrap().trim().into();
        lines
    }
}

fn matches_line(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split(ANYTHING);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn matches_lines(pattern: &[String], lines: &[String]) -> bool {
    match (pattern.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.chars().eq([ANYTHING]) => {
            (0..=lines.len()).any(|skipped| matches_lines(rest, &lines[skipped..]))
        }
        (Some((pattern, patterns)), Some((line, lines))) => {
            matches_line(pattern, line) && matches_lines(patterns, lines)
        }
        _ => false,
    }
}

#[test]
fn the_tutorial_on_contracts_works_as_it_is_written() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/contracts.md")).unwrap();
    let (start, end) = (page.find("## Tutorial").unwrap(), page.find("## Commands").unwrap());
    let sandbox = Sandbox::new();
    let mut session = Session { sandbox: &sandbox, folder: sandbox.root().to_owned() };
    let mut commands = 0;
    for block in blocks(&page[start..end]) {
        match block.info.split_once(' ') {
            Some((_, file)) => {
                let text = block.lines.join("\n") + "\n";
                write(&session.folder.join(file), text.as_bytes(), Durability::Cached).unwrap();
            }
            None if block.info == "console" => {
                let starts: Vec<usize> =
                    (0..block.lines.len()).filter(|index| block.lines[*index].starts_with("$ ")).collect();
                for (number, start) in starts.iter().enumerate() {
                    let end = starts.get(number + 1).copied().unwrap_or(block.lines.len());
                    let printed = session.run(&block.lines[*start][2..]);
                    let expected = &block.lines[start + 1..end];
                    assert!(
                        matches_lines(expected, &printed),
                        "{}\nexpected:\n{}\nprinted:\n{}",
                        block.lines[*start],
                        expected.join("\n"),
                        printed.join("\n")
                    );
                    commands += 1;
                }
            }
            None => panic!("a block of the tutorial is neither a file nor a session: {}", block.info),
        }
    }
    assert!(commands >= 12, "{commands}");
}

#[test]
fn the_page_states_the_transitions_and_error_codes_of_the_program() {
    use counterproof_contracts::{State, StateChange};

    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/contracts.md")).unwrap();
    let table = &page[page.find("## States").unwrap()..];
    let names = |cell: &str| -> Vec<State> {
        cell.split(',').filter_map(|name| name.trim().trim_matches('`').parse().ok()).collect()
    };
    let mut stated = Vec::new();
    for row in
        table.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = row.split('|').collect();
        for from in names(cells[1]) {
            stated.extend(names(cells[2]).into_iter().map(|to| (from, to)));
        }
    }
    let mut real: Vec<(State, State)> =
        State::ALL.into_iter().flat_map(|from| StateChange::targets(from).map(move |to| (from, to))).collect();
    stated.sort();
    real.sort();
    assert_eq!(stated, real);
}
