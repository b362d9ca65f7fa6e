//! The files that `init --ci` writes: their shell steps run from new clones, over nights without and with a baseline, a night with
//! a regression, and two builds of a pull request. The built program takes the place of the step that installs it.

use std::fs::read_to_string;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer, program};
use serde_json::json;

use crate::ci_comments::{CodeHost, Host};
use crate::ci_steps::{self, Builds, Step, When};

/// A CI system.
struct System {
    /// The value of `--ci`, and the file that it writes.
    kind: &'static str,
    path: &'static str,
    steps: fn(&str) -> Vec<Step>,
    /// The shell of its steps.
    shell: &'static [&'static str],
    host: Host,
    /// The variables of a build: of each, of nights, and of pull requests. `HOST` is the address of the code host.
    variables: &'static [(&'static str, &'static str)],
    night: &'static [(&'static str, &'static str)],
    pull_request: &'static [(&'static str, &'static str)],
}

const BASH: &[&str] = &["bash", "-eo", "pipefail", "-c"];
const SH: &[&str] = &["sh", "-ec"];

const SYSTEMS: [System; 7] = [
    System {
        kind: "github",
        path: ".github/workflows/counterproof.yml",
        steps: ci_steps::github,
        shell: BASH,
        host: Host::Github,
        variables: &[
            ("GITHUB_STEP_SUMMARY", "STEP_SUMMARY"),
            ("GITHUB_RUN_ID", "BUILD"),
            ("GITHUB_REPOSITORY", "ada/shop"),
            ("GITHUB_API_URL", "HOST"),
        ],
        night: &[("GITHUB_EVENT_NAME", "schedule")],
        pull_request: &[("GITHUB_EVENT_NAME", "pull_request"), ("PULL_REQUEST", "7"), ("GITHUB_TOKEN", "t")],
    },
    System {
        kind: "gitlab",
        path: ".gitlab-ci.yml",
        steps: ci_steps::gitlab,
        shell: SH,
        host: Host::Gitlab,
        variables: &[
            ("CI_PIPELINE_ID", "BUILD"),
            ("CI_JOB_URL", "https://gitlab.example/ada/shop/-/jobs/1"),
            ("CI_API_V4_URL", "HOST/api/v4"),
            ("CI_PROJECT_ID", "5"),
        ],
        night: &[],
        pull_request: &[("CI_MERGE_REQUEST_IID", "7"), ("COUNTERPROOF_NOTES_TOKEN", "t")],
    },
    System {
        kind: "jenkins",
        path: "Jenkinsfile",
        steps: ci_steps::jenkins,
        shell: SH,
        host: Host::Github,
        variables: &[
            ("BUILD_NUMBER", "BUILD"),
            ("BUILD_URL", "https://jenkins.example/job/shop/1/"),
            ("GITHUB_API_URL", "HOST"),
        ],
        night: &[],
        pull_request: &[
            ("CHANGE_ID", "7"),
            ("CHANGE_URL", "https://github.com/ada/shop/pull/7"),
            ("GITHUB_TOKEN", "t"),
        ],
    },
    System {
        kind: "azure",
        path: "azure-pipelines.yml",
        steps: ci_steps::azure,
        shell: BASH,
        host: Host::Azure,
        variables: &[
            ("BUILD_BUILDID", "BUILD"),
            ("SYSTEM_COLLECTIONURI", "HOST/ada/"),
            ("SYSTEM_TEAMPROJECTID", "shop"),
            ("BUILD_REPOSITORY_ID", "5"),
        ],
        night: &[("BUILD_REASON", "Schedule")],
        pull_request: &[
            ("BUILD_REASON", "PullRequest"),
            ("SYSTEM_PULLREQUEST_PULLREQUESTID", "7"),
            ("SYSTEM_ACCESSTOKEN", "t"),
        ],
    },
    System {
        kind: "bitbucket",
        path: "bitbucket-pipelines.yml",
        steps: ci_steps::bitbucket,
        shell: BASH,
        host: Host::Bitbucket,
        variables: &[
            ("BITBUCKET_BUILD_NUMBER", "BUILD"),
            ("BITBUCKET_REPO_FULL_NAME", "ada/shop"),
            ("BITBUCKET_API_URL", "HOST"),
            ("COUNTERPROOF_TOKEN", "t"),
        ],
        night: &[],
        pull_request: &[("BITBUCKET_PR_ID", "7")],
    },
    System {
        kind: "buildkite",
        path: ".buildkite/pipeline.yml",
        steps: ci_steps::buildkite,
        shell: BASH,
        host: Host::Github,
        variables: &[
            ("BUILDKITE_BUILD_NUMBER", "BUILD"),
            ("BUILDKITE_BUILD_URL", "https://buildkite.example/ada/shop/builds/1"),
            ("BUILDKITE_PIPELINE_SLUG", "shop"),
            ("BUILDKITE_REPO", "git@github.com:ada/shop.git"),
            ("GITHUB_API_URL", "HOST"),
        ],
        night: &[("BUILDKITE_PULL_REQUEST", "false")],
        pull_request: &[("BUILDKITE_PULL_REQUEST", "7"), ("GITHUB_TOKEN", "t")],
    },
    System {
        kind: "circleci",
        path: ".circleci/config.yml",
        steps: ci_steps::circleci,
        shell: BASH,
        host: Host::Github,
        variables: &[
            ("CIRCLE_BUILD_NUM", "BUILD"),
            ("CIRCLE_BUILD_URL", "https://circleci.example/ada/shop/1"),
            ("GITHUB_API_URL", "HOST"),
        ],
        night: &[],
        pull_request: &[("CIRCLE_PULL_REQUEST", "https://github.com/ada/shop/pull/7"), ("GITHUB_TOKEN", "t")],
    },
];

