//! The risk of a command, from the programs that it runs. A command that only reads has none.

use counterproof_artifact::RiskLevel;
use counterproof_sessions::event::CommandLine;
use counterproof_sessions::shell::{Program, programs};

/// How much harm a command can do, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandRisk {
    pub(super) level: RiskLevel,
    pub(super) tags: Vec<String>,
}

/// Programs that only read, whatever their arguments are.
const READERS: &[&str] = &[
    "cd",
    "ls",
    "cat",
    "head",
    "tail",
    "less",
    "more",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "fd",
    "pwd",
    "wc",
    "which",
    "type",
    "whereis",
    "file",
    "stat",
    "du",
    "df",
    "tree",
    "echo",
    "printf",
    "true",
    "false",
    "test",
    "[",
    "sort",
    "uniq",
    "cut",
    "tr",
    "diff",
    "cmp",
    "date",
    "printenv",
    "whoami",
    "id",
    "uname",
    "hostname",
    "ps",
    "jq",
    "xxd",
    "od",
    "sleep",
    "nl",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "export",
    "set",
    "md5sum",
    "sha256sum",
    "awk",
    "column",
    "fi",
    "done",
    "pushd",
    "popd",
];

/// Programs that check or build, and leave nothing but their own files.
const BUILDERS: &[&str] = &[
    "tsc",
    "eslint",
    "ruff",
    "mypy",
    "pyright",
    "pylint",
    "flake8",
    "black",
    "prettier",
    "rustfmt",
    "gofmt",
    "gcc",
    "g++",
    "clang",
    "cc",
    "cmake",
    "ninja",
    "rustc",
    "javac",
    "shellcheck",
    "mkdir",
    "touch",
];

/// Returns the risk of a command; `None` if it only reads.
pub(super) fn command_risk(command: &CommandLine) -> Option<CommandRisk> {
    let mut risk: Option<CommandRisk> = None;
    for program in programs(command) {
        let Some((level, tag)) = program_risk(&program) else { continue };
        let risk = risk.get_or_insert_with(|| CommandRisk { level, tags: Vec::new() });
        if rank(level) > rank(risk.level) {
            risk.level = level;
        }
        if !tag.is_empty() && !risk.tags.iter().any(|known| known == tag) {
            risk.tags.push(tag.to_owned());
        }
    }
    if let Some(risk) = &mut risk {
        risk.tags.sort_unstable();
    }
    risk
}

const fn rank(level: RiskLevel) -> u8 {
    match level {
        RiskLevel::Low => 0,
        // An unknown program may write, and more is known about the others.
        RiskLevel::Unknown => 1,
        RiskLevel::Medium => 2,
        RiskLevel::High => 3,
    }
}

