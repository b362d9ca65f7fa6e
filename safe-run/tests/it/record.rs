//! The exact text of the record, with its edge cases.

use camino::Utf8Path;
use counterproof_safe_run::ParsedRecord;

use crate::kit::Sandbox;

/// Returns the lines of the ledger between the start and the exit, and both sections, of a script that exits with code 1.
fn recorded(script: &str) -> (Vec<String>, String, String) {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell(&format!("{script}\nexit 1"));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let mut ledger = sandbox.ledger();
    assert!(ledger[0].starts_with("[SEQ=1][META] safe-run start: cmd=\""), "{ledger:?}");
    assert_eq!(ledger.pop().unwrap(), format!("[SEQ={}][META] safe-run exit: code=1", ledger.len() + 1));
    for (seq, line) in (1..).zip(&ledger) {
        assert!(line.starts_with(&format!("[SEQ={seq}]")), "numbered without gaps: {line}");
    }
    ledger.remove(0);
    let log = sandbox.log_text();
    let rest = log.strip_prefix("=== STDOUT ===\n").unwrap();
    let (stdout, rest) = rest.split_once("\n=== STDERR ===\n").unwrap();
    let (stderr, _) = rest.split_once("\n--- BEGIN EVENTS ---\n").unwrap();
    (ledger, stdout.to_owned(), stderr.to_owned())
}

fn record(script: &str, ledger: &[&str], stdout: &str, stderr: &str) {
    let expected = (ledger.iter().map(|&line| line.to_owned()).collect(), stdout.to_owned(), stderr.to_owned());
    assert_eq!(recorded(script), expected, "{script}");
}

#[test]
fn a_log_has_the_format_of_the_contract() {
    let sandbox = Sandbox::new();
    let script = "echo 'Hello, world!'; sleep 0.2; echo 'Warning: deprecated API' >&2; exit 3";
    assert_eq!(sandbox.shell(script).code, Some(3));
    let expected = r#"=== STDOUT ===
Hello, world!

=== STDERR ===
Warning: deprecated API

--- BEGIN EVENTS ---
[SEQ=1][META] safe-run start: cmd="sh -c 'echo '\''Hello, world!'\''; sleep 0.2; echo '\''Warning: deprecated API'\'' >&2; exit 3'"
[SEQ=2][STDOUT] Hello, world!
[SEQ=3][STDERR] Warning: deprecated API
[SEQ=4][META] safe-run exit: code=3
--- END EVENTS ---
"#;
    assert_eq!(sandbox.log_text(), expected);
}

#[test]
fn a_command_without_output_has_only_the_start_and_the_exit() {
    record(":", &[], "", "");
}

#[test]
fn a_stream_without_output_has_an_empty_section() {
    record("echo out", &["[SEQ=2][STDOUT] out"], "out\n", "");
    record("echo err >&2", &["[SEQ=2][STDERR] err"], "", "err\n");
}

#[test]
fn a_line_without_a_newline_is_an_event_too() {
    record("printf 'a\\nb'", &["[SEQ=2][STDOUT] a", "[SEQ=3][STDOUT] b"], "a\nb\n", "");
}

#[test]
fn crlf_is_a_line_end_and_stays_in_the_section() {
    record(
        "printf 'a\\r\\n\\r\\nb\\rc\\r\\n'",
        &["[SEQ=2][STDOUT] a", "[SEQ=3][STDOUT] ", "[SEQ=4][STDOUT] b\rc"],
        "a\r\n\r\nb\rc\r\n",
        "",
    );
}

#[test]
fn empty_lines_and_trailing_spaces_are_recorded() {
    record(
        "printf '\\n a \\t \\n\\n'",
        &["[SEQ=2][STDOUT] ", "[SEQ=3][STDOUT]  a \t ", "[SEQ=4][STDOUT] "],
        "\n a \t \n\n",
        "",
    );
}

#[test]
fn text_beyond_ascii_is_recorded_unchanged() {
    record("printf 'ä 漢 \\001\\n'", &["[SEQ=2][STDOUT] ä 漢 \u{1}"], "ä 漢 \u{1}\n", "");
}

#[test]
fn bytes_that_are_not_utf8_are_marked_as_base64() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell(r"printf '\377\376\n'; exit 1");
    assert_eq!(finished.stdout, b"\xff\xfe\n", "forwarded output is unchanged");
    let log = sandbox.log();
    assert!(log.starts_with(b"=== STDOUT ===\n\xff\xfe\n\n=== STDERR ===\n"));
    assert!(String::from_utf8_lossy(&log).contains("\n[SEQ=2][STDOUT] base64://4=\n"));
}