/// What the agent of Buildkite does with an annotation: it replaces the one with the same context.
const BUILDKITE_AGENT: &str = "#!/bin/sh\ntest \"$1 $2\" = 'annotate --context' && cat > \"$HOME/annotation-$3\"\n";

/// A repository with the file of a CI system, and what the CI system keeps between builds.
struct Project {
    system: &'static System,
    steps: Vec<Step>,
    sandbox: Sandbox,
    host: CodeHost,
    /// Whether the agent answers wrongly.
    is_broken: Arc<AtomicBool>,
    builds: usize,
}

/// A build: whether a step failed, and its folder.
struct Build {
    failed: bool,
    folder: Utf8PathBuf,
    output: String,
}

impl Project {
    fn new(system: &'static System) -> Self {
        let is_broken = Arc::new(AtomicBool::new(false));
        let broken = is_broken.clone();
        let agent = Agent::start(move |_| {
            let mut answer = minimal_answer();
            let said = if broken.load(Ordering::SeqCst) { "no idea" } else { "50 EUR are refunded" };
            answer["final_output"]["content"] = json!(said);
            Reply::json(&answer)
        });
        let cases = json!([{"id": "refund", "input": {"user": "go"}, "expected": {"must_include": ["50 EUR"]}}]);
        let config = format!(
            "[run]\ncases = \"cases.yaml\"\n\n[side.new]\nbase_url = \"{}\"\n\n[agent]\ndeterministic = true\n",
            agent.base_url()
        );
        let sandbox = Sandbox::new()
            .with_file("origin/cases.yaml", &cases.to_string())
            .with_file("origin/counterproof.toml", &config)
            .with_file("bin/buildkite-agent", BUILDKITE_AGENT)
            .with_file("home/.gitconfig", "[user]\nname = Ada\nemail = ada@shop.example\n");
        let project =
            Self { system, steps: Vec::new(), sandbox, host: CodeHost::start(system.host), is_broken, builds: 0 };
        let init = format!(
            "chmod +x bin/buildkite-agent && cd origin && git init -q && counterproof init --ci {}",
            system.kind
        );
        let (code, output) = project.shell(project.sandbox.root(), SH, &init, &[]);
        assert_eq!(code, Some(0), "{output}");
        project.commit();
        let file = read_to_string(project.sandbox.path("origin").join(system.path)).unwrap();
        Self { steps: (system.steps)(&file), ..project }
    }

    fn commit(&self) {
        let commit = "cd origin && git add -A && git commit -qm 'Check the agent'";
        let (code, output) = self.shell(self.sandbox.root(), SH, commit, &[]);
        assert_eq!(code, Some(0), "{output}");
    }

