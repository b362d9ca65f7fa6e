//! Every command of the README and of docs/quickstart.md, in a new project with an agent of the shape that `init` expects.

use counterproof_tests::{ModelAnswer, ModelServer, Sandbox};
use serde_json::json;

/// Returns the commands of the `sh` blocks of a page, without comments.
fn commands(page: &str) -> Vec<Vec<String>> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split("  #").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(|line| shell_words::split(line).unwrap()).collect()
}

/// A new project in a repository, whose agent runs.
fn project() -> Sandbox {
    let agent = ModelServer::start(|_, request| {
        let message =
            request.json().pointer("/message").and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default();
        ModelAnswer::json(200, &json!({"reply": format!("You wrote: {message} I start the refund.")}))
    });
    Sandbox::new().with_variable("COUNTERPROOF_BASE_URL", &agent.origin())
}

/// Runs the commands of a page, and returns how many there were.
fn run_all(page: &str, ends_with: impl Fn(&[String]) -> i32) -> usize {
    let sandbox = project();
    let commands = commands(page);
    let ours = commands.iter().filter(|words| words[0] == "counterproof");
    // It ends with Ctrl-C; a test of its own runs it.
    let ours: Vec<_> = ours.filter(|words| !words.contains(&"--watch".to_owned())).collect();
    for words in &ours {
        let finished = sandbox.run(&words[1..]);
        assert_eq!(finished.code, Some(ends_with(words)), "{}: {finished}", words.join(" "));
    }
    ours.len()
}

#[test]
fn the_commands_of_the_readme_run() {
    // The demo has planted faults, and its end is a success.
    assert!(run_all(include_str!("../../../README.md"), |_| 0) >= 6);
}

#[test]
fn the_commands_of_the_quickstart_run() {
    assert!(run_all(include_str!("../../../docs/quickstart.md"), |_| 0) >= 10);
}

#[test]
fn the_readme_fits_on_two_screens() {
    let readme = include_str!("../../../README.md");
    assert!(readme.lines().count() <= 150);
    let first = readme.lines().position(|line| line.starts_with("counterproof ")).unwrap();
    assert!(first < 120, "the first command that runs the product is in line {first}");
}
