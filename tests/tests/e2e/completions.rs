//! The completion scripts and the manual pages: each shell that is installed loads its script, and each command has a page.

use std::process::{Command, Stdio};

use counterproof_tests::Sandbox;

/// A shell, and how it reads a script without running it.
const SHELLS: [(&str, Option<[&str; 2]>); 4] = [
    ("bash", Some(["bash", "-n"])),
    ("zsh", Some(["zsh", "-n"])),
    ("fish", Some(["fish", "-n"])),
    ("powershell", None),
];

#[test]
fn each_shell_reads_its_script_which_completes_commands_and_options() {
    for (name, reader) in SHELLS {
        let sandbox = Sandbox::new();
        let printed = sandbox.run(["completions", name]);
        assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""), "{name}");
        for word in ["compare", "report-url"] {
            assert!(printed.stdout.contains(word), "{name}: {word}");
        }
        let sandbox = sandbox.with_file("script", &printed.stdout);
        let Some([shell, option]) = reader else { continue };
        let mut command = Command::new(shell);
        command.arg(option).arg(sandbox.path("script")).stdin(Stdio::null());
        // A shell that is not installed cannot be started.
        if let Ok(output) = command.output() {
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn an_unknown_shell_is_an_error_that_names_the_known_ones() {
    let printed = Sandbox::new().run(["completions", "tcsh"]);
    assert_eq!(printed.code, Some(2));
    assert!(printed.stderr.contains("bash, zsh, fish, powershell"), "{printed}");
}

#[test]
fn each_command_has_a_page_and_other_files_stay() {
    let sandbox = Sandbox::new().with_file("man/mine.1", "mine");
    let written = sandbox.run(["man", "man"]);
    assert_eq!(written.code, Some(0), "{written}");
    let read = |name: &str| std::fs::read_to_string(sandbox.path(&format!("man/{name}"))).unwrap();
    assert_eq!(read("mine.1"), "mine");
    assert!(read("counterproof.1").contains(".TH counterproof 1"));
    let page = read("counterproof-compare.1");
    assert!(page.contains("\\-\\-report\\-url") && page.contains("counterproof\\-compare"), "{page}");
    assert!(read("counterproof-guard-policy-lint.1").contains("guard policy lint"), "a page of a subcommand");
    let again = sandbox.run(["man", "man"]);
    assert_eq!((again.code, again.stdout), (Some(0), written.stdout));
}