    /// Runs a shell script with the environment of a CI job. Returns its exit code and output.
    fn shell(
        &self,
        folder: &Utf8Path,
        shell: &[&str],
        script: &str,
        variables: &[(&str, String)],
    ) -> (Option<i32>, String) {
        let bin = program().parent().unwrap().display();
        let path = format!("{}:{bin}:{}", self.sandbox.path("bin"), std::env::var("PATH").unwrap());
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script).current_dir(folder).stdin(Stdio::null());
        command.env_clear().env("PATH", path).env("HOME", self.sandbox.path("home")).env("CI", "true");
        let output = command.envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), format!("$ {script}\n{}", String::from_utf8_lossy(&text)))
    }

    /// Runs the steps of a build in a new clone, to which the CI system restores the folder `nights`.
    fn build(&mut self, builds: Builds) -> Build {
        self.builds += 1;
        let folder = self.sandbox.path(&format!("clone{}", self.builds));
        let restore = format!("git clone -q origin {folder} && if [ -d nights ]; then cp -R nights {folder}/; fi");
        let (code, output) = self.shell(self.sandbox.root(), SH, &restore, &[]);
        assert_eq!(code, Some(0), "{output}");
        let of_kind = if builds == Builds::Nights { self.system.night } else { self.system.pull_request };
        let value = |value: &str| {
            let step_summary = self.sandbox.path(&format!("step{}.md", self.builds));
            let value = value.replace("HOST", &self.host.url).replace("STEP_SUMMARY", step_summary.as_str());
            if value == "BUILD" { self.builds.to_string() } else { value }
        };
        let variables: Vec<_> =
            self.system.variables.iter().chain(of_kind).map(|(name, text)| (*name, value(text))).collect();
        let mut build = Build { failed: false, folder, output: String::new() };
        assert!(self.steps.iter().filter(|step| step.is_install()).count() == 1, "{:?}", self.steps);
        for step in self.steps.iter().filter(|step| !step.is_install()) {
            let is_skipped =
                (build.failed && step.when == When::Success) || (step.builds != Builds::All && step.builds != builds);
            if is_skipped {
                continue;
            }
            let (code, output) = self.shell(&build.folder, self.system.shell, &step.script, &variables);
            build.failed |= code != Some(0);
            build.output.push_str(&output);
            // A step after the check reports, and never fails by itself.
            assert!(code == Some(0) || step.script.contains("counterproof check"), "{}", build.output);
        }
        let (code, output) = match builds {
            Builds::Nights => {
                let save = format!("rm -rf nights && cp -R {}/nights .", build.folder);
                self.shell(self.sandbox.root(), SH, &save, &[])
            }
            Builds::All | Builds::PullRequests => (Some(0), String::new()),
        };
        assert_eq!(code, Some(0), "{output}{}", build.output);
        build
    }
}

impl Build {
    fn read(&self, path: &str) -> String {
        read_to_string(self.folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.output))
    }

    /// Checks that the report of a night links the history, and that CI systems find its other files in `report`.
    fn assert_night(&self, number: usize) {
        for name in ["summary.md", "junit.xml", "ctrf.json", "results.sarif"] {
            assert_eq!(self.read(&format!("report/{name}")), self.read(&format!("nights/{number}/{name}")));
        }
        assert!(!self.folder.join("report/index.html").exists(), "{}", self.output);
        for page in [format!("nights/{number}/index.html"), format!("nights/{number}/cases/refund.html")] {
            self.assert_links(&page);
            assert!(self.read(&page).contains("../history/index.html#"), "{page}");
        }
        self.assert_links("nights/history/index.html");
    }

    /// Checks that every link of a page leads to a file.
    fn assert_links(&self, page: &str) {
        let html = self.read(page);
        let folder = Utf8Path::new(page).parent().unwrap();
        for link in html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let path = link.split('#').next().unwrap();
            assert!(path.is_empty() || self.folder.join(folder).join(path).is_file(), "{page}: {link}");
        }
    }
}

