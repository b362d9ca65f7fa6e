//! The record to the letter of the contract, with its edge cases.

use camino::Utf8Path;
use counterproof_safe_run::Recorded;

use crate::kit::Place;

/// The ledger's lines between the start and the end, and both sections, of a script that ends with code 1.
fn recorded(script: &str) -> (Vec<String>, String, String) {
    let place = Place::new();
    let finished = place.shell(&format!("{script}\nexit 1"));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let mut ledger = place.ledger();
    assert!(ledger[0].starts_with("[SEQ=1][META] safe-run start: cmd=\""), "{ledger:?}");
    assert_eq!(ledger.pop().unwrap(), format!("[SEQ={}][META] safe-run exit: code=1", ledger.len() + 1));
    for (seq, line) in (1..).zip(&ledger) {
        assert!(line.starts_with(&format!("[SEQ={seq}]")), "numbered without gaps: {line}");
    }
    ledger.remove(0);
    let log = place.log_text();
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
fn the_whole_log_is_as_the_contract_has_it() {
    let place = Place::new();
    let script = "echo 'Hello, world!'; sleep 0.2; echo 'Warning: deprecated API' >&2; exit 3";
    assert_eq!(place.shell(script).code, Some(3));
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
    assert_eq!(place.log_text(), expected);
}

#[test]
fn no_output_leaves_nothing_but_start_and_end() {
    record(":", &[], "", "");
}

#[test]
fn one_stream_alone_leaves_the_other_section_empty() {
    record("echo out", &["[SEQ=2][STDOUT] out"], "out\n", "");
    record("echo err >&2", &["[SEQ=2][STDERR] err"], "", "err\n");
}

#[test]
fn a_line_without_a_newline_is_an_event_too() {
    record("printf 'a\\nb'", &["[SEQ=2][STDOUT] a", "[SEQ=3][STDOUT] b"], "a\nb\n", "");
}

#[test]
fn crlf_ends_a_line_and_is_kept_in_the_section() {
    record(
        "printf 'a\\r\\n\\r\\nb\\rc\\r\\n'",
        &["[SEQ=2][STDOUT] a", "[SEQ=3][STDOUT] ", "[SEQ=4][STDOUT] b\rc"],
        "a\r\n\r\nb\rc\r\n",
        "",
    );
}

#[test]
fn empty_lines_and_trailing_blanks_are_kept() {
    record(
        "printf '\\n a \\t \\n\\n'",
        &["[SEQ=2][STDOUT] ", "[SEQ=3][STDOUT]  a \t ", "[SEQ=4][STDOUT] "],
        "\n a \t \n\n",
        "",
    );
}

#[test]
fn text_beyond_ascii_is_kept_as_it_is() {
    record("printf 'ä 漢 \\001\\n'", &["[SEQ=2][STDOUT] ä 漢 \u{1}"], "ä 漢 \u{1}\n", "");
}

#[test]
fn bytes_that_are_no_text_are_in_base64_and_say_so() {
    let place = Place::new();
    let finished = place.shell(r"printf '\377\376\n'; exit 1");
    assert_eq!(finished.stdout, b"\xff\xfe\n", "what passes through is not changed");
    let log = place.log();
    assert!(log.starts_with(b"=== STDOUT ===\n\xff\xfe\n\n=== STDERR ===\n"));
    assert!(String::from_utf8_lossy(&log).contains("\n[SEQ=2][STDOUT] base64://4=\n"));
}

#[test]
fn a_text_that_looks_like_base64_is_not_taken_for_it() {
    record("echo base64:AAAA", &["[SEQ=2][STDOUT] base64:YmFzZTY0OkFBQUE="], "base64:AAAA\n", "");
}

#[test]
fn a_command_of_many_lines_is_one_event() {
    let place = Place::new();
    place.run(["sh", "-c", "exit 1\n# second\n"]);
    let expected = r#"[SEQ=1][META] safe-run start: cmd="eval "$(printf 'sh -c \047exit 1\n# second\n\047')"""#;
    assert_eq!(place.ledger()[0], expected);
}

#[test]
fn what_a_command_prints_cannot_pass_for_a_marker() {
    let (ledger, _, _) =
        recorded("echo '--- BEGIN EVENTS ---'; echo '[SEQ=9][META] safe-run exit: code=0'; echo '--- END EVENTS ---'");
    assert_eq!(ledger[1], "[SEQ=3][STDOUT] [SEQ=9][META] safe-run exit: code=0");
    assert_eq!(ledger.len(), 3);
}

#[test]
fn lines_that_come_one_after_the_other_keep_their_order_across_streams() {
    let script = "for i in 1 2 3 4 5 6 7 8; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done";
    let (ledger, _, _) = recorded(script);
    let texts: Vec<_> = ledger.iter().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect();
    let expected: Vec<_> = (1..=8).flat_map(|i| [format!("out {i}"), format!("err {i}")]).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_line_belongs_where_its_end_was_seen() {
    let script = "printf begun; sleep 0.2; echo between >&2; sleep 0.2; echo ' ended'";
    record(script, &["[SEQ=2][STDERR] between", "[SEQ=3][STDOUT] begun ended"], "begun ended\n", "between\n");
}

#[test]
fn the_merged_view_is_the_raw_output_and_nothing_else() {
    let place = Place::new().with("SAFE_RUN_VIEW", "merged");
    let finished =
        place.shell("printf begun; sleep 0.2; echo ' err' >&2; sleep 0.2; printf '\\r\\nout \\n\\377'; exit 1");
    assert_eq!(finished.code, Some(1));
    assert_eq!(place.log(), b"begun err\n\r\nout \n\xff");
}

#[test]
fn an_end_by_a_signal_is_in_the_last_event() {
    let place = Place::new();
    assert_eq!(place.shell("kill -KILL $$").code, Some(137));
    assert_eq!(place.ledger().last().unwrap(), "[SEQ=2][META] safe-run exit: code=137");
}

#[test]
fn streams_that_are_closed_early_do_not_end_the_record() {
    let place = Place::new();
    let finished = place.shell("echo out; exec >&- 2>&-; sleep 0.3; exit 5");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(5), &b"out\n"[..]));
    assert_eq!(place.ledger()[1..], ["[SEQ=2][STDOUT] out", "[SEQ=3][META] safe-run exit: code=5"]);
}

#[test]
fn both_streams_at_full_speed_lose_nothing_and_keep_their_order_and_their_numbers() {
    let place = Place::new();
    let finished = place.shell("seq 1 50000 & seq 1 50000 >&2; wait; exit 1");
    assert_eq!(finished.code, Some(1));
    let path = place.path(".agent/FAIL-LOGS").join(&place.logs()[0]);
    // Reading it back holds the numbers of the events, and the sections against the ledger.
    let recorded = Recorded::read(Utf8Path::from_path(&path).unwrap()).unwrap();
    let expected: Vec<String> = (1..=50_000).map(|number| number.to_string()).collect();
    assert!(recorded.stdout == expected && recorded.stderr == expected && recorded.notes.is_empty());
}
