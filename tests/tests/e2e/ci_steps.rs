//! The shell steps of the files that `init --ci` writes, as each CI system would run them.

use serde_json::Value;

/// When a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Until a step fails.
    Success,
    /// Also after a step that failed.
    Always,
}

/// The builds that run a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builds {
    All,
    Nights,
    PullRequests,
}

/// A shell script of a CI file.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) script: String,
    pub(crate) when: When,
    pub(crate) builds: Builds,
}

impl Step {
    pub(crate) fn is_install(&self) -> bool {
        self.name.starts_with("Install")
    }
}

pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// GitHub and Azure: `if` and `condition` have the same functions and names of events.
fn conditional(name: &Value, script: &Value, condition: &str) -> Step {
    let is_pull_request = ["== 'pull_request'", "eq(variables['Build.Reason'], 'PullRequest')"];
    let is_night = ["!= 'pull_request'", "ne(variables['Build.Reason'], 'PullRequest')"];
    let builds = if is_night.iter().any(|it| condition.contains(it)) {
        Builds::Nights
    } else if is_pull_request.iter().any(|it| condition.contains(it)) {
        Builds::PullRequests
    } else {
        Builds::All
    };
    let when = if condition.contains("always()") { When::Always } else { When::Success };
    Step { name: text(name).to_owned(), script: text(script).to_owned(), when, builds }
}

pub(crate) fn github(file: &str) -> Vec<Step> {
    github_steps(&yaml(file)["jobs"]["check"]["steps"])
}

/// The steps of a composite action.
pub(crate) fn action(file: &str) -> Vec<Step> {
    github_steps(&yaml(file)["runs"]["steps"])
}

fn github_steps(steps: &Value) -> Vec<Step> {
    let steps = list(steps).iter().filter(|step| step.get("run").is_some());
    let steps = steps.map(|step| {
        // An expression within a script would be text of others that a shell runs.
        assert!(!text(&step["run"]).contains("${{"), "{step}");
        conditional(&step["name"], &step["run"], text(&step["if"]))
    });
    steps.collect()
}

pub(crate) fn azure(file: &str) -> Vec<Step> {
    let file = yaml(file);
    let steps = list(&file["steps"]).iter().filter(|step| step.get("script").is_some());
    steps.map(|step| conditional(&step["displayName"], &step["script"], text(&step["condition"]))).collect()
}

/// The lines of a list, which one shell runs.
fn joined(name: &str, lines: &[Value], when: When) -> Step {
    let script = lines.iter().map(text).collect::<Vec<_>>().join("\n");
    Step { name: name.to_owned(), script, when, builds: Builds::All }
}

pub(crate) fn gitlab(file: &str) -> Vec<Step> {
    let job = &yaml(file)["counterproof"];
    let parts = [("before_script", "Install", When::Success), ("script", "Check", When::Success)];
    let parts = parts.into_iter().chain([("after_script", "After", When::Always)]);
    parts.map(|(key, name, when)| joined(name, list(&job[key]), when)).collect()
}

pub(crate) fn bitbucket(file: &str) -> Vec<Step> {
    let file = yaml(file);
    let step = &file["pipelines"]["custom"]["nightly"][0]["step"];
    assert_eq!(step, &file["pipelines"]["pull-requests"]["**"][0]["step"]);
    // The first two lines install.
    let (install, check) = list(&step["script"]).split_at(2);
    vec![
        joined("Install", install, When::Success),
        joined("Check", check, When::Success),
        joined("After", list(&step["after-script"]), When::Always),
    ]
}

pub(crate) fn buildkite(file: &str) -> Vec<Step> {
    let file = yaml(&file.replace("$$", "$"));
    let [install, check] = list(&file["steps"][0]["commands"]) else { panic!("two commands") };
    let step = |name, script| joined(name, std::slice::from_ref(script), When::Success);
    vec![step("Install", install), step("Check", check)]
}

pub(crate) fn circleci(file: &str) -> Vec<Step> {
    let file = yaml(file);
    let steps = list(&file["jobs"]["counterproof"]["steps"]).iter().filter_map(|step| step.get("run"));
    let steps = steps.map(|run| {
        let when = if run["when"] == "always" { When::Always } else { When::Success };
        joined(text(&run["name"]), std::slice::from_ref(&run["command"]), when)
    });
    steps.collect()
}

/// The `sh` steps of a `Jenkinsfile`. Those below `post` run always.
pub(crate) fn jenkins(file: &str) -> Vec<Step> {
    let (stages, post) = file.split_once("\n    post {").unwrap();
    let mut steps = Vec::new();
    for (part, when) in [(stages, When::Success), (post, When::Always)] {
        let mut rest = part;
        while let Some(start) = rest.find("sh '") {
            let name = rest[..start].rsplit("stage('").next().and_then(|it| it.split('\'').next()).unwrap();
            let quote = if rest[start..].starts_with("sh '''") { "'''" } else { "'" };
            let script = &rest[start + 3 + quote.len()..];
            let end = script.find(quote).unwrap();
            // Groovy reads escapes within its quotes.
            let text = script[..end].replace("\\\\", "\\");
            steps.push(Step { name: name.to_owned(), script: text, when, builds: Builds::All });
            rest = &script[end + quote.len()..];
        }
    }
    steps
}
