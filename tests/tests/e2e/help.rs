//! Compares the help of every command with `docs/cli.md`. `cargo xtask docs` regenerates that file.

use std::env;
use std::fmt::Write as _;

use camino::Utf8Path;
use counterproof_store::write::{Durability, write};
use counterproof_tests::Sandbox;

const COMMANDS: [&str; 83] = [
    "init",
    "try",
    "check",
    "accept",
    "run",
    "merge",
    "batch",
    "compare",
    "report",
    "history",
    "config",
    "config show",
    "validate",
    "schema",
    "replay",
    "mutate",
    "calibrate",
    "export",
    "export facts",
    "export-run",
    "contract",
    "contract new",
    "contract add",
    "contract list",
    "contract show",
    "contract history",
    "contract diff",
    "contract transition",
    "contract claim",
    "contract approve",
    "contract reject",
    "contract run",
    "contract graph",
    "contract status",
    "contract compact",
    "contract validate",
    "guard",
    "guard policy",
    "guard policy lint",
    "guard policy explain",
    "guard policy diff",
    "guard policy test",
    "guard shim",
    "guard proxy",
    "guard run",
    "guard import",
    "guard restore",
    "guard secrets",
    "guard secrets add",
    "guard secrets list",
    "guard secrets remove",
    "guard demo",
    "ledger",
    "ledger query",
    "ledger runs",
    "ledger tail",
    "ledger export",
    "ledger ingest",
    "ledger doctor",
    "ledger prune",
    "session",
    "session record",
    "session import",
    "session list",
    "session overview",
    "session timeline",
    "session show",
    "session checkpoints",
    "session checkpoint",
    "session pause",
    "session export",
    "session resume",
    "session fork",
    "session replay",
    "session bundle",
    "session prune",
    "workflow",
    "workflow run",
    "conformance",
    "demo",
    "demo-agent",
    "completions",
    "man",
];

const INTRODUCTION: &str = "\
# Command line

Find the options of every command here, or print the help of one:

```sh
counterproof compare --help
```

`cargo xtask docs` generates this page from the help of the program.
";

fn reference() -> String {
    let sandbox = Sandbox::new().with_variable("COLUMNS", "100");
    let help = |command: &[&str]| {
        let finished = sandbox.run(command.iter().chain(&["--help"]));
        assert_eq!(finished.code, Some(0), "{finished}");
        // Only blank lines of the help have trailing spaces.
        finished.stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    let mut text = String::from(INTRODUCTION);
    let _ = write!(text, "\n## counterproof\n\n```text\n{}\n```\n", help(&[]));
    for command in COMMANDS {
        let _ = write!(
            text,
            "\n## counterproof {command}\n\n```text\n{}\n```\n",
            help(&command.split(' ').collect::<Vec<_>>())
        );
    }
    text
}

#[test]
fn the_reference_in_the_docs_matches_the_help() {
    let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let said = reference();
    if env::var_os("UPDATE_DOCS").is_some() {
        write(&path, said.as_bytes(), Durability::Cached).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, said, "`cargo xtask docs` writes docs/cli.md again");
}

#[test]
fn every_command_is_in_the_reference() {
    let help = Sandbox::new().run(["--help"]).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Continuation lines are indented further.
    let first = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<_> = first.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect();
    let top: Vec<_> = COMMANDS.into_iter().filter(|command| !command.contains(' ')).collect();
    assert_eq!(names, top);
}
