//! Agents that change what steers git, before a rollback: either the files are those of the start, or the contract is `failed`.
//! Files that were ignored or not tracked stay as they are in both cases.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use counterproof_tests::Sandbox;
use serde_json::json;
use walkdir::WalkDir;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::finish;
use crate::snapshot::write;

const PREPARE: &str = r"
git init -q --initial-branch main repo; cd repo
mkdir -p src/deep docs own; echo one >a.txt; echo two >src/b.txt; echo three >src/deep/c.txt; echo doc >docs/d.md; echo a >.a; echo '*.x text' >.gitattributes
printf '#!/bin/sh\n' >src/tool.sh; chmod +x src/tool.sh; ln -s a.txt link; printf '*.log\n/build/\n' >.gitignore
git add --all; git commit -qm start
printf '.env\n' >>.git/info/exclude; echo secret >.env; echo mine >mine.txt; echo log >x.log
mkdir build; echo built >build/out; echo '*' >own/.gitignore; echo own >own/file
";

/// Files that the agent does not own. None of the steps changes them directly.
const OF_THE_USER: [&str; 6] = [".env", "mine.txt", "x.log", "build/out", "own/.gitignore", "own/file"];

/// What an agent may do. A step that fails is skipped.
const STEPS: [&str; 45] = [
    "echo work >a.txt",
    "echo work >>src/b.txt",
    "rm src/deep/c.txt",
    "rm -r src",
    "mkdir new; echo new >new/file; echo new >top",
    "chmod +x a.txt; chmod -x src/tool.sh",
    "rm link; ln -s /etc/passwd link",
    "rm -r docs; echo file >docs",
    "rm a.txt; mkdir a.txt; echo inner >a.txt/inner",
    "rm a.txt; mkdir a.txt; echo only >a.txt/only.log",
    "mv src moved; ln -s moved src",
    "git add a.txt src; git commit -qm work",
    "git add --force .env mine.txt; git commit -qm all; git rm -q --cached .env mine.txt; git commit -qm none",
    "git update-index --assume-unchanged $(git ls-files)",
    "git update-index --skip-worktree $(git ls-files)",
    "git replace HEAD:a.txt $(echo work | git hash-object -w --stdin)",
    "git replace $(git rev-parse HEAD^{tree}) $(git commit -qam x; git rev-parse HEAD^{tree})",
    "git config filter.x.clean 'git show HEAD:a.txt'; echo '* filter=x' >.git/info/attributes",
    "git config filter.x.smudge 'echo work'; echo '* filter=x' >.gitattributes",
    "git config filter.x.process 'sleep 100000'; echo '* filter=x' >>.gitattributes",
    "git config core.checkStat minimal; git config core.trustctime false; touch -d @0 a.txt src/b.txt",
    "cp -p a.txt .git/was; echo ONE >a.txt; touch -r .git/was a.txt",
    "echo '*' >.git/info/exclude",
    ": >.git/info/exclude",
    "echo '*' >.git/rules; git config core.excludesFile $PWD/.git/rules",
    "mkdir -p hidden; echo '*' >hidden/.gitignore; echo work >hidden/work",
    "echo '*' >.gitignore",
    ": >.gitignore; git add .gitignore; git commit -qm rules",
    "rm -f .gitattributes; mkfifo pipe .gitattributes .mailmap; echo work >.a",
    "rm a.txt; mkfifo a.txt",
    ": >.git/index.lock",
    ": >.git/HEAD.lock",
    "git config core.worktree /",
    "git config core.autocrlf true; echo '*.txt text eol=crlf' >.gitattributes",
    "git config core.fileMode false; git config core.symlinks false; git config core.ignoreCase true",
    "git config core.sparseCheckout true; echo /docs >.git/info/sparse-checkout",
    "git config extensions.worktreeConfig true; git config --worktree core.bare true",
    "rm .git/index; mkfifo .git/index",
    "git switch -qc other",
    "git reset -q --soft HEAD~",
    "git gc -q --prune=now",
    "cd own; git init -q; cd ../src; git init -q",
    "object=$(git rev-parse HEAD:a.txt); rm -f .git/objects/$(echo $object | cut -c1-2)/$(echo $object | cut -c3-)",
    "printf '#!/bin/sh\\necho hook >>a.txt\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "git init -q --bare .git/modules/x; echo 'gitdir: .git/modules/x' >docs/.git",
];

