//! Detection of test commands by the files of a repository. The repository may be hostile: its files are read and never run here.

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use regex::Regex;
use serde_json::Value;

use super::commands::{Commands, Runner};
use super::read::regex;
use super::test_line::quote;

/// Maximum size of a configuration file or a test file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of test files that are looked at.
const MAX_TEST_FILES: usize = 500;
const MAX_FOLDER_DEPTH: usize = 6;

/// Finds the commands of the repository at `folder`. `has_module` reports whether Python can import a module.
pub fn detect(folder: &Utf8Path, has_module: &dyn Fn(&str) -> bool) -> Commands {
    let repository = Repository { folder, has_module };
    let found = repository.cargo().or_else(|| repository.go()).or_else(|| repository.npm());
    let found = found.or_else(|| repository.python()).or_else(|| repository.make());
    let mut commands = found.unwrap_or_default();
    if commands.lint.is_none() {
        commands.lint = repository.make_lint();
    }
    commands
}

struct Repository<'a> {
    folder: &'a Utf8Path,
    has_module: &'a dyn Fn(&str) -> bool,
}

impl Repository<'_> {
    fn read(&self, name: &str) -> Option<String> {
        read_file::read_text(&self.folder.join(name), MAX_FILE_BYTES).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }

    fn cargo(&self) -> Option<Commands> {
        let manifest = self.read("Cargo.toml")?;
        let is_workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
        let scope = if is_workspace { " --workspace" } else { "" };
        let mut lints = Vec::new();
        // A repository that is not formatted would get changes that have nothing to do with the task.
        if self.has("rustfmt.toml") || self.has(".rustfmt.toml") {
            lints.push("cargo fmt --all".to_owned());
        }
        let has_levels = manifest.contains("[lints") || manifest.contains("[workspace.lints");
        if has_levels || self.has("clippy.toml") || self.has(".clippy.toml") {
            lints.push(format!("cargo clippy{scope} --all-targets"));
        }
        Some(Commands {
            runner: Some(Runner::Cargo),
            test: Some(format!("cargo test{scope} --no-fail-fast {{test}}")),
            // All test binaries run, so that the lists before and after a change can be compared.
            suite: Some(format!("cargo test{scope} --no-fail-fast")),
            lint: Some(lints.join(" && ")).filter(|line| !line.is_empty()),
            found_by: Some("Cargo.toml".to_owned()),
            ..Commands::default()
        })
    }

    fn go(&self) -> Option<Commands> {
        self.has("go.mod").then(|| Commands {
            runner: Some(Runner::Go),
            test: Some("go test -v {test}".to_owned()),
            suite: Some("go test -v ./...".to_owned()),
            lint: Some("go fmt ./...".to_owned()),
            found_by: Some("go.mod".to_owned()),
            ..Commands::default()
        })
    }

    fn npm(&self) -> Option<Commands> {
        let package: Value = serde_json::from_str(&self.read("package.json")?).ok()?;
        let script = |name: &str| package.pointer("/scripts")?.get(name)?.as_str();
        // The text that `npm init` writes.
        let test = script("test").filter(|line| !line.contains("no test specified"));
        let is_used = |name: &str| {
            let depends = |kind: &str| package.get(kind).is_some_and(|it| it.get(name).is_some());
            test.is_some_and(|line| line.split(|c: char| !c.is_alphanumeric()).any(|word| word == name))
                || (test.is_none() && (depends("devDependencies") || depends("dependencies")))
        };
        let is_node = test.is_some_and(|line| line.contains("node") && line.contains("--test"));
        let (one, by_name, all) = if is_used("vitest") {
            let run = "npx vitest run --reporter=verbose";
            (format!("{run} {{test}}"), format!("{run} {{file}} -t {{test}}"), run.to_owned())
        } else if is_used("jest") {
            let run = "npx jest --verbose";
            (format!("{run} {{test}}"), format!("{run} {{file}} -t {{test}}"), run.to_owned())
        } else if is_used("mocha") {
            let run = "npx mocha";
            (format!("{run} {{test}}"), format!("{run} {{file}} -g {{test}}"), run.to_owned())
        } else if is_node || (test.is_none() && self.has_test_file(&["test.js", "test.mjs"])) {
            let run = "node --test";
            (format!("{run} {{test}}"), format!("{run} --test-name-pattern={{test}} {{file}}"), run.to_owned())
        } else {
            test?;
            ("npm test".to_owned(), String::new(), "npm test".to_owned())
        };
        // The script may set up what its tests need. Only where it is the runner alone, its list of tests is asked for.
        let is_bare = test.is_none_or(|line| ["vitest", "vitest run", "jest"].contains(&line.trim()));
        let lints = ["format", "lint"].into_iter().filter(|name| script(name).is_some());
        let lints: Vec<String> = lints.map(|name| format!("npm run {name}")).collect();
        Some(Commands {
            runner: Some(Runner::Npm),
            test: Some(one),
            test_by_name: Some(by_name).filter(|line| !line.is_empty()),
            suite: Some(if is_bare { all } else { "npm test".to_owned() }),
            lint: Some(lints.join(" && ")).filter(|line| !line.is_empty()),
            found_by: Some("package.json".to_owned()),
            ..Commands::default()
        })
    }

    fn python(&self) -> Option<Commands> {
        static PYTEST: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"(?m)^\s*(?:import pytest|from pytest\b)|^(?:async )?def test_\w*\(|^class Test\w*(?:\(\))?:")
        });
        static UNITTEST: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)\bunittest\b|TestCase\b"));
        let tests = self.test_files();
        let is_project = ["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "requirements.txt"];
        if tests.is_empty() && !is_project.iter().any(|name| self.has(name)) {
            return None;
        }
        let config = [
            ("pytest.ini", "[pytest]"),
            ("pyproject.toml", "[tool.pytest"),
            ("tox.ini", "[pytest]"),
            ("setup.cfg", "[tool:pytest]"),
        ];
        let config = config.into_iter().find(|(name, section)| self.read(name).is_some_and(|it| it.contains(section)));
        let sources: Vec<String> = tests.iter().filter_map(|file| self.read(file.as_str())).collect();
        let plain =
            tests.iter().zip(&sources).find(|(_, source)| PYTEST.is_match(source)).map(|(file, _)| file.as_str());
        let found_by = config.map(|(name, _)| name).or(plain).or(self.has("conftest.py").then_some("conftest.py"));
        let unittest = tests.iter().zip(&sources).find(|(_, source)| UNITTEST.is_match(source)).map(|(file, _)| file);
        let lint = self.python_lint();
        if let Some(found_by) = found_by {
            let is_installed = (self.has_module)("pytest");
            // Without any test of unittest, the error of the missing module is clearer than an empty run.
            if is_installed || unittest.is_none() {
                let mut commands = pytest(found_by, lint);
                if !is_installed {
                    commands.notes.push("the tests need pytest, which python3 cannot import".to_owned());
                }
                return Some(commands);
            }
        }
        let mut commands = self.unittest(&tests, unittest, lint);
        if let Some(file) = found_by {
            commands.notes.push(format!("{file} is for pytest, which python3 cannot import"));
        }
        Some(commands)
    }

    fn unittest(&self, tests: &[Utf8PathBuf], first: Option<&Utf8PathBuf>, lint: Option<String>) -> Commands {
        // Discovery enters packages only, and its start folder is where modules are imported from.
        let is_reached = |file: &Utf8PathBuf| {
            file.ancestors()
                .skip(1)
                .filter(|it| !it.as_str().is_empty())
                .all(|it| self.has(it.join("__init__.py").as_str()))
        };
        let first_folder = tests.first().and_then(|file| file.parent()).filter(|it| !it.as_str().is_empty());
        let start = first_folder.filter(|_| !tests.iter().any(is_reached));
        let (path, from) = match start {
            Some(start) => {
                let start = quote(start.as_str());
                (format!("PYTHONPATH={start}${{PYTHONPATH:+:$PYTHONPATH}} "), format!(" -s {start}"))
            }
            None => (String::new(), String::new()),
        };
        let is_prefixed = tests.iter().all(|file| file.file_name().is_some_and(|name| name.starts_with("test")));
        let pattern = if is_prefixed || tests.is_empty() { "" } else { " -p '*test*.py'" };
        Commands {
            runner: Some(Runner::Unittest),
            test: Some(format!("{path}python3 -m unittest -v {{test}}")),
            suite: Some(format!("python3 -m unittest discover -v{from}{pattern}")),
            lint,
            found_by: first.or(tests.first()).map(ToString::to_string),
            module_folder: start.map(Utf8Path::to_owned),
            ..Commands::default()
        }
    }

    fn python_lint(&self) -> Option<String> {
        let project = self.read("pyproject.toml").unwrap_or_default();
        let has_file = |names: &[&str]| names.iter().any(|name| self.has(name));
        let mut lines = Vec::new();
        if (project.contains("[tool.ruff") || has_file(&["ruff.toml", ".ruff.toml"])) && (self.has_module)("ruff") {
            // A project that only sets rules may have another formatter.
            if project.contains("[tool.ruff.format") {
                lines.push("python3 -m ruff format .");
            }
            lines.push("python3 -m ruff check .");
        }
        if project.contains("[tool.black") && (self.has_module)("black") {
            lines.insert(0, "python3 -m black -q .");
        }
        if has_file(&[".flake8"]) && (self.has_module)("flake8") {
            lines.push("python3 -m flake8");
        }
        Some(lines.join(" && ")).filter(|line| !line.is_empty())
    }

    fn make(&self) -> Option<Commands> {
        let (file, makefile) = self.makefile()?;
        let target = ["test", "check", "tests"].into_iter().find(|target| has_target(&makefile, target))?;
        Some(Commands {
            runner: Some(Runner::Make),
            suite: Some(format!("make {target}")),
            found_by: Some(file.to_owned()),
            ..Commands::default()
        })
    }

    fn make_lint(&self) -> Option<String> {
        let (_, makefile) = self.makefile()?;
        has_target(&makefile, "lint").then(|| "make lint".to_owned())
    }

    fn makefile(&self) -> Option<(&'static str, String)> {
        let names = ["GNUmakefile", "makefile", "Makefile"];
        names.into_iter().find_map(|name| Some((name, self.read(name)?)))
    }

    /// Finds the test files of Python, sorted, those at the top first.
    fn test_files(&self) -> Vec<Utf8PathBuf> {
        self.files(&|name| {
            name.strip_suffix(".py").is_some_and(|stem| {
                stem.starts_with("test_") || stem.ends_with("_test") || stem == "tests" || stem == "test"
            })
        })
    }

    fn has_test_file(&self, ends: &[&str]) -> bool {
        !self.files(&|name| ends.iter().any(|end| name.ends_with(end))).is_empty()
    }

    fn files(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<Utf8PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![(Utf8PathBuf::new(), 0)]);
        let mut looked_at = 0;
        while let Some((relative, depth)) = folders.pop() {
            let Ok(entries) = self.folder.join(&relative).read_dir_utf8() else { continue };
            for entry in entries.flatten() {
                looked_at += 1;
                if found.len() == MAX_TEST_FILES || looked_at > 200_000 {
                    break;
                }
                let name = entry.file_name();
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && depth < MAX_FOLDER_DEPTH && !name.starts_with('.') && name != "node_modules" {
                    folders.push((relative.join(name), depth + 1));
                } else if kind.is_file() && is_wanted(name) {
                    found.push(relative.join(name));
                }
            }
        }
        found.sort_by_key(|path| (path.components().count(), path.clone()));
        found
    }
}