type Risk = Option<(RiskLevel, &'static str)>;

const HIGH: RiskLevel = RiskLevel::High;
const MEDIUM: RiskLevel = RiskLevel::Medium;
const LOW: RiskLevel = RiskLevel::Low;

fn program_risk(program: &Program) -> Risk {
    let asks = ["--version", "--help", "-V"];
    if program.is_privileged {
        return Some((HIGH, "privileged"));
    }
    if program.is_test() {
        return Some((LOW, "tests"));
    }
    let writes = || if program.writes.is_empty() { None } else { Some((MEDIUM, "file")) };
    if program.arguments.iter().any(|argument| asks.contains(&argument.as_str())) {
        return writes();
    }
    let mut words = program.words();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match program.name.as_str() {
        name if READERS.contains(&name) => writes(),
        name if BUILDERS.contains(&name) => Some((LOW, "")),
        "git" => git(program, first).or_else(writes),
        "find" if program.arguments.iter().any(|it| matches!(it.as_str(), "-delete" | "-exec" | "-execdir")) => {
            Some((MEDIUM, "file"))
        }
        "find" => writes(),
        "sed" if !program.has_option('i', "in-place") => writes(),
        "rm" if program.has_option('r', "recursive") || program.has_option('R', "recursive") => Some((HIGH, "delete")),
        "rm" | "rmdir" | "unlink" => Some((MEDIUM, "delete")),
        "mv" | "cp" | "sed" | "tee" | "chmod" | "chown" | "ln" | "patch" | "tar" | "unzip" | "truncate" => {
            Some((MEDIUM, "file"))
        }
        "dd" | "mkfs" | "shutdown" | "reboot" | "shred" => Some((HIGH, "delete")),
        "ssh" | "scp" | "sftp" | "rsync" | "ftp" => Some((HIGH, "network")),
        "curl" | "wget" | "http" | "xh" => Some(if sends(program) { (HIGH, "network") } else { (MEDIUM, "network") }),
        "gh" | "glab" => match second {
            "list" | "view" | "status" | "diff" | "checks" | "checkout" => None,
            _ => Some((HIGH, "publish")),
        },
        "cargo" | "npm" | "yarn" | "pnpm" | "bun" | "pip" | "pip3" | "uv" | "poetry" | "twine" | "gem" | "go"
        | "brew" | "apt" | "apt-get" | "dnf" | "apk" | "pipx" | "conda" => packages(first),
        "docker" | "podman" => match first {
            "push" | "login" => Some((HIGH, "publish")),
            "ps" | "images" | "logs" | "inspect" | "version" => None,
            _ => Some((MEDIUM, "container")),
        },
        "kubectl" | "helm" | "terraform" | "tofu" | "aws" | "gcloud" | "az" => match (first, second) {
            ("get" | "describe" | "logs" | "plan" | "show" | "validate" | "version" | "list", _)
            | (_, "describe" | "list" | "ls" | "show") => None,
            _ => Some((HIGH, "infrastructure")),
        },
        "make" | "just" | "mvn" | "mvnw" | "gradle" | "gradlew" | "sbt" => match first {
            "install" | "deploy" | "publish" | "release" => Some((HIGH, "publish")),
            _ => Some((LOW, "")),
        },
        _ => Some((RiskLevel::Unknown, "")),
    }
}

fn git(program: &Program, subcommand: &str) -> Risk {
    match subcommand {
        "push" => Some((HIGH, "publish")),
        "reset" if program.has_option('\0', "hard") => Some((HIGH, "history")),
        "clean" => Some((HIGH, "delete")),
        "branch" if program.has_option('D', "delete") || program.has_option('d', "delete") => Some((HIGH, "history")),
        "filter-branch" | "filter-repo" | "gc" | "prune" => Some((HIGH, "history")),
        "add" | "fetch" => Some((LOW, "")),
        "commit" | "merge" | "rebase" | "checkout" | "switch" | "restore" | "stash" | "pull" | "cherry-pick"
        | "revert" | "reset" | "tag" | "mv" | "rm" | "init" | "clone" | "apply" | "am" | "worktree" | "submodule" => {
            Some((MEDIUM, "history"))
        }
        _ => None,
    }
}

fn packages(subcommand: &str) -> Risk {
    match subcommand {
        "publish" | "upload" | "push" | "yank" | "unpublish" | "login" => Some((HIGH, "publish")),
        "install" | "i" | "ci" | "add" | "get" | "update" | "upgrade" | "remove" | "uninstall" | "rm" | "sync"
        | "create" => Some((MEDIUM, "install")),
        "build" | "check" | "clippy" | "fmt" | "doc" | "bench" | "vet" | "lint" | "run" | "generate" | "compile" => {
            Some((LOW, ""))
        }
        "metadata" | "tree" | "list" | "ls" | "show" | "outdated" | "info" | "view" | "env" | "freeze" | "search" => {
            None
        }
        _ => Some((RiskLevel::Unknown, "")),
    }
}

/// Whether a client sends data, or asks for another thing than to read.
fn sends(program: &Program) -> bool {
    let options = [
        ("-d", "--data"),
        ("-F", "--form"),
        ("-T", "--upload-file"),
        ("\u{0}", "--post-data"),
        ("\u{0}", "--post-file"),
        ("\u{0}", "--json"),
    ];
    let method = |argument: &str| {
        matches!(argument, "POST" | "PUT" | "PATCH" | "DELETE" | "-XPOST" | "-XPUT" | "-XPATCH" | "-XDELETE")
    };
    program.arguments.iter().any(|argument| {
        method(argument)
            || options.iter().any(|(short, long)| argument.starts_with(short) || argument.starts_with(long))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn risk(text: &str) -> Option<(RiskLevel, String)> {
        command_risk(&CommandLine::Shell(text.to_owned())).map(|risk| (risk.level, risk.tags.join(" ")))
    }

    #[test]
    fn the_risk_of_a_command_is_that_of_its_most_harmful_program() {
        use RiskLevel::{High, Low, Medium, Unknown};
        for (text, level, tags) in [
            ("pytest -q", Low, "tests"),
            ("cd a && cargo build", Low, ""),
            ("git add -A && git commit -m x", Medium, "history"),
            ("git commit -m x && git push", High, "history publish"),
            ("git reset --hard HEAD~1", High, "history"),
            ("rm -rf build", High, "delete"),
            ("rm a.py", Medium, "delete"),
            ("echo x > a.py", Medium, "file"),
            ("sed -i s/a/b/ a.py", Medium, "file"),
            ("npm install left-pad", Medium, "install"),
            ("cargo publish", High, "publish"),
            ("curl https://example.com", Medium, "network"),
            ("curl -X POST https://example.com -d @x", High, "network"),
            ("sudo ls", High, "privileged"),
            ("gh pr create --title x", High, "publish"),
            ("python fix.py", Unknown, ""),
        ] {
            assert_eq!(risk(text), Some((level, tags.to_owned())), "{text}");
        }
    }

    #[test]
    fn reading_is_no_action() {
        for text in [
            "ls -la | head",
            "cat a.py",
            "git status && git diff",
            "grep -rn x . 2>/dev/null",
            "find . -name x",
            "cargo --version",
            "sed -n 1,5p a",
            "gh pr view 1",
            "",
        ] {
            assert_eq!(risk(text), None, "{text}");
        }
    }
}
