//! What a guard warns about when it starts.

use std::process::Stdio;

use crate::guard_kit::GuardFolder;

/// Starts a shim, ends it, and returns its warnings.
fn warnings(folder: &GuardFolder) -> String {
    let (status, stderr) = folder.start().close();
    assert!(status.success(), "{stderr}");
    stderr.replace(folder.sandbox.root().as_str(), "ROOT")
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
    let mut proxy = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(proxy.stderr.as_mut().unwrap()), &mut line).unwrap();
    proxy.kill().unwrap();
    proxy.wait().unwrap();
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