fn pytest(found_by: &str, lint: Option<String>) -> Commands {
    Commands {
        runner: Some(Runner::Pytest),
        // Twice, because the configuration may have `-q`.
        test: Some("python3 -m pytest -vv {test}".to_owned()),
        suite: Some("python3 -m pytest -vv".to_owned()),
        lint,
        found_by: Some(found_by.to_owned()),
        ..Commands::default()
    }
}

fn has_target(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| {
        let Some((names, rest)) = line.split_once(':') else { return false };
        !rest.starts_with('=') && !line.starts_with(['\t', '#']) && names.split_whitespace().any(|name| name == target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Overrides;

    fn commands(files: &[(&str, &str)], modules: &[&str]) -> Commands {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            counterproof_store::write::write_new(&path, text.as_bytes()).unwrap();
        }
        detect(root, &|module| modules.contains(&module))
    }

    fn suite(files: &[(&str, &str)], modules: &[&str]) -> (Option<Runner>, Option<String>) {
        let commands = commands(files, modules);
        (commands.runner, commands.suite)
    }

    #[test]
    fn each_runner_is_found_by_its_files() {
        let found = |runner, line: &str| (Some(runner), Some(line.to_owned()));
        let cargo = suite(&[("Cargo.toml", "[workspace]\n"), ("Makefile", "test:\n")], &[]);
        assert_eq!(cargo, found(Runner::Cargo, "cargo test --workspace --no-fail-fast"));
        assert_eq!(suite(&[("go.mod", "module x")], &[]), found(Runner::Go, "go test -v ./..."));
        for (package, line) in [
            (r#"{"scripts": {"test": "jest"}}"#, "npx jest --verbose"),
            (r#"{"scripts": {"test": "vitest run"}}"#, "npx vitest run --reporter=verbose"),
            (r#"{"scripts": {"test": "tsc && mocha build"}}"#, "npm test"),
            (r#"{"scripts": {"test": "node --test"}}"#, "npm test"),
            (r#"{"devDependencies": {"vitest": "1"}}"#, "npx vitest run --reporter=verbose"),
        ] {
            assert_eq!(suite(&[("package.json", package)], &[]), found(Runner::Npm, line), "{package}");
        }
        let unit = ("tests/test_a.py", "import unittest\nclass A(unittest.TestCase):\n  def test_a(self): pass\n");
        assert_eq!(suite(&[unit], &["pytest"]), found(Runner::Unittest, "python3 -m unittest discover -v -s tests"));
        assert_eq!(
            suite(&[unit, ("tests/__init__.py", "")], &[]),
            found(Runner::Unittest, "python3 -m unittest discover -v")
        );
        let plain = ("test_a.py", "def test_a():\n    pass\n");
        assert_eq!(suite(&[plain], &["pytest"]), found(Runner::Pytest, "python3 -m pytest -vv"));
        assert_eq!(suite(&[unit, ("pytest.ini", "[pytest]\n")], &["pytest"]).0, Some(Runner::Pytest));
        assert_eq!(suite(&[unit, ("pytest.ini", "[pytest]\n")], &[]).0, Some(Runner::Unittest));
        assert_eq!(
            suite(&[("Makefile", "all: x\n.PHONY: test\ntest: x\n\ttrue\n")], &[]),
            found(Runner::Make, "make test")
        );
        assert_eq!(suite(&[("Makefile", "test := 1\n")], &[]), (None, None));
        assert_eq!(
            suite(&[("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)], &[]),
            (None, None)
        );
    }

    #[test]
    fn the_detection_is_printed_with_what_is_missing() {
        let commands = commands(&[("test_a.py", "def test_a(): pass\n")], &[]);
        assert_eq!(
            commands.to_string(),
            "test runner: pytest (found by test_a.py)\n  one test: python3 -m pytest -vv {test}\n  suite: python3 -m pytest -vv\n  lint: \
             not set\n  note: the tests need pytest, which python3 cannot import"
        );
        let given = |test: Option<&str>, suite: Option<&str>| {
            let given = |line: Option<&str>| line.map(str::to_owned);
            commands
                .clone()
                .with(Overrides { test: given(test), suite: given(suite), ..Overrides::default() })
                .notes
                .len()
        };
        assert_eq!((given(Some("x"), Some("y")), given(Some("x"), None), given(None, Some("y"))), (0, 1, 1));
    }

    #[test]
    fn linters_are_used_only_if_they_are_configured_and_installed() {
        let project = ("pyproject.toml", "[tool.ruff]\n[tool.black]\n");
        assert_eq!(commands(&[project], &["ruff"]).lint.as_deref(), Some("python3 -m ruff check ."));
        let both = commands(&[project], &["ruff", "black"]).lint;
        assert_eq!(both.as_deref(), Some("python3 -m black -q . && python3 -m ruff check ."));
        let scripts = r#"{"scripts": {"test": "jest", "lint": "eslint .", "format": "prettier -w ."}}"#;
        let npm = commands(&[("package.json", scripts)], &[]).lint;
        assert_eq!(npm.as_deref(), Some("npm run format && npm run lint"));
        assert_eq!(commands(&[("Makefile", "lint:\n")], &[]).lint.as_deref(), Some("make lint"));
    }
}
