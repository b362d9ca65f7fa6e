//! `check` with an agent that runs already: verdicts, exit codes, selections and formats.

use std::process::Stdio;
use std::time::{Duration, Instant};

use counterproof_store::write::{Durability, write};
use counterproof_tests::{Agent, Finished, Reply, Sandbox, minimal_answer};
use serde_json::{Value, json};

const CONFIG: &str = "[run]\ncases = \"cases.yaml\"\n";

const CASES: &str = "\
- {id: refund_lamp, input: {user: lamp}, expected: {must_include: [refunded]}, metadata: {tags: [money]}, suite: shop}
- {id: refund_chair, input: {user: chair}, expected: {must_include: [refunded]}, suite: shop/chairs}
- {id: hours, input: {user: hours}}
";

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("cases.yaml", CASES).with_file("counterproof.toml", CONFIG)
}

/// An agent that does its work in all cases but these.
fn agent(failing: &'static [&'static str]) -> Agent {
    Agent::start(move |case| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!(if failing.contains(&case) { "sorry" } else { "refunded" });
        Reply::json(&answer)
    })
}

fn check(sandbox: &Sandbox, agent: &Agent, more: &[&str]) -> Finished {
    let url = agent.base_url();
    sandbox.run(["check", "--base-url", &url].iter().chain(more))
}