/// The kind and the content of each file.
type Files = BTreeMap<String, (char, Vec<u8>)>;

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    shell(&attempt.sandbox, PREPARE)?;
    let repository = attempt.sandbox.path("repo").into_std_path_buf();
    let before = files(&repository)?;
    let steps: Vec<&str> = (0..attempt.random.u32(2..8)).map(|_| STEPS[attempt.random.usize(..STEPS.len())]).collect();
    // A step may block on a pipe of an earlier one.
    let script: Vec<String> = steps.iter().map(|step| format!("timeout 5 sh >&2 <<'END'\n{step}\nEND\n")).collect();
    let script = script.concat();
    let seen = "if test -f a.txt/only.log; then : >../only; fi";
    write(
        attempt.sandbox.path("agent.sh").as_std_path(),
        format!("cat >&2\n{script}\n{seen}\necho '{{}}'\n").as_bytes(),
    )?;
    let contract = json!({
        "id": "c", "version": 1, "created_at": "2026-01-31T12:00:00Z", "input": {"type": "task", "data": {}},
        "output": {"type": "o", "schema": {}}, "verification": {"command": "false"}, "rollback": {"strategy": "git_reset"}
    });
    write(attempt.sandbox.path("c.json").as_std_path(), contract.to_string().as_bytes())?;
    finish(attempt.sandbox.command(["contract", "add", "c.json"]))?.has_code(0)?;
    let agent = format!("{} sh {}", author(), attempt.sandbox.path("agent.sh"));
    let mut command = attempt.sandbox.command(["contract", "run", "c", "--workdir", "repo", "--agent-cmd", &agent]);
    command.env("COUNTERPROOF_LOCKS", attempt.sandbox.path("locks")).env("GIT_CONFIG_GLOBAL", "/dev/null");
    finish(command)?.has_code(1)?;
    let shown = finish(attempt.sandbox.command(["contract", "show", "c", "--json"]))?;
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).map_err(io::Error::from)?;
    let after = files(&repository)?;
    let differing: Vec<&String> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    let of_the_user: Vec<&&String> = differing.iter().filter(|path| OF_THE_USER.contains(&path.as_str())).collect();
    ensure!(of_the_user.is_empty(), "files of the user differ: {of_the_user:?}\n  after: {steps:#?}");
    match shown["state"].as_str() {
        Some("failed") => Ok(()),
        Some("rolled_back") => {
            ensure!(differing.is_empty(), "rolled back, but these differ: {differing:?}\n  after: {steps:#?}");
            if attempt.sandbox.path("only").exists() {
                // The agent left an ignored file in the place of a tracked one.
                let show = "GIT_NO_REPLACE_OBJECTS=1 git --git-dir repo/.git cat-file -e";
                shell(&attempt.sandbox, &format!("{show} refs/counterproof/rollback/c/1:a.txt/only.log"))?;
            }
            Ok(())
        }
        other => Err(Fault::new(format!("the contract is {other:?}\n  after: {steps:#?}"))),
    }
}

fn author() -> String {
    ["AUTHOR", "COMMITTER"].map(|role| format!("GIT_{role}_NAME=x GIT_{role}_EMAIL=x@localhost")).join(" ")
}

fn shell(sandbox: &Sandbox, script: &str) -> Outcome {
    let mut command = Command::new("sh");
    let script = format!("set -e; export {}\n{script}", author());
    command.args(["-c", &script]).current_dir(sandbox.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
    finish(command)?.has_code(0)
}

/// The files of a work tree, without those of git.
fn files(root: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(|entry| entry.file_name() != ".git" || entry.depth() != 1)
    {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type());
        let name = path.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().into_owned();
        if kind.is_symlink() {
            files.insert(name, ('l', fs::read_link(path)?.into_os_string().into_encoded_bytes()));
        } else if kind.is_file() {
            let is_executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
            files.insert(name, (if is_executable { 'x' } else { 'f' }, fs::read(path)?));
        } else if kind.is_fifo() {
            files.insert(name, ('p', Vec::new()));
        }
    }
    Ok(files)
}
