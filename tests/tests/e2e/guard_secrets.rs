//! `counterproof guard secrets`: values go in by standard input or a variable, and never come out.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use counterproof_tests::{Finished, Sandbox};

const VALUE: &str = "hunter2-hunter2-hunter2";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let home = sandbox.root().to_string();
    sandbox
        .with_variable("HOME", &home)
        .with_variable("XDG_CONFIG_HOME", "")
        .with_variable("SUB_SECRETS_PATH", "")
        .with_variable("TOKEN_OF_TEST", VALUE)
}

/// Runs the program with an input.
fn run_with(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Finished {
    let mut command = sandbox.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
        .redact(sandbox.root().as_str(), "HOME")
}

#[test]
fn secrets_are_added_listed_and_removed_without_their_values() {
    let sandbox = sandbox();
    let path = sandbox.path(".config/counterproof/secrets.json");
    let run = |arguments: &[&str], input: &str| {
        run_with(&sandbox, &[&["guard", "secrets"], arguments].concat(), input.as_bytes())
    };
    let added = run(&["add", "github"], &format!("{VALUE}\n"));
    insta::assert_snapshot!(added, @"
    exit code: 0
    --- stdout
    added `github` in HOME/.config/counterproof/secrets.json
    ");
    assert_eq!(sandbox.json(".config/counterproof/secrets.json")["github"]["value"], VALUE);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    insta::assert_snapshot!(run(&["add", "slack", "--from-env", "TOKEN_OF_TEST", "--json"], ""), @r#"
    exit code: 0
    --- stdout
    {
      "name": "slack",
      "change": "added",
      "store": "HOME/.config/counterproof/secrets.json"
    }
    "#);
    let mut list = run(&["list"], "");
    for outputs in [&list, &run(&["list", "--json"], "")] {
        assert!(outputs.code == Some(0) && !outputs.stdout.contains("hunter2"), "{outputs}");
    }
    let stored = sandbox.json(".config/counterproof/secrets.json");
    for (name, time) in [("github", "[time 1]"), ("slack", "[time 2]")] {
        list = list.redact(stored[name]["updated_at"].as_str().unwrap(), time);
    }
    insta::assert_snapshot!(list, @"
    exit code: 0
    --- stdout
    github                            stdin                     [time 1]
    slack                             env:TOKEN_OF_TEST         [time 2]
    ");
    insta::assert_snapshot!(run(&["remove", "github"], ""), @"
    exit code: 0
    --- stdout
    removed `github` from HOME/.config/counterproof/secrets.json
    ");
    insta::assert_snapshot!(run(&["remove", "github"], ""), @"
    exit code: 2
    --- stderr
    error: no secret is named `github` in HOME/.config/counterproof/secrets.json
    hint: `counterproof guard secrets list` lists the names
    ");
}

#[test]
fn values_that_cannot_be_used_are_refused_without_being_printed() {
    let sandbox = sandbox();
    let run = |arguments: &[&str], input: &[u8]| {
        run_with(&sandbox, &[&["guard", "secrets", "add"], arguments].concat(), input)
    };
    let outputs = [
        run(&["a"], b""),
        run(&["a"], b"abc\n"),
        run(&["a"], b"a\0bcdefgh"),
        run(&["a"], b"\xff\xfe\xfd\xfc"),
        run(&["a", "--from-env", "NO_SUCH_VARIABLE"], b""),
        run(&["-a"], b"some-value"),
    ];
    let text: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n\n"), @"
    exit code: 2
    --- stderr
    error: invalid secret in standard input: the value is empty

    exit code: 2
    --- stderr
    error: cannot store `a`: the value has 3 bytes; a value of fewer than 4 bytes cannot be redacted reliably

    exit code: 2
    --- stderr
    error: invalid secret in standard input: the value contains a NUL character, which no environment variable can have

    exit code: 2
    --- stderr
    error: invalid secret in standard input: the value is not valid UTF-8

    exit code: 2
    --- stderr
    error: environment variable `NO_SUCH_VARIABLE` is not set
    hint: set `NO_SUCH_VARIABLE`, or pass the value on standard input

    exit code: 2
    --- stderr
    error: unexpected argument '-a' found

      tip: to pass '-a' as a value, use '-- -a'

    Usage: counterproof guard secrets add [OPTIONS] <NAME>

    For more information, try '--help'.
    ");
    assert!(!sandbox.path(".config").exists(), "nothing was written");
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_remedy() {
    let sandbox = sandbox();
    let sandbox = sandbox.with_file("secrets.json", "{}");
    std::fs::set_permissions(sandbox.path("secrets.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let list = run_with(&sandbox, &["guard", "secrets", "list", "--store", "secrets.json"], b"");
    insta::assert_snapshot!(list, @"
    exit code: 2
    --- stderr
    error: the secrets in `secrets.json` are not private: the mode 0644 lets other users access it
    hint: run `chmod 600 secrets.json`
    ");
}
