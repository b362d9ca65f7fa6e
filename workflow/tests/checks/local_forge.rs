//! The local forge: records, branches, and CI in a clean clone.

use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_contracts::process::Cancellation;
use counterproof_store::FileLock;
use counterproof_store::write::{create_folder, write_new};
use counterproof_workflow::forge::{CiStatus, Forge, ForgeError, LocalForge, NewPullRequest, Push};
use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{Repository, git, git_options, shell, wanted};

struct Kit {
    repository: Repository,
    base: String,
    head: String,
    _folder: TempDir,
    forge: LocalForge,
}

impl Kit {
    fn new(ci_line: &str) -> Self {
        let repository = Repository::new();
        let base = repository.commit("a.txt", "a");
        let head = repository.commit("b.txt", "b");
        let folder = tempfile::Builder::new().prefix("a folder").tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("forge")).unwrap();
        let forge = LocalForge { folder: path, ci_line: Some(ci_line.to_owned()), shell: shell(), git: git_options() };
        Self { repository, base, head, _folder: folder, forge }
    }

    fn push(&self, branch: &str, commit: &str, own: &[&String]) -> Result<(), ForgeError> {
        let from = self.repository.bare();
        let own: Vec<String> = own.iter().map(|commit| (*commit).clone()).collect();
        self.forge.push(&Push { from: &from, commit, branch, own: &own }, &Cancellation::default())
    }

    fn request(&self, branch: &str) -> NewPullRequest {
        NewPullRequest {
            title: "Fix it".to_owned(),
            body: "It was wrong.".to_owned(),
            base: "main".to_owned(),
            head: branch.to_owned(),
            base_commit: self.base.clone(),
            head_commit: self.head.clone(),
        }
    }

    fn record(url: &str) -> Value {
        let path = url.strip_prefix("file://").unwrap().replace("%20", " ");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}

#[test]
fn a_pull_request_is_a_record_with_its_ci() {
    let kit = Kit::new("git rev-parse HEAD && git status --porcelain && ls && test -z \"$MY_TOKEN\" && echo done");
    let go = Cancellation::default();
    kit.push("fix", &kit.head, &[]).unwrap();
    assert_eq!(kit.forge.find("fix", &go).unwrap(), None);
    let opened = kit.forge.open(&kit.request("fix"), &go).unwrap();
    assert_eq!(kit.forge.open(&kit.request("fix"), &go).unwrap(), opened);
    assert_eq!(kit.forge.find("fix", &go).unwrap(), Some(opened.clone()));
    let ci = kit.forge.ci(&opened, &wanted(&kit.head, None), &go).unwrap();
    assert_eq!(ci.status, CiStatus::Pass);
    assert!(ci.log.starts_with(&format!("{}\na.txt\nb.txt\ndone\n", kit.head)), "{}", ci.log);
    assert!(std::fs::read_to_string(&ci.log_place).unwrap().starts_with(&kit.head));
    let record = Kit::record(&opened.url);
    let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
    let expected = ["number", "title", "body", "repository", "base", "head", "base_commit", "head_commit", "ci"];
    assert_eq!(keys, expected);
    assert_eq!(record["ci"], serde_json::json!([{"commit": kit.head, "status": "pass", "log": ci.log_place}]));
    let bare = Utf8PathBuf::from(record["repository"].as_str().unwrap());
    assert_eq!(
        git(&bare, &["rev-parse", "fix", "main", "refs/pull/1/head"]),
        format!("{0}\n{1}\n{0}", kit.head, kit.base)
    );
    // The clones of CI are removed.
    let left = kit.forge.folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned());
    let mut left: Vec<String> = left.collect();
    left.sort();
    assert_eq!(left, ["logs", "pulls", "repository.git"]);
}

#[test]
fn a_push_can_be_repeated_and_never_takes_commits_of_others() {
    let kit = Kit::new("true");
    let Kit { base, head, .. } = &kit;
    let next = &kit.repository.commit("c.txt", "c");
    kit.push("fix", head, &[]).unwrap();
    kit.push("fix", head, &[]).unwrap();
    // The push of `next` was not recorded before the process was killed.
    kit.push("fix", next, &[head, next]).unwrap();
    kit.push("fix", next, &[head, next]).unwrap();
    // A session that was rewound pushes another commit.
    kit.push("fix", base, &[head, next, base]).unwrap();
    let error = kit.push("fix", next, &[head, next]).unwrap_err();
    assert!(matches!(error, ForgeError::Moved { found, .. } if found == *base));
    // On another machine, the forge is empty.
    kit.push("other", next, &[head, base]).unwrap();
}

