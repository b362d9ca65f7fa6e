//! What a guard warns about when it starts.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};

use crate::guard_kit::GuardFolder;

/// Starts a shim, ends it, and returns its warnings.
fn warnings(folder: &GuardFolder) -> String {
    let (status, stderr) = folder.start().close();
    assert!(status.success(), "{stderr}");
    stderr.replace(folder.sandbox.root().as_str(), "ROOT")
}

/// Starts a proxy, and returns the first line of the stream that is a pipe.
fn first_line(command: &mut Command) -> String {
    let mut proxy = command.spawn().unwrap();
    let mut line = String::new();
    let stdout = proxy.stdout.take().map(|it| Box::new(it) as Box<dyn Read>);
    let stream = stdout.or_else(|| proxy.stderr.take().map(|it| Box::new(it) as Box<dyn Read>));
    BufReader::new(stream.unwrap()).read_line(&mut line).unwrap();
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    line
}

#[test]
fn a_proxy_listens_on_a_host_name_and_warns_about_the_network() {
    let folder = GuardFolder::new();
    let command = |address: &str| {
        let arguments = ["guard", "proxy", "--listen", address, "--upstream", "http://127.0.0.1:9/mcp"];
        folder.sandbox.command([&arguments[..], &["--server-name", "test"]].concat())
    };
    let line = first_line(command("localhost:0").stdout(Stdio::piped()).stderr(Stdio::null()));
    assert!(line.starts_with("the proxy for test listens on http://127.0.0.1:"), "{line}");
    let line = first_line(command("0.0.0.0:0").stdout(Stdio::null()).stderr(Stdio::piped()));
    assert!(line.starts_with("warning: every program that can reach 0.0.0.0:") && line.contains("`test`"), "{line}");
    let arguments = ["guard", "proxy", "--listen", "none.invalid:0", "--upstream", "http://127.0.0.1:9/mcp"];
    let unknown = folder.sandbox.run([&arguments[..], &["--server-name", "test"]].concat());
    assert!(unknown.stderr.starts_with("error: cannot resolve the host of `none.invalid:0`: "), "{unknown}");
    assert_eq!(unknown.code, Some(3));
}

#[test]
fn files_that_do_not_exist_have_code_3_and_no_temporary_names() {
    let folder = GuardFolder::new();
    let shim = |option: &str, path: &str| {
        let arguments = ["guard", "shim", "--server-name", "test", option, path, "--", "true"];
        folder.sandbox.run(arguments)
    };
    for option in ["--policy", "--secrets", "--replay"] {
        let finished = shim(option, "none.yaml");
        assert!(finished.code == Some(3) && finished.stderr.contains("none.yaml"), "{finished}");
    }
    let finished = shim("--events", "none/events.jsonl");
    insta::assert_snapshot!(finished, @"
    exit code: 3
    --- stderr
    error: failed to write the event to `none/events.jsonl`
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn a_policy_that_cannot_apply_is_a_warning_of_the_shim() {
    let selects = "policy_id: p\nversion: '1'\nmode: guardrails\nselectors: {client: [claude]}\nrules: [{rule_id: a, kind: deny}]\n";
    let folder = GuardFolder::new().with_policy(selects);
    insta::assert_snapshot!(warnings(&folder), @"
    warning: no rule of the policy `policy.yaml` can apply to server `test`: selector `client` needs `claude`, and the run has `unknown`
    ");
    // As an import writes it, and as `guard run` sets the variable.
    let folder = folder.with_option("--client", "claude").with_variable("SUB_CLIENT", "custom");
    assert_eq!(warnings(&folder), "");
    assert_eq!(folder.events().last().unwrap()["client"], "claude");
    let folder = GuardFolder::new().with_rules("- {rule_id: a, kind: deny, match: {server_name: {glob: [git]}}}\n");
    insta::assert_snapshot!(warnings(&folder), @"
    warning: no rule of the policy `policy.yaml` can apply to server `test`: its rules have patterns for the names of other servers in `server_name`
    ");
}

#[test]
fn a_policy_that_cannot_apply_is_a_warning_of_the_proxy() {
    let folder = GuardFolder::new().with_rules("- {rule_id: a, kind: deny, match: {server_name: {glob: [git]}}}\n");
    let mut command = folder.proxy_command("http://127.0.0.1:9/mcp");
    let line = first_line(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    assert!(line.starts_with("warning: no rule of the policy `policy.yaml` can apply to server `test`"), "{line}");
}

#[test]
fn options_win_over_the_variables_of_a_run_with_a_warning() {
    let rules = "policy_id: other\nversion: '1'\nmode: guardrails\nrules: []\n";
    let folder = GuardFolder::new().with_rules("- {rule_id: a, kind: deny}\n").with_file("other.yaml", rules);
    let path = |name: &str| folder.sandbox.path(name).into_string();
    let same = [path("policy.yaml"), path("calls.db")];
    let other = [path("other.yaml"), path("other.db")];
    let folder = folder.with_option("--ledger", "calls.db");
    let folder = folder.with_variable("COUNTERPROOF_POLICY", &same[0]).with_variable("COUNTERPROOF_LEDGER", &same[1]);
    assert_eq!(warnings(&folder), "");
    let folder = folder.with_variable("COUNTERPROOF_POLICY", &other[0]).with_variable("COUNTERPROOF_LEDGER", &other[1]);
    insta::assert_snapshot!(warnings(&folder), @"
    warning: the policy `policy.yaml` of the option `--policy` is enforced, and not `ROOT/other.yaml` of the variable `COUNTERPROOF_POLICY`
    warning: events go to the ledger `calls.db` of the option `--ledger`, and not to `ROOT/other.db` of the variable `COUNTERPROOF_LEDGER`
    ");
    assert_eq!(folder.events()[0]["run"]["policy"]["policy_id"], "p");
}
