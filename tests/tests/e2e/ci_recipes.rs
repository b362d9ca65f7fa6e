//! The recipes of `docs/ci.md`: runs their shell lines with the variables of each platform, from the shards to the
//! comparison. The platforms themselves are not tested.

use std::process::{Command, Stdio};

use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer, program};
use serde_json::{Value, json};

const DOCS: &str = include_str!("../../../docs/ci.md");

const SHARDS: usize = 4;

/// A platform: its section, and its variables for a shard, counted from 0.
struct Platform {
    section: &'static str,
    variables: fn(usize) -> Vec<(&'static str, String)>,
}

const PLATFORMS: [Platform; 6] = [
    Platform {
        section: "Slurm",
        variables: |shard| {
            vec![
                ("SLURM_ARRAY_JOB_ID", "77".to_owned()),
                ("SLURM_ARRAY_TASK_ID", (shard + 1).to_string()),
                ("SLURM_ARRAY_TASK_COUNT", "4".to_owned()),
                ("SLURM_ARRAY_TASK_MIN", "1".to_owned()),
                ("SLURM_ARRAY_TASK_MAX", "4".to_owned()),
                ("SLURM_ARRAY_TASK_STEP", "1".to_owned()),
            ]
        },
    },
    Platform { section: "Kubernetes", variables: |shard| vec![("JOB_COMPLETION_INDEX", shard.to_string())] },
    Platform {
        section: "AWS Batch",
        variables: |shard| {
            vec![("AWS_BATCH_JOB_ARRAY_INDEX", shard.to_string()), ("AWS_BATCH_JOB_ARRAY_SIZE", "4".to_owned())]
        },
    },
    Platform {
        section: "GitLab",
        variables: |shard| {
            vec![
                ("CI_NODE_INDEX", (shard + 1).to_string()),
                ("CI_NODE_TOTAL", "4".to_owned()),
                ("CI_PIPELINE_ID", "88".to_owned()),
            ]
        },
    },
    Platform {
        section: "Buildkite",
        variables: |shard| {
            vec![
                ("BUILDKITE_PARALLEL_JOB", shard.to_string()),
                ("BUILDKITE_PARALLEL_JOB_COUNT", "4".to_owned()),
                ("BUILDKITE_BUILD_NUMBER", "99".to_owned()),
            ]
        },
    },
    Platform {
        section: "CircleCI",
        variables: |shard| {
            vec![
                ("CIRCLE_NODE_INDEX", shard.to_string()),
                ("CIRCLE_NODE_TOTAL", "4".to_owned()),
                ("CIRCLE_WORKFLOW_ID", "a-b-c".to_owned()),
            ]
        },
    },
];

/// Returns the text of a recipe.
fn section(name: &str) -> &'static str {
    let start = DOCS.find(&format!("\n### {name}\n")).unwrap_or_else(|| panic!("docs/ci.md has no recipe for {name}"));
    let rest = &DOCS[start + 4..];
    &rest[..rest.find("\n##").unwrap_or(rest.len())]
}

/// Returns the command that starts with `start`, up to the end of its line. A list of words is joined into a line.
fn command(section: &str, start: &str) -> Option<String> {
    if let Some(at) = section.find(start) {
        let line = section[at..].lines().next().unwrap_or_default();
        // Buildkite interpolates variables itself unless the dollar sign is doubled.
        return Some(line.replace("$$", "$"));
    }
    let words = start.split(' ').collect::<Vec<_>>();
    let lists = [words.join(", "), words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(",")];
    let at = lists.iter().find_map(|list| section.find(list.as_str()))?;
    let list = &section[at..at + section[at..].find(']')?];
    Some(list.split(',').map(|word| word.trim().trim_matches('"')).collect::<Vec<_>>().join(" "))
}

/// The baseline that the merged run is compared with.
const BASELINE: &str = "counterproof run --cases cases.json --side baseline --base-url \"$AGENT\"";

fn sandbox() -> Sandbox {
    let cases: Vec<_> = (0..12).map(|n| json!({"id": format!("c{n}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

/// Runs a shell line as CI does, with the program on the path.
fn shell(sandbox: &Sandbox, line: &str, variables: &[(&str, String)]) {
    let bin = program().parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", line]).current_dir(sandbox.root()).stdin(Stdio::null()).env("PATH", path);
    for name in PLATFORMS.iter().flat_map(|platform| (platform.variables)(0)).map(|(name, _)| name) {
        shell.env_remove(name);
    }
    let output = shell.envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{text}");
}

#[test]
fn each_recipe_merges_its_shards_into_a_run_that_can_be_compared() {
    let agent = Agent::start(|_| Reply::json(&minimal_answer()));
    let url = agent.base_url();
    for platform in PLATFORMS {
        let (sandbox, recipe) = (sandbox(), section(platform.section));
        // The addresses of the agent and of the shared folder are placeholders in the docs.
        let near = |line: String| line.replace("http://agent:8787", "$AGENT").replace("/data/", "");
        let ask = near(command(recipe, "counterproof run").unwrap_or_else(|| panic!("{}", platform.section)));
        let merge = command(recipe, "counterproof merge").or_else(|| command(DOCS, "counterproof merge")).unwrap();
        for shard in 0..SHARDS {
            let variables = [(platform.variables)(shard), vec![("AGENT", url.clone())]].concat();
            shell(&sandbox, &ask, &variables);
        }
        let mut variables = (platform.variables)(0);
        variables.push(("ARRAY_JOB_ID", "77".to_owned()));
        shell(&sandbox, &merge, &variables);
        let merged = merge.split("--out ").nth(1).unwrap();
        shell(&sandbox, &format!("counterproof validate {merged}"), &variables);
        shell(&sandbox, &format!("test $(ls {merged} | grep -c '^c[0-9]*.json$') = 12"), &variables);
        shell(&sandbox, BASELINE, &[("AGENT", url.clone())]);
        shell(&sandbox, "counterproof compare --runs runs --cases cases.json --out report", &[]);
    }
}