#[test]
fn a_second_commit_updates_the_pull_request() {
    let kit = Kit::new("test -e c.txt");
    let go = Cancellation::default();
    kit.push("fix", &kit.head, &[]).unwrap();
    let opened = kit.forge.open(&kit.request("fix"), &go).unwrap();
    let red = kit.forge.ci(&opened, &wanted(&kit.head, None), &go).unwrap();
    assert_eq!(red.status, CiStatus::Fail);
    let next = kit.repository.commit("c.txt", "c");
    kit.push("fix", &next, &[&kit.head]).unwrap();
    let request = NewPullRequest { head_commit: next.clone(), body: "More.".to_owned(), ..kit.request("fix") };
    kit.forge.update(&opened, &request, &go).unwrap();
    assert_eq!(kit.forge.ci(&opened, &wanted(&next, None), &go).unwrap().status, CiStatus::Pass);
    let record = Kit::record(&opened.url);
    assert_eq!((&record["body"], &record["head_commit"]), (&"More.".into(), &next.into()));
    let statuses: Vec<&Value> = record["ci"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["fail", "pass"]);
}

#[test]
fn a_ci_that_does_not_end_is_killed_with_its_children() {
    // A child of its own session, that holds the streams open.
    let kit = Kit::new("echo $$ > ../../pid; (setsid sleep 1000 &) ; echo started; sleep 1000");
    let go = Cancellation::default();
    kit.push("fix", &kit.head, &[]).unwrap();
    let opened = kit.forge.open(&kit.request("fix"), &go).unwrap();
    let ci = kit.forge.ci(&opened, &wanted(&kit.head, Some(Duration::from_millis(300))), &go).unwrap();
    assert_eq!(ci.status, CiStatus::TimedOut);
    assert!(ci.log.contains("CI did not end within 0.3 s and was killed"), "{}", ci.log);
    assert_eq!(Kit::record(&opened.url)["ci"][0]["status"], "fail");
}

#[test]
fn what_a_killed_process_left_is_completed_or_removed() {
    let kit = Kit::new("true");
    let folder = kit.forge.folder.clone();
    let put = |name: &str| {
        create_folder(folder.join(name).parent().unwrap()).unwrap();
        write_new(&folder.join(name), b"").unwrap();
    };
    // `git init` was killed.
    for name in ["repository.git/HEAD.lock", "repository.git/config.lock", "ci-left/clone/a.txt", "ci-used/clone/a.txt"]
    {
        put(name);
    }
    kit.push("fix", &kit.head, &[]).unwrap();
    let go = Cancellation::default();
    let opened = kit.forge.open(&kit.request("fix"), &go).unwrap();
    let used = FileLock::try_lock(&folder.join("ci-used/used")).unwrap();
    assert_eq!(kit.forge.ci(&opened, &wanted(&kit.head, None), &go).unwrap().status, CiStatus::Pass);
    let left = |name: &str| folder.join(name).exists();
    assert_eq!((left("ci-left"), left("ci-used")), (false, true));
    drop(used);
    kit.forge.ci(&opened, &wanted(&kit.head, None), &go).unwrap();
    assert!(!left("ci-used"));
}

#[test]
fn a_cancelled_ci_is_a_result_and_not_an_error() {
    let kit = Kit::new("sleep 1000");
    kit.push("fix", &kit.head, &[]).unwrap();
    let opened = kit.forge.open(&kit.request("fix"), &Cancellation::default()).unwrap();
    let cancelled = Cancellation::default();
    cancelled.cancel();
    assert_eq!(kit.forge.ci(&opened, &wanted(&kit.head, None), &cancelled).unwrap().status, CiStatus::Cancelled);
}

#[test]
fn numbers_are_unique_if_many_open_at_once() {
    let kit = Kit::new("true");
    kit.push("fix", &kit.head, &[]).unwrap();
    let numbers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let request = kit.request(&format!("fix-{}", number / 2));
                let forge = kit.forge.clone();
                scope.spawn(move || forge.open(&request, &Cancellation::default()).unwrap().number)
            })
            .collect();
        let mut numbers: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    });
    // Two threads each wanted a pull request for one branch.
    assert_eq!(numbers, [1, 1, 2, 2, 3, 3, 4, 4]);
}