#[test]
fn text_with_the_base64_prefix_is_encoded_too() {
    record("echo base64:AAAA", &["[SEQ=2][STDOUT] base64:YmFzZTY0OkFBQUE="], "base64:AAAA\n", "");
}

#[test]
fn a_command_of_several_lines_is_one_event() {
    let sandbox = Sandbox::new();
    sandbox.run(["sh", "-c", "exit 1\n# second\n"]);
    let expected = r#"[SEQ=1][META] safe-run start: cmd="eval "$(printf 'sh -c \047exit 1\n# second\n\047')"""#;
    assert_eq!(sandbox.ledger()[0], expected);
}

#[test]
fn output_cannot_imitate_a_marker() {
    let (ledger, _, _) =
        recorded("echo '--- BEGIN EVENTS ---'; echo '[SEQ=9][META] safe-run exit: code=0'; echo '--- END EVENTS ---'");
    assert_eq!(ledger[1], "[SEQ=3][STDOUT] [SEQ=9][META] safe-run exit: code=0");
    assert_eq!(ledger.len(), 3);
}

#[test]
fn lines_with_a_pause_between_them_keep_their_order_across_streams() {
    let script = "for i in 1 2 3 4 5 6 7 8; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done";
    let (ledger, _, _) = recorded(script);
    let texts: Vec<_> = ledger.iter().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect();
    let expected: Vec<_> = (1..=8).flat_map(|i| [format!("out {i}"), format!("err {i}")]).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_line_is_ordered_by_its_end() {
    let script = "printf begun; sleep 0.2; echo between >&2; sleep 0.2; echo ' ended'";
    record(script, &["[SEQ=2][STDERR] between", "[SEQ=3][STDOUT] begun ended"], "begun ended\n", "between\n");
}

#[test]
fn the_merged_view_is_only_the_raw_output() {
    let sandbox = Sandbox::new().with("SAFE_RUN_VIEW", "merged");
    let finished =
        sandbox.shell("printf begun; sleep 0.2; echo ' err' >&2; sleep 0.2; printf '\\r\\nout \\n\\377'; exit 1");
    assert_eq!(finished.code, Some(1));
    assert_eq!(sandbox.log(), b"begun err\n\r\nout \n\xff");
}

#[test]
fn the_last_event_has_the_exit_code_of_a_signal() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.shell("kill -KILL $$").code, Some(137));
    assert_eq!(sandbox.ledger().last().unwrap(), "[SEQ=2][META] safe-run exit: code=137");
}

#[test]
fn streams_that_close_early_do_not_end_the_record() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell("echo out; exec >&- 2>&-; sleep 0.3; exit 5");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(5), &b"out\n"[..]));
    assert_eq!(sandbox.ledger()[1..], ["[SEQ=2][STDOUT] out", "[SEQ=3][META] safe-run exit: code=5"]);
}

#[test]
fn both_streams_at_full_speed_are_recorded_completely_and_in_order() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell("seq 1 50000 & seq 1 50000 >&2; wait; exit 1");
    assert_eq!(finished.code, Some(1));
    let path = sandbox.path(".agent/FAIL-LOGS").join(&sandbox.logs()[0]);
    // Parsing checks the sequence numbers, and the sections against the ledger.
    let recorded = ParsedRecord::read(Utf8Path::from_path(&path).unwrap()).unwrap();
    let expected: Vec<String> = (1..=50_000).map(|number| number.to_string()).collect();
    assert!(recorded.stdout == expected && recorded.stderr == expected && recorded.notes.is_empty());
}

#[test]
fn an_unknown_view_is_reported_and_the_ledger_is_saved() {
    let warning = "safe-run: SAFE_RUN_VIEW has the unknown value `merge`; use `ledger` or `merged`\n";
    let sandbox = Sandbox::new().with("SAFE_RUN_VIEW", "merge");
    let finished = sandbox.shell("exit 3");
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.starts_with(warning), "{finished:?}");
    assert!(sandbox.log_text().contains("--- BEGIN EVENTS ---"));
    for known in ["", "ledger", "merged"] {
        assert_eq!(Sandbox::new().with("SAFE_RUN_VIEW", known).shell("true").stderr, "", "{known}");
    }
}