fn accept(sandbox: &Sandbox) {
    let accepted = sandbox.run(["accept", "--reason", "good"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
}

fn document(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

#[test]
fn without_a_baseline_the_expectations_decide() {
    let sandbox = sandbox();
    let good = check(&sandbox, &agent(&[]), &[]);
    assert_eq!(good.code, Some(0), "{good}");
    insta::assert_snapshot!(good.stdout, @"
    no baseline: only the expectations and the answers of the new run are checked
    Gate passed: all 3 cases were answered, and the 2 with expectations meet them

    3 cases: 2 met · 1 without expectations

    report: report/index.html
    ");
    assert!(good.stderr.contains("counterproof accept --reason"), "{good}");
    let bad = check(&sandbox, &agent(&["refund_chair"]), &[]);
    assert_eq!(bad.code, Some(1), "{bad}");
    insta::assert_snapshot!(bad.stdout, @"
    no baseline: only the expectations and the answers of the new run are checked
    Gate failed: 1 case does not meet the expectations (refund_chair)
      refund_chair  unmet: must_include not met: “refunded” missing

    3 cases: 1 unmet · 1 met · 1 without expectations

    report: report/index.html
    ");
    for file in ["index.html", "junit.xml", "summary.md"] {
        assert!(sandbox.path("report").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_case_without_an_answer_fails_a_check_without_a_baseline() {
    let down = Agent::start(|case| match case {
        "hours" => Reply::text(400, "text/plain", "which hours?"),
        _ => Reply::json(&json!({"final_output": "refunded"})),
    });
    let finished = check(&sandbox(), &down, &[]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("Gate failed: 1 case has no answer (hours)"), "{finished}");
    assert!(finished.stderr.contains("hours: client_error 400: which hours?"), "{finished}");
}

#[test]
fn a_change_for_the_worse_is_confirmed_and_fails_or_is_undecided() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    let same = check(&sandbox, &agent(&[]), &[]);
    assert!(same.code == Some(0) && same.stdout.starts_with("Gate passed: no case got worse"), "{same}");
    // One run of the baseline cannot convict a case, but a case that always fails is never green.
    let undecided = check(&sandbox, &agent(&["refund_lamp"]), &[]);
    assert!(undecided.code == Some(1) && undecided.stdout.starts_with("Gate undecided: 1 case fails"), "{undecided}");
    assert!(undecided.stdout.contains("to decide: record a longer baseline"), "{undecided}");
    let longer = sandbox.run(["run", "--side", "baseline", "--repeat", "4", "--base-url", &agent(&[]).base_url()]);
    assert_eq!(longer.code, Some(0), "{longer}");
    let failed = check(&sandbox, &agent(&["refund_lamp"]), &[]);
    assert!(failed.code == Some(1) && failed.stdout.starts_with("Gate failed: 1 case always fails"), "{failed}");
}

#[test]
fn without_confirmation_the_headline_is_not_an_all_clear_and_names_the_command_that_decides() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    let bad = agent(&["refund_lamp"]);
    let decide = format!("to decide: counterproof check --confirm auto --base-url {}\n", bad.base_url());
    for options in [&["--confirm", "off"][..], &["--confirm", "off", "--quiet"]] {
        let open = check(&sandbox, &bad, options);
        assert_eq!(open.code, Some(0), "{open}");
        assert!(open.stdout.starts_with("Not confirmed: 1 case looks worse, and one run does"), "{open}");
        assert!(open.stdout.contains(&decide), "{open}");
    }
}

#[test]
fn the_configured_baseline_runs_if_none_is_stored_and_confirms() {
    let (old, new) = (agent(&[]), agent(&["refund_lamp"]));
    let config = format!(
        "{CONFIG}[side.baseline]\nbase_url = \"{}\"\n[side.new]\nbase_url = \"{}\"\n",
        old.base_url(),
        new.base_url()
    );
    let sandbox = sandbox().with_file("counterproof.toml", &config);
    let finished = sandbox.run(["check", "--format", "json"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    let found = document(&finished);
    assert_eq!((&found["outcome"], &found["exit_code"]), (&json!("failed"), &json!(1)), "{found:#}");
    let lamp = found["cases"].as_array().unwrap().iter().find(|case| case["case_id"] == "refund_lamp").unwrap();
    assert_eq!((&lamp["verdict"], &lamp["met"]), (&json!("regressed"), &json!(false)));
    assert!(found["baseline"].is_string() && found["run"].as_str().unwrap().starts_with("runs/new/"), "{found:#}");
}

#[test]
fn a_limit_on_tokens_holds_for_all_runs_of_a_check() {
    let agent = |content: &'static str| {
        Agent::start(move |_| {
            let mut answer = minimal_answer();
            answer["final_output"]["content"] = content.into();
            answer["usage"] = json!({"input_tokens": 9, "output_tokens": 1});
            Reply::json(&answer)
        })
    };
    for (limit, asked, message) in [
        ("60", (3, 3), "the answers used 60 tokens, and the limit is 60; the confirmation ends here"),
        ("30", (3, 0), "the answers used 30 tokens, and the limit is 30; the other cases did not run"),
    ] {
        let (old, new) = (agent("refunded"), agent("sorry"));
        let (old_url, new_url) = (old.base_url(), new.base_url());
        let sides = format!("[side.baseline]\nbase_url = \"{old_url}\"\n[side.new]\nbase_url = \"{new_url}\"\n");
        let sandbox = sandbox().with_file("counterproof.toml", &format!("{CONFIG}{sides}"));
        let finished = sandbox.run(["check", "--concurrency", "1", "--max-tokens", limit]);
        assert_eq!(finished.code, Some(1), "{finished}");
        assert!(finished.stderr.contains(message), "{finished}");
        assert_eq!((old.requests().len(), new.requests().len()), asked, "{finished}");
    }
}

#[test]
fn a_selection_is_compared_with_the_same_cases_of_the_baseline() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    for (options, asked) in [
        (&["--only", "refund*"][..], &["refund_chair", "refund_lamp"][..]),
        (&["--tag", "money"], &["refund_lamp"]),
        (&["--suite", "shop"], &["refund_chair", "refund_lamp"]),
        (&["--suite", "shop/chairs"], &["refund_chair"]),
    ] {
        let agent = agent(&[]);
        let finished = check(&sandbox, &agent, options);
        assert_eq!(finished.code, Some(0), "{options:?}: {finished}");
        let mut ids: Vec<_> =
            agent.requests().iter().map(|request| request["case_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        assert_eq!(ids, asked, "{options:?}");
        assert!(finished.stdout.contains(&format!("{} case", asked.len())), "{finished}");
    }
    let unknown = check(&sandbox, &agent(&[]), &["--only", "refund_lmap"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("cases with other IDs are refund_lamp"), "{unknown}");
    // The runs above are of selections.
    let accepted = sandbox.run(["accept", "--reason", "again", "--run-id", "second"]);
    assert!(accepted.stderr.contains("ran a selection of the cases"), "{accepted}");
}

#[test]
fn a_case_that_was_added_after_the_baseline_is_judged_by_its_expectations() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    let added = "- {id: refund_table, input: {user: table}, expected: {must_include: [refunded]}}\n";
    write(&sandbox.path("cases.yaml"), format!("{CASES}{added}").as_bytes(), Durability::Cached).unwrap();
    for options in [&[][..], &["--only", "refund_table"], &["--only", "refund*"]] {
        let good = check(&sandbox, &agent(&[]), options);
        assert_eq!(good.code, Some(0), "{good}");
        assert!(good.stdout.starts_with("Gate passed: no case got worse\n"), "{good}");
        assert!(good.stdout.contains("; 1 new case: judged by its expectations\n"), "{good}");
    }
    let bad = check(&sandbox, &agent(&["refund_table"]), &[]);
    assert_eq!(bad.code, Some(1), "{bad}");
    let lines: Vec<_> = bad.stdout.lines().take(2).collect();
    assert_eq!(
        lines,
        ["Gate failed: 1 new case fails", "  refund_table  new case, unmet: must_include not met: “refunded” missing"]
    );
    let file = |name: &str| std::fs::read_to_string(sandbox.path("report").join(name)).unwrap();
    assert!(file("junit.xml").contains("<failure message=\"new case, unmet: must_include"), "{}", file("junit.xml"));
    assert!(file("summary.md").contains("1 new case: judged by its expectations"), "{}", file("summary.md"));
    let again = agent(&["refund_table"]);
    assert_eq!((check(&sandbox, &again, &["--last-failed"]).code, again.requests().len()), (Some(1), 1));
    // A case that was removed from the file is not compared, and must not count as equal.
    write(&sandbox.path("cases.yaml"), added.as_bytes(), Durability::Cached).unwrap();
    let lost = check(&sandbox, &agent(&[]), &[]);
    assert!(lost.code == Some(1) && lost.stdout.starts_with("Gate failed: 3 cases are on one side only"), "{lost}");
    assert!(lost.stderr.contains("cases of the baseline are missing from this run"), "{lost}");
}

#[test]
fn the_cases_that_failed_run_again() {
    let sandbox = sandbox();
    let none = check(&sandbox, &agent(&[]), &["--last-failed"]);
    assert!(none.code == Some(2) && none.stderr.contains("there is no earlier check"), "{none}");
    check(&sandbox, &agent(&["refund_chair"]), &[]);
    let again = agent(&[]);
    assert_eq!(check(&sandbox, &again, &["--last-failed"]).code, Some(0));
    assert_eq!(again.requests().len(), 1);
    let nothing = check(&sandbox, &agent(&[]), &["--last-failed"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "no case failed in the last check\n"), "{nothing}");
    check(&sandbox, &agent(&["refund_chair", "refund_lamp"]), &[]);
    let sandbox = sandbox.with_file("cases.yaml", &CASES.replace("id: refund_chair", "id: refund_stool"));
    let lamp = agent(&["refund_lamp"]);
    let rest = check(&sandbox, &lamp, &["--last-failed"]);
    assert_eq!((rest.code, lamp.requests().len()), (Some(1), 1), "{rest}");
    assert!(rest.stderr.contains("cases of the last check that `cases.yaml` does not have: refund_chair"), "{rest}");
    let sandbox = sandbox.with_file("cases.yaml", "- {id: hours, input: {user: hours}}\n");
    let none = check(&sandbox, &agent(&[]), &["--last-failed"]);
    let said = "no case that failed in the last check is left\n";
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), said), "{none}");
}

#[test]
fn every_format_has_the_verdict() {
    let sandbox = sandbox();
    let bad = agent(&["refund_chair"]);
    let markdown = check(&sandbox, &bad, &["--format", "markdown"]);
    assert!(markdown.stdout.contains("\n## ✗ Gate failed: 1 case does not meet"), "{markdown}");
    let github = check(&sandbox, &bad, &["--format", "github"]);
    assert!(github.stdout.starts_with("::error title=refund_chair::must_include not met"), "{github}");
    let silent = Agent::start(|_| Reply::text(400, "text/plain", "which hours?"));
    let unanswered = check(&sandbox, &silent, &["--format", "github", "--only", "hours"]);
    assert!(unanswered.stdout.contains("::error title=hours::"), "{unanswered}");
    let quiet = check(&sandbox, &bad, &["--quiet"]);
    assert_eq!(quiet.stdout, "Gate failed: 1 case does not meet the expectations\n", "{quiet}");
    assert_eq!(quiet.stderr, "", "{quiet}");
    let verbose = check(&sandbox, &bad, &["-v"]);
    assert!(verbose.stderr.contains("refund_chair: ok at attempt 1"), "{verbose}");
    let coloured = check(&sandbox, &bad, &["--color", "always"]);
    assert!(coloured.stdout.contains("\u{1b}[1;31mGate failed"), "{coloured}");
}

#[test]
fn an_undecided_gate_is_a_warning_of_github() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    let undecided = check(&sandbox, &agent(&["refund_lamp"]), &["--format", "github"]);
    assert!(undecided.code == Some(1), "{undecided}");
    assert!(undecided.stdout.starts_with("::warning title=counterproof::Gate undecided: 1 case"), "{undecided}");
}

#[test]
fn a_check_that_fails_leaves_no_report_of_an_earlier_one() {
    let sandbox = sandbox();
    assert_eq!(check(&sandbox, &agent(&[]), &[]).code, Some(0));
    let report = sandbox.path("report");
    assert!(report.join("index.html").is_file());
    write(&report.join("notes.txt"), b"mine", Durability::Cached).unwrap();
    let unreachable = sandbox.run(["check", "--base-url", "http://127.0.0.1:1"]);
    assert_eq!(unreachable.code, Some(3), "{unreachable}");
    for file in ["index.html", "summary.md", "junit.xml", "ctrf.json", "evaluation.json", "cases"] {
        assert!(!report.join(file).exists(), "{file}");
    }
    assert!(report.join("notes.txt").is_file());
    assert_eq!(check(&sandbox, &agent(&[]), &[]).code, Some(0));
    assert!(report.join("index.html").is_file());
    // Cases that cannot be read end a check too.
    let sandbox = sandbox.with_file("cases.yaml", "- id: a\n");
    assert_eq!(check(&sandbox, &agent(&[]), &[]).code, Some(2));
    assert!(!report.join("index.html").exists() && report.join("notes.txt").is_file());
}

#[test]
fn an_error_is_a_json_document_too() {
    let sandbox = sandbox();
    for (arguments, code) in [
        (&["check", "--format", "json", "--base-url", "http://127.0.0.1:1"][..], 3),
        (&["check", "--format", "json", "--timeout", "soon"], 2),
        (&["check", "--format", "json", "--watch"], 2),
        (&["check", "--format", "json", "--config", "missing.toml"], 3),
    ] {
        let finished = sandbox.run(arguments);
        assert_eq!(finished.code, Some(code), "{finished}");
        let found = document(&finished);
        assert_eq!((&found["outcome"], &found["exit_code"]), (&json!("error"), &json!(code)), "{found:#}");
        assert!(!found["message"].as_str().unwrap().is_empty(), "{found:#}");
    }
    let sandbox = sandbox.with_variable("COUNTERPROOF_FORMAT", "json");
    let by_variable = sandbox.run(["check", "--timeout", "soon"]);
    assert_eq!(document(&by_variable)["exit_code"], 2, "{by_variable}");
    let typed = sandbox.run(["check", "--timeout", "soon", "--format", "human"]);
    assert_eq!((typed.code, typed.stdout.as_str()), (Some(2), ""), "{typed}");
}

#[test]
fn an_option_beats_a_variable_and_a_variable_beats_the_file() {
    let sandbox = sandbox().with_file("counterproof.toml", &format!("{CONFIG}timeout = \"5s\"\nretries = 1\n"));
    let sandbox = sandbox.with_variable("COUNTERPROOF_TIMEOUT", "6s").with_variable("COUNTERPROOF_STRICT", "1");
    let shown = sandbox.run(["config", "show", "--format", "json", "--timeout", "7s"]);
    let values = document(&shown)["values"].clone();
    let of = |key: &str| values.as_array().unwrap().iter().find(|value| value["key"] == key).unwrap().clone();
    assert_eq!(
        of("run.timeout"),
        json!({"key": "run.timeout", "value": "7s", "origin": "flag", "source": "--timeout"})
    );
    assert_eq!(of("run.strict")["source"], "COUNTERPROOF_STRICT");
    assert_eq!(of("run.retries")["source"], "counterproof.toml:4");
    assert_eq!(of("run.concurrency")["origin"], "default");
    let unreadable = sandbox.with_variable("COUNTERPROOF_RETRIES", "many").run(["config", "show"]);
    assert!(unreadable.code == Some(2) && unreadable.stderr.contains("`COUNTERPROOF_RETRIES`"), "{unreadable}");
}

#[test]
fn a_file_for_both_sides_confirms_new_and_repeats_the_baseline() {
    let agent = agent(&[]);
    let config = format!("{CONFIG}confirm = \"auto\"\nrepeat = 2\n[side.new]\nbase_url = \"{}\"\n", agent.base_url());
    let sandbox = sandbox().with_file("counterproof.toml", &config);
    let baseline = sandbox.run(["run", "--side", "baseline", "--run-id", "b"]);
    assert_eq!(baseline.code, Some(0), "{baseline}");
    assert!(sandbox.path("runs/baseline/b-r2").is_dir(), "{baseline}");
    let new = sandbox.run(["run", "--side", "new", "--run-id", "n"]);
    assert!(new.code == Some(0) && sandbox.path("runs/new/n").is_dir(), "{new}");
    assert!(new.stderr.contains("nothing to confirm"), "{new}");
    let typed = sandbox.run(["run", "--side", "new", "--run-id", "m", "--repeat", "3"]);
    assert!(typed.code == Some(0) && sandbox.path("runs/new/m-r3").is_dir(), "{typed}");
}

#[test]
fn an_option_names_the_agent_of_the_side_that_runs() {
    let agent = agent(&[]);
    let config = format!("{CONFIG}[side.new]\nstart = \"false\"\n");
    let sandbox = sandbox().with_file("counterproof.toml", &config);
    let url = agent.base_url();
    for side in ["baseline", "new"] {
        let finished = sandbox.run(["run", "--side", side, "--base-url", &url, "--confirm", "off"]);
        assert_eq!(finished.code, Some(0), "{finished}");
    }
    assert_eq!(agent.requests().len(), 6, "nothing else was started");
    let by_variable = sandbox.with_variable("COUNTERPROOF_SIDE", "baseline").run(["run", "--base-url", &url]);
    assert!(by_variable.code == Some(0) && by_variable.stdout.contains("runs/baseline/"), "{by_variable}");
}

#[test]
fn a_baseline_that_cannot_be_read_ends_the_check() {
    let sandbox = sandbox().with_file("runs/baseline/b/run.json", "version https://git-lfs.github.com/spec/v1\n");
    let finished = check(&sandbox, &agent(&[]), &[]);
    assert_eq!(finished.code, Some(3), "{finished}");
    assert!(finished.stderr.contains("runs/baseline/b/run.json"), "{finished}");
}

#[test]
fn a_baseline_that_a_check_runs_has_all_cases() {
    let agent = agent(&[]);
    let config = format!("{CONFIG}[side.baseline]\nbase_url = \"{}\"\n", agent.base_url());
    let sandbox = sandbox().with_file("counterproof.toml", &config);
    let finished = check(&sandbox, &agent, &["--only", "hours"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_eq!(agent.requests().len(), 4, "three of the baseline, and one of new");
    let whole = check(&sandbox, &agent, &[]);
    assert!(whole.code == Some(0) && whole.stdout.contains("3 cases"), "{whole}");
}

#[test]
fn a_run_whose_gate_failed_is_not_added_to_its_baseline() {
    let sandbox = sandbox();
    check(&sandbox, &agent(&[]), &[]);
    accept(&sandbox);
    assert_eq!(check(&sandbox, &agent(&["refund_lamp"]), &[]).code, Some(1));
    let added = sandbox.run(["accept", "--append", "--reason", "more"]);
    assert!(added.code == Some(1) && added.stderr.contains("Gate undecided"), "{added}");
    let replaced = sandbox.run(["accept", "--reason", "wanted"]);
    assert!(replaced.code == Some(0) && replaced.stderr.contains("warning: accepting a run"), "{replaced}");
}

#[test]
fn a_misspelt_expectation_is_not_valid() {
    let sandbox = sandbox().with_file("cases.yaml", "- {id: a, input: {user: x}, expected: {must_inclde: [y]}}\n");
    let finished = sandbox.run(["validate", "cases.yaml"]);
    assert!(finished.code == Some(1) && finished.stdout.contains("must_inclde"), "{finished}");
}

#[test]
fn values_of_headers_and_variables_are_not_shown() {
    let side = "[side.new]\nbase_url = \"http://user:s3cret@agent/v1\"\nheaders = { A = \"s3cret\" }\nenv = { B = \"s3cret\" }\n";
    let sandbox = sandbox().with_file("counterproof.toml", &format!("{CONFIG}{side}"));
    let shown = sandbox.run(["config", "show"]);
    assert!(shown.code == Some(0) && shown.stdout.contains("side.new.headers"), "{shown}");
    assert!(!shown.to_string().contains("s3cret"), "{shown}");
}

#[test]
fn the_first_wrong_key_or_value_ends_every_command_before_anything_is_written() {
    for (text, said) in [
        ("[run]\ntimeot = \"1s\"\n", "counterproof.toml:2:10: unknown key `run.timeot`; did you mean `timeout`?"),
        ("[run]\nconcurrency = \"lots\"\n", "counterproof.toml:2:15: `run.concurrency`: "),
        ("[run]\nstrict = \"yes\"\n", "counterproof.toml:2:10: `run.strict`: expected `true` or `false`"),
        ("[side.new]\nbase_ulr = \"x\"\n", "counterproof.toml:2:1: unknown key `base_ulr`; did you mean `base_url`?"),
        ("[side.new]\nprotocol = \"grpc\"\n", "counterproof.toml:2:12: "),
        (
            "[side.new]\nstart = 3\n",
            "counterproof.toml:2:9: `side.new.start`: invalid type: integer `3`, expected a string",
        ),
        ("[side.nwe]\n", "counterproof.toml:1:"),
        ("[gate]\nlost = true\n", "counterproof.toml:2:8: "),
        ("[run\n", "counterproof.toml:1:"),
    ] {
        let sandbox = Sandbox::new().with_file("cases.yaml", CASES).with_file("counterproof.toml", text);
        for command in [&["check"][..], &["run", "--side", "new"], &["try", "--input", "hello"]] {
            let finished = sandbox.run(command);
            assert_eq!(finished.code, Some(2), "{text}: {finished}");
            assert!(finished.stderr.contains(said), "{text}: {finished}");
        }
        assert!(!sandbox.path("runs").exists() && !sandbox.path("report").exists(), "{text}");
        let validated = sandbox.run(["validate", "counterproof.toml"]);
        assert!(validated.code == Some(1) && validated.stdout.contains("counterproof.toml:"), "{text}: {validated}");
    }
}

#[test]
fn init_writes_a_valid_project_and_never_overwrites() {
    for agent in ["http", "openai", "command", "mcp"] {
        let sandbox = Sandbox::new().with_file(".gitignore", "target");
        let first = sandbox.run(["init", "--agent", agent, "--ci", "github"]);
        assert_eq!(first.code, Some(0), "{first}");
        assert!(sandbox.path(".github/workflows/counterproof.yml").is_file(), "{first}");
        let valid = sandbox.run(["validate", "cases.yaml", "counterproof.toml"]);
        assert_eq!(valid.code, Some(0), "{valid}");
        let ignored = std::fs::read_to_string(sandbox.path(".gitignore")).unwrap();
        assert!(ignored.starts_with("target\n/runs/*\n!/runs/baseline/\n"), "{ignored}");
        write(&sandbox.path("cases.yaml"), b"# mine\n", Durability::Cached).unwrap();
        let second = sandbox.run(["init"]);
        assert!(second.code == Some(0) && second.stdout.contains("unchanged  cases.yaml exists"), "{second}");
        assert_eq!(std::fs::read_to_string(sandbox.path("cases.yaml")).unwrap(), "# mine\n");
        assert_eq!(std::fs::read_to_string(sandbox.path(".gitignore")).unwrap(), ignored);
    }
}

#[test]
fn the_program_alone_names_the_commands_to_start_with() {
    let finished = Sandbox::new().run(Vec::<&str>::new());
    assert_eq!(finished.code, Some(0), "{finished}");
    let commands: Vec<_> =
        ["init", "try", "check", "accept"].map(|name| finished.stdout.find(&format!("counterproof {name}"))).into();
    assert!(commands.iter().all(Option::is_some) && commands.is_sorted(), "{finished}");
}

#[cfg(unix)]
#[test]
fn a_changed_case_runs_alone_until_the_watch_is_interrupted() {
    let sandbox = sandbox().with_file("more/cases.yaml", "- {id: other, input: {user: x}}\n");
    let agent = agent(&[]);
    let url = agent.base_url();
    let mut child = sandbox
        .command(["check", "--watch", "--base-url", &url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let wait_until = |is_done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed() < Duration::from_mins(1), "{} requests", agent.requests().len());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until(&|| agent.requests().len() == 3);
    // Written until it is noticed: the watch starts at an unknown time.
    let start = Instant::now();
    let mut number = 0;
    while agent.requests().len() < 4 {
        assert!(start.elapsed() < Duration::from_mins(1), "the change was not noticed");
        number += 1;
        let changed = CASES.replace("user: hours", &format!("user: hours {number}"));
        write(&sandbox.path("cases.yaml"), changed.as_bytes(), Durability::Cached).unwrap();
        std::thread::sleep(Duration::from_millis(700));
    }
    assert!(agent.requests()[3..].iter().all(|request| request["case_id"] == "hours"));
    // A changed configuration runs all cases, and the file that it names is watched from then on.
    let put = |path: &str, text: &str| write(&sandbox.path(path), text.as_bytes(), Durability::Cached).unwrap();
    let has_asked = |id: &str| agent.requests().iter().any(|request| request["case_id"] == id);
    put("counterproof.toml", "[run]\ncases = \"more/cases.yaml\"\n");
    wait_until(&|| has_asked("other"));
    put("more/cases.yaml", "- {id: other, input: {user: x}}\n- {id: added, input: {user: x}}\n");
    wait_until(&|| has_asked("added"));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0), "the code of the last verdict");
}