fn runs_from_the_first_night_to_a_red_one(kind: &str) {
    let system = SYSTEMS.iter().find(|system| system.kind == kind).unwrap();
    let mut project = Project::new(system);

    let first = project.build(Builds::Nights);
    assert!(!first.failed, "{}", first.output);
    first.assert_night(1);
    let accept = "counterproof accept --reason \"first baseline\"";
    assert!(first.output.contains("no baseline") && first.output.contains(accept), "{}", first.output);

    // The person accepts the run, and adds the baseline to the repository.
    let take = format!("cp -R {}/runs origin/ && cd origin && {accept}", first.folder);
    let (code, output) = project.shell(project.sandbox.root(), SH, &take, &[]);
    assert_eq!(code, Some(0), "{output}");
    project.commit();

    let green = project.build(Builds::Nights);
    assert!(!green.failed, "{}", green.output);
    let summary = green.read("report/summary.md");
    assert!(
        summary.starts_with("## ✓") && summary.contains("older than new") && summary.contains("To refresh"),
        "{summary}"
    );
    assert!(green.read("nights/history/index.html").contains("The gate passed in"), "{}", green.output);
    // Of earlier nights as well, from the clone to which they were restored.
    for number in [1, 2] {
        green.assert_links(&format!("nights/{number}/cases/refund.html"));
    }

    project.is_broken.store(true, Ordering::SeqCst);
    let red = project.build(Builds::Nights);
    assert!(red.failed, "{}", red.output);
    red.assert_night(3);
    // The red night is saved and is part of the history.
    assert!(project.sandbox.path("nights/3/evaluation.json").is_file(), "{}", red.output);
    assert!(red.read("nights/history/index.html").contains("refund"), "{}", red.output);
    match kind {
        "github" => {
            let step = read_to_string(project.sandbox.path("step3.md")).unwrap();
            assert!(step.matches("## ✗").count() == 1 && step.contains("older than new"), "{step}");
        }
        "buildkite" => {
            let annotation = read_to_string(project.sandbox.path("home/annotation-counterproof")).unwrap();
            assert!(annotation.starts_with("## ✗"), "{annotation}");
        }
        _ => {}
    }

    let red = project.build(Builds::PullRequests);
    assert!(red.failed && !red.folder.join("nights/4").exists(), "{}", red.output);
    red.assert_links("report/index.html");
    project.is_broken.store(false, Ordering::SeqCst);
    let green = project.build(Builds::PullRequests);
    assert!(!green.failed, "{}", green.output);
    let comments = project.host.comments();
    // The second build replaced the comment of the first, and no other one.
    assert!(comments.len() == 2 && comments[0] == "looks good", "{comments:?}\n{}", green.output);
    assert!(comments[1].contains("counterproof") && comments[1].contains("## ✓"), "{}", comments[1]);
}

/// The steps that comment are written in Python.
fn has_python() -> bool {
    let python = Command::new("python3").arg("--version").stdin(Stdio::null()).output();
    python.is_ok_and(|output| output.status.success())
}

macro_rules! systems {
    ($($name:ident $kind:literal)*) => {$(
        #[test]
        fn $name() {
            if has_python() {
                runs_from_the_first_night_to_a_red_one($kind);
            }
        }
    )*};
}

systems! {
    the_file_for_github_runs "github"
    the_file_for_gitlab_runs "gitlab"
    the_file_for_jenkins_runs "jenkins"
    the_file_for_azure_runs "azure"
    the_file_for_bitbucket_runs "bitbucket"
    the_file_for_buildkite_runs "buildkite"
    the_file_for_circleci_runs "circleci"
}

/// The action of this repository, whose first step downloads an archive.
const ACTION: &str = include_str!("../../../action.yml");

#[test]
fn the_action_installs_only_an_archive_with_the_given_digest() {
    let project = Project::new(&SYSTEMS[0]);
    let steps = ci_steps::action(ACTION);
    let pack = "mkdir -p a download temp && touch a/counterproof && \
                tar -czf download/counterproof-1.2.3-$(uname -m)-unknown-linux-musl.tar.gz a && sha256sum download/*";
    let (code, output) = project.shell(project.sandbox.root(), BASH, pack, &[]);
    assert_eq!(code, Some(0), "{output}");
    let digest = output.lines().find_map(|line| line.split_once("  download/")).unwrap().0;
    let path = |name: &str| project.sandbox.path(name).to_string();
    for (digest, expected) in [(digest.to_owned(), Some(0)), ("0".repeat(64), Some(1))] {
        let variables = [
            ("VERSION", "1.2.3".to_owned()),
            ("SHA256", digest),
            ("DOWNLOAD_URL", format!("file://{}", path("download"))),
            ("RUNNER_TEMP", path("temp")),
            ("GITHUB_PATH", path("path.txt")),
        ];
        let (code, output) = project.shell(project.sandbox.root(), BASH, &steps[0].script, &variables);
        assert_eq!(code, expected, "{output}");
    }
    // Once, for the archive with the right digest.
    assert_eq!(read_to_string(path("path.txt")).unwrap(), format!("{}\n", path("temp/counterproof-bin")));

    project.is_broken.store(true, Ordering::SeqCst);
    let variables = [("ARGUMENTS", "--only\nrefund".to_owned()), ("GITHUB_OUTPUT", path("output.txt"))];
    let (code, output) = project.shell(&project.sandbox.path("origin"), BASH, &steps[1].script, &variables);
    assert_eq!(code, Some(1), "{output}");
    assert_eq!(read_to_string(path("output.txt")).unwrap(), "exit-code=1\n");
    // The comment is the one of the workflow, which the tests above run.
    let of_workflow = project.steps.iter().find(|step| step.name == steps[2].name).unwrap();
    assert_eq!(steps[2].script, of_workflow.script);
}
