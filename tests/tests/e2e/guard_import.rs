//! `counterproof guard import` and `restore`, as a person uses them.

use counterproof_tests::{Finished, Sandbox};
use serde_json::Value;

const CONFIG: &str = r#"{
  // Servers of all projects
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files-server"], "env": { "TOKEN": "hunter2-hunter2" } },
    "web": { "url": "https://example.com/mcp" }
  }
}
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let home = sandbox.root().to_string();
    sandbox
        .with_variable("HOME", &home)
        .with_variable("SUBLUMINAL_SHIM_PATH", "/opt/counterproof")
        .with_file(".cursor/mcp.json", CONFIG)
        .with_file("policy.yaml", "policy_id: p\nversion: 1.0.0\nmode: observe\nrules: []\n")
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    sandbox.run([&["guard"], arguments].concat()).redact(sandbox.root().as_str(), "HOME")
}

fn config(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.path(".cursor/mcp.json")).unwrap()
}

#[test]
fn the_servers_of_a_client_are_wrapped_and_restored() {
    let sandbox = sandbox();
    let dry_run = run(&sandbox, &["import", "cursor", "--dry-run"]);
    assert!(!dry_run.stdout.contains("hunter2"), "{dry_run}");
    insta::assert_snapshot!(dry_run, @r#"
    exit code: 0
    --- stdout
    wrapped    files
    skipped    web: it is reached over the network; `guard proxy` guards such servers

    --- HOME/.cursor/mcp.json
    +++ HOME/.cursor/mcp.json
    @@ files @@
    -    "files": { "command": "npx", "args": ["-y", "files-server"], "env": { "TOKEN": "[REDACTED]" } }
    +    "files": { "command": "/opt/counterproof", "args": ["guard", "shim", "--server-name=files", "--client=custom", "--", "npx", "-y", "files-server"], "env": { "TOKEN": "[REDACTED]" } }

    nothing was written
    "#);
    assert_eq!(config(&sandbox), CONFIG);
    insta::assert_snapshot!(run(&sandbox, &["import", "cursor"]), @"
    exit code: 0
    --- stdout
    wrapped    files
    skipped    web: it is reached over the network; `guard proxy` guards such servers

    changed HOME/.cursor/mcp.json
    original: HOME/.cursor/mcp.json.counterproof-backup
    undo: counterproof guard restore cursor
    Restart the client to use the guard.
    ");
    let imported = config(&sandbox);
    insta::assert_snapshot!(run(&sandbox, &["import", "cursor"]), @"
    exit code: 0
    --- stdout
    skipped    files: it starts through the guard already
    skipped    web: it is reached over the network; `guard proxy` guards such servers

    HOME/.cursor/mcp.json is unchanged
    ");
    assert_eq!(config(&sandbox), imported);
    insta::assert_snapshot!(run(&sandbox, &["restore", "cursor"]), @"
    exit code: 0
    --- stdout
    restored HOME/.cursor/mcp.json: it has the bytes of the original
    ");
    assert_eq!(config(&sandbox), CONFIG);
    insta::assert_snapshot!(run(&sandbox, &["restore", "cursor"]), @"
    exit code: 0
    --- stdout
    nothing to restore: no server in HOME/.cursor/mcp.json starts through the guard
    ");
}

#[test]
fn the_policy_and_the_ledger_become_absolute_options_of_the_shim() {
    let sandbox = sandbox();
    let arguments = ["import", "cursor", "--json", "--policy", "policy.yaml", "--ledger", "calls.db"];
    let finished = run(&sandbox, &arguments);
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(document["import"]["servers"][0]["status"], "wrapped", "{finished}");
    assert_eq!(document["import"]["servers"][1]["status"], "skipped", "{finished}");
    let options =
        format!("\"--policy\", \"{0}/policy.yaml\", \"--ledger\", \"{0}/calls.db\", \"--\", \"npx\"", sandbox.root());
    assert!(config(&sandbox).contains(&options), "{}", config(&sandbox));
    let sandbox = sandbox.with_file("new.yaml", "policy_id: p\nversion: 1.0.1\nmode: observe\nrules: []\n");
    let updated = run(&sandbox, &["import", "cursor", "--policy", "new.yaml"]);
    assert!(updated.stdout.starts_with("updated    files: new value of `--policy`\n"), "{updated}");
    assert!(config(&sandbox).contains(&options.replace("policy.yaml", "new.yaml")), "{}", config(&sandbox));
    assert_eq!(run(&sandbox, &["restore", "cursor"]).code, Some(0));
    assert_eq!(config(&sandbox), CONFIG);
}

#[test]
fn the_path_of_the_shim_is_absolute_and_survives_an_update() {
    let sandbox = sandbox().with_file("bin/shim", "").with_file("other", "");
    let path = |name: &str| sandbox.path(name).into_string();
    let folders = format!("{}:{}", path("bin"), path("links"));
    std::fs::create_dir(path("links")).unwrap();
    let program = counterproof_tests::program();
    std::os::unix::fs::symlink(program, sandbox.path("links/counterproof")).unwrap();
    for (shim, expected) in [
        ("./other", Some(path("other"))),
        ("shim", Some(path("bin/shim"))),
        ("none", None),
        ("bin/none", None),
        ("", Some(path("links/counterproof"))),
    ] {
        let mut command = sandbox.command(["guard", "import", "cursor"]);
        let output = command.env("SUBLUMINAL_SHIM_PATH", shim).env("PATH", &folders).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        match expected {
            None => {
                assert!(output.status.code() == Some(2) && stderr.contains("names no program"), "{stderr}");
            }
            Some(expected) => {
                let text = config(&sandbox);
                assert!(text.contains(&format!("\"command\": \"{expected}\"")), "{shim}: {stderr}{text}");
                assert_eq!(run(&sandbox, &["restore", "cursor"]).code, Some(0));
            }
        }
    }
}

#[test]
fn the_running_program_is_the_shim_unless_another_one_is_named() {
    let sandbox = sandbox().with_variable("SUBLUMINAL_SHIM_PATH", "");
    assert_eq!(run(&sandbox, &["import", "cursor"]).code, Some(0));
    let config = sandbox.path(".cursor/mcp.json");
    let text = std::fs::read_to_string(config).unwrap().replace("  // Servers of all projects\n", "");
    let config: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(config["mcpServers"]["files"]["command"], counterproof_tests::program().to_str().unwrap());
}

#[test]
fn no_form_of_a_password_reaches_the_configuration_of_a_client() {
    let sandbox = sandbox().with_file("mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    let before = std::fs::read_to_string(sandbox.path("mcp.json")).unwrap();
    for url in [
        "postgres://ada:hunter2@db/calls",
        "postgres://ada:hunter2?x@db/calls",
        "postgres://db/calls?password=hunter2",
        "postgres://ada@db/calls?password=hun@ter2",
        "postgres://ada@db/calls?pass%77ord=hunter2",
        "postgres://ada@db/calls?sslpassword=hunter2",
    ] {
        let finished = run(&sandbox, &["import", "cursor", "--config", "mcp.json", "--ledger", url]);
        let text = finished.to_string();
        assert!(finished.code == Some(2) && text.contains("has a password") && !text.contains("ter2"), "{url}: {text}");
        assert_eq!(std::fs::read_to_string(sandbox.path("mcp.json")).unwrap(), before, "{url}");
    }
}

#[test]
fn nothing_is_imported_with_wrong_arguments() {
    let sandbox = sandbox().with_file("bad.yaml", "mode: [").with_file("bad.json", "{\"mcpServers\": {\"a\": {},}");
    let outputs = [
        run(&sandbox, &["import", "emacs"]),
        run(&sandbox, &["import", "claude-code"]),
        run(&sandbox, &["import", "vscode", "--config", "bad.json"]),
        run(&sandbox, &["import", "cursor", "--policy", "bad.yaml"]),
        run(&sandbox, &["import", "cursor", "--policy", "none.yaml"]),
        run(&sandbox, &["import", "cursor", "--ledger", "postgres://ada:hunter2@db/calls"]),
        run(&sandbox, &["restore", "cursor", "--force"]),
    ];
    let text: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n\n"), @"
    exit code: 2
    --- stderr
    error: invalid value 'emacs' for '<CLIENT>': the client is unknown; known clients: claude-code, claude-desktop, codex, cursor, vscode, gemini

    For more information, try '--help'.

    exit code: 3
    --- stderr
    error: the configuration `HOME/.claude.json` does not exist
    hint: for the servers of a project, pass `--config .mcp.json`

    exit code: 2
    --- stderr
    error: the configuration `bad.json` is invalid: line 1, column 1: unterminated object
    hint: correct the file; nothing was changed

    exit code: 2
    --- stderr
    error: the policy is invalid
      bad.yaml:1:7: invalid YAML: unclosed bracket '[' (correct the YAML at this position)
    hint: run `counterproof guard policy lint bad.yaml` for more details

    exit code: 3
    --- stderr
    error: cannot read the policy `none.yaml`
      caused by: No such file or directory (os error 2)
    hint: check that the path exists and is readable

    exit code: 2
    --- stderr
    error: the URL of the ledger has a password, which every user could see in the list of processes
    hint: set the variable `COUNTERPROOF_LEDGER` for the client instead

    exit code: 2
    --- stderr
    error: there is no backup of `HOME/.cursor/mcp.json`
    hint: `--force` needs the backup that `counterproof guard import` writes
    ");
    assert_eq!(config(&sandbox), CONFIG);
}

#[test]
fn servers_of_another_client_are_named() {
    let sandbox = sandbox()
        .with_file("vscode.json", "{\"servers\": {\"files\": {\"command\": \"npx\"}}}")
        .with_file("claude.json", "{\"projects\": {\"/p\": {\"mcpServers\": {\"files\": {\"command\": \"npx\"}}}}}")
        .with_file("empty.toml", "model = \"x\"\n");
    insta::assert_snapshot!(run(&sandbox, &["import", "cursor", "--config", "vscode.json"]).stdout, @r##"
    no servers in vscode.json: there is no `mcpServers` with servers
    The servers are where vscode looks for them. Did you mean `counterproof guard import vscode --config vscode.json`?

    vscode.json is unchanged
    "##);
    let finished = run(&sandbox, &["import", "vscode", "--config", "claude.json"]);
    assert!(finished.stdout.contains("Did you mean `counterproof guard import claude-code "), "{finished}");
    let finished = run(&sandbox, &["import", "codex", "--config", "empty.toml"]);
    assert_eq!(
        finished.stdout,
        "no servers in empty.toml: there is no `mcp_servers` with servers\n\nempty.toml is unchanged\n"
    );
    let finished = run(&sandbox, &["import", "cursor", "--config", "vscode.json", "--json"]);
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(document["import"]["other_client"], "vscode");
}
