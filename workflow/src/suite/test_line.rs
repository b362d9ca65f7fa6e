//! The command line of one target: its id in the style of the runner, where the repository leaves no doubt about it, and shell-quoted.

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use regex::Regex;

use super::commands::{Commands, Runner};
use super::read::regex;
use super::tamper::{Fit, fit, has_tests};
use super::target::{Target, TargetError};
use super::test_files::{for_each_file, is_source, is_test_path, named_files};

/// Maximum size of a source file that is searched.
const MAX_SOURCE_BYTES: u64 = 4 << 20;
/// Maximum number of files that are searched for a test.
const MAX_FILES: usize = 20_000;

pub(super) fn test_line(commands: &Commands, target: &Target, folder: &Utf8Path) -> Result<String, TargetError> {
    let Some(template) = &commands.test else {
        return commands.suite.clone().ok_or(TargetError::NoCommand);
    };
    let runner = Runner::of_line(template).or(commands.runner.filter(|_| !commands.is_test_given));
    let (file, name) = split(target, folder);
    let words = match runner {
        Some(Runner::Unittest) => vec![unittest_name(commands, target, file.as_deref(), name.as_deref(), folder)],
        Some(Runner::Pytest) => vec![pytest_id(target, folder)],
        Some(Runner::Cargo) if commands.is_test_given => vec![name.unwrap_or_else(|| target.name().to_owned())],
        Some(Runner::Cargo) => cargo_words(target, file.as_deref(), name),
        Some(Runner::Go) if !commands.is_test_given => go_words(target, folder),
        Some(Runner::Npm) => {
            if let (Some(by_name), Some(name)) = (&commands.test_by_name, name) {
                let name = quote(&regex::escape(&name));
                let file = file.map(|file| quote(file.as_str())).unwrap_or_default();
                return Ok(by_name.replace("{file}", &file).replace("{test}", &name));
            }
            vec![target.name().to_owned()]
        }
        _ => vec![target.name().to_owned()],
    };
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    Ok(template.replace("{test}", &words.join(" ")))
}

impl Target {
    /// Returns the files that define the target test, relative to the repository at `folder`. More than one if the id does not decide
    /// between them.
    pub fn files(&self, folder: &Utf8Path) -> Vec<Utf8PathBuf> {
        let Target::Test { id, .. } = self else { return vec![Utf8PathBuf::from(self.name())] };
        let named = split(self, folder).0.or_else(|| dotted_file(id, folder).map(|it| it.0));
        if let Some(file) = &named {
            let text = read_file::read_text(&folder.join(file), MAX_SOURCE_BYTES).unwrap_or_default();
            // A class may inherit its tests from another file.
            if fit(file.as_str(), &text, self).is_some_and(|fit| fit > Fit::Group) {
                return named.into_iter().collect();
            }
        }
        let mut found = definitions(self, id, folder);
        // A name that several files define, as in test classes, may have the file as one of its parts.
        let is_in_id = |file: &Utf8PathBuf| {
            let stem = file.file_stem().filter(|stem| *stem != "mod").or(file.parent().and_then(Utf8Path::file_name));
            // A module of this name is in many files of Rust.
            stem.is_some_and(|stem| stem != "tests" && id.split(['.', ':', '/', ' ']).any(|it| it == stem))
        };
        if found.iter().any(is_in_id) {
            found.retain(is_in_id);
        }
        found.extend(named.filter(|file| !found.contains(file)));
        if found.is_empty() { named_files(id, folder) } else { found }
    }
}

/// Returns the files of a repository in which tests have to stay where the file of the target test is not known.
pub fn files_with_tests(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let (mut found, mut files) = (Vec::new(), 0);
    for_each_file(folder, &mut |path| {
        let mut text = String::new();
        if !is_test_path(path.as_str()) && is_source(&path) && files < MAX_FILES {
            files += 1;
            text = read_file::read_text(&folder.join(&path), MAX_SOURCE_BYTES).unwrap_or_default();
        }
        if has_tests(path.as_str(), text.as_bytes()) {
            found.push(path);
        }
    });
    found.sort();
    found
}

/// Splits `PATH::NAME`, `PATH › NAME` and `PATH > NAME` where the path is a file of the repository.
fn split(target: &Target, folder: &Utf8Path) -> (Option<Utf8PathBuf>, Option<String>) {
    let Target::Test { id, .. } = target else { return (Some(target.name().into()), None) };
    for separator in ["::", " › ", " > "] {
        if let Some((file, name)) = id.split_once(separator)
            && is_file(folder, file)
        {
            // Titles are joined by spaces in the filters of runners.
            let extension = Utf8Path::new(file).extension().unwrap_or("");
            let name = if extension.contains(['j', 't']) {
                name.replace(" › ", " ").replace(" > ", " ").replace("::", " ")
            } else {
                name.to_owned()
            };
            return (Some(file.into()), Some(name));
        }
    }
    (None, Some(id.replace(" › ", " ")))
}

fn is_file(folder: &Utf8Path, file: &str) -> bool {
    let path = Utf8Path::new(file);
    !path.is_absolute() && path.components().all(|it| it.as_str() != "..") && folder.join(path).is_file()
}

/// Finds the file of `package.module.Class.test`, and the parts after it.
fn dotted_file<'a>(id: &'a str, folder: &Utf8Path) -> Option<(Utf8PathBuf, &'a str)> {
    if id.contains([':', '/', ' ']) {
        return None;
    }
    let ends = id.match_indices('.').map(|(at, _)| at).chain([id.len()]);
    let mut files = ends.map(|end| (format!("{}.py", id[..end].replace('.', "/")), &id[end..]));
    let (file, rest) = files.find(|(file, _)| is_file(folder, file))?;
    Some((file.into(), rest.trim_start_matches('.')))
}

fn pytest_id(target: &Target, folder: &Utf8Path) -> String {
    match target {
        Target::Test { id, .. } => match dotted_file(id, folder) {
            Some((file, "")) => file.into_string(),
            Some((file, rest)) => format!("{file}::{}", rest.replace('.', "::")),
            None => id.clone(),
        },
        Target::File { path } => path.to_string(),
    }
}

fn unittest_name(
    commands: &Commands,
    target: &Target,
    file: Option<&Utf8Path>,
    name: Option<&str>,
    folder: &Utf8Path,
) -> String {
    let Some(file) = file.filter(|file| file.extension() == Some("py")) else { return target.name().to_owned() };
    // A command of the user runs in the repository.
    let module_folder = commands.module_folder.as_ref().filter(|_| !commands.is_test_given);
    let path = module_folder.and_then(|it| file.strip_prefix(it).ok()).unwrap_or(file);
    let module = path.with_extension("").as_str().replace('/', ".");
    let Some(name) = name else { return module };
    let name = name.split_once('[').map_or(name, |(name, _)| name).replace("::", ".");
    if !name.contains('.')
        && let Some(class) = class_of(&folder.join(file), &name)
    {
        return format!("{module}.{class}.{name}");
    }
    format!("{module}.{name}")
}

/// Finds the only class of a file that defines a method.
fn class_of(file: &Utf8Path, method: &str) -> Option<String> {
    static CLASS: LazyLock<Regex> = LazyLock::new(|| regex(r"^class\s+(\w+)"));
    static METHOD: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s+(?:async\s+)?def\s+(\w+)\s*\("));
    let source = read_file::read_text(file, MAX_SOURCE_BYTES).ok()?;
    let (mut class, mut found) = (None, Vec::new());
    for line in source.lines() {
        if let Some(name) = CLASS.captures(line) {
            class = Some(name[1].to_owned());
        } else if METHOD.captures(line).is_some_and(|name| &name[1] == method) {
            found.extend(class.clone());
        }
    }
    found.dedup();
    if found.len() == 1 { found.pop() } else { None }
}

fn cargo_words(target: &Target, file: Option<&Utf8Path>, name: Option<String>) -> Vec<String> {
    let Some(file) = file else { return vec![name.unwrap_or_else(|| target.name().to_owned())] };
    let parts: Vec<&str> = file.components().map(|it| it.as_str()).collect();
    let stem = file.file_stem().unwrap_or("");
    // `tests/a.rs` and `tests/a/main.rs` are test binaries of the package.
    if let Some(at) = parts.iter().rposition(|part| *part == "tests") {
        let binary = if parts.len() == at + 2 { stem } else { parts[at + 1] };
        return ["--test".to_owned(), binary.to_owned()].into_iter().chain(name).collect();
    }
    let from = parts.iter().position(|part| *part == "src").map_or(0, |at| at + 1);
    let mut modules: Vec<&str> = parts[from..].iter().map(|part| part.trim_end_matches(".rs")).collect();
    if ["lib", "main", "mod"].contains(&stem) {
        modules.pop();
    }
    modules.extend(name.as_deref());
    let path = modules.join("::");
    match (path.is_empty(), &name) {
        // The root of a library or a program.
        (true, _) if stem == "main" => vec!["--bins".to_owned()],
        (true, _) => vec!["--lib".to_owned()],
        (false, Some(_)) => vec![path],
        (false, None) => vec![format!("{path}::")],
    }
}

fn go_words(target: &Target, folder: &Utf8Path) -> Vec<String> {
    static TEST: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^func ((?:Test|Example|Fuzz)\w*)\("));
    let all = |pattern: String, package: String| vec!["-run".to_owned(), pattern, package];
    match target {
        Target::File { path } => {
            let source = read_file::read_text(&folder.join(path), MAX_SOURCE_BYTES).unwrap_or_default();
            let names: Vec<&str> =
                TEST.captures_iter(&source).filter_map(|it| it.get(1)).map(|it| it.as_str()).collect();
            let package = path.parent().map_or(".".to_owned(), |parent| format!("./{parent}"));
            all(format!("^({})$", names.join("|")), package)
        }
        Target::Test { id, .. } => {
            // `example.com/m/pkg.TestA/case` and `TestA/case`.
            let at = id.match_indices("Test").map(|(at, _)| at).find(|at| *at == 0 || "./".contains(&id[at - 1..*at]));
            let name = &id[at.unwrap_or(0)..];
            let levels: Vec<String> = name.split('/').map(|level| format!("^{}$", regex::escape(level))).collect();
            all(levels.join("/"), "./...".to_owned())
        }
    }
}

/// Searches the sources of the repository for the files whose tests fit best to an id, or else for the test files that define its last
/// part.
fn definitions(target: &Target, id: &str, folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let last = id.rsplit("::").next().unwrap_or(id).rsplit(" › ").next().unwrap_or(id);
    let word = last.rsplit(['.', '/']).find(|part| !part.is_empty()).unwrap_or(last);
    let word = word.split('[').next().unwrap_or(word);
    let definition = Regex::new(&format!(r"\b(?:def|fn|class)\s+{}\b", regex::escape(word))).ok();
    // `None` for files that define the word as something that is not known as a test.
    let mut best: Option<Fit> = None;
    let (mut found, mut files) = (Vec::new(), 0);
    for_each_file(folder, &mut |path| {
        if !is_source(&path) || files == MAX_FILES {
            return;
        }
        files += 1;
        let text = read_file::read_text(&folder.join(&path), MAX_SOURCE_BYTES).unwrap_or_default();
        let fit = if may_fit(&path, &text, id) { fit(path.as_str(), &text, target) } else { None };
        let is_defined = || definition.as_ref().is_some_and(|it| it.is_match(&text)) && is_test_path(path.as_str());
        if fit < best || !(fit.is_some() || is_defined()) {
            return;
        }
        if fit > best {
            best = fit;
            found.clear();
        }
        found.push(path);
    });
    found.sort();
    found
}

/// Reports whether a source has a word of an id, before it is read as a whole. Titles of JavaScript may have placeholders.
fn may_fit(path: &Utf8Path, text: &str, id: &str) -> bool {
    let is_titled = !matches!(path.extension(), Some("py" | "rs" | "go"));
    if is_titled {
        return ["test", "it(", "it.", "describe"].iter().any(|call| text.contains(call));
    }
    id.split(['.', ':', '/', '[']).any(|part| !part.is_empty() && text.contains(part))
}

/// Quotes a word for `sh`.
pub(super) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:-=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Overrides, detect};

    /// Returns the command of a target in a repository with these files.
    fn lines(files: &[(&str, &str)], modules: &[&str], targets: &[&str], given: Option<&str>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            counterproof_store::write::write_new(&path, text.as_bytes()).unwrap();
        }
        let commands = detect(root, &|module| modules.contains(&module));
        let commands = commands.with(Overrides { test: given.map(str::to_owned), ..Overrides::default() });
        targets.iter().map(|it| commands.test_line(&Target::parse(it, root).unwrap(), root).unwrap()).collect()
    }

    const PYTHON: (&str, &str) = (
        "tests/test_a.py",
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\nclass B(A):\n    def test_b(self): pass\n",
    );

    #[test]
    fn ids_of_python_are_written_in_the_style_of_the_runner() {
        let targets = [
            "tests/test_a.py::test_a",
            "tests/test_a.py::A::test_b",
            "tests/test_a.py::test_b",
            "tests/test_a.py",
            "test_a.A",
        ];
        let run = "PYTHONPATH=tests${PYTHONPATH:+:$PYTHONPATH} python3 -m unittest -v";
        assert_eq!(
            lines(&[PYTHON], &[], &targets, None),
            ["test_a.A.test_a", "test_a.A.test_b", "test_a.test_b", "test_a", "test_a.A"]
                .map(|id| format!("{run} {id}"))
        );
        let targets = ["tests.test_a.A.test_a", "tests/test_a.py::A::test_a[x y]", "./tests/test_a.py"];
        assert_eq!(
            lines(&[PYTHON, ("conftest.py", "")], &["pytest"], &targets, None),
            ["tests/test_a.py::A::test_a", "'tests/test_a.py::A::test_a[x y]'", "tests/test_a.py"]
                .map(|id| format!("python3 -m pytest -vv {id}"))
        );
        // The same in a command of the user.
        let given = lines(&[PYTHON], &[], &["tests/test_a.py::test_a"], Some("./run.sh python -m unittest {test}"));
        assert_eq!(given, ["./run.sh python -m unittest tests.test_a.A.test_a"]);
        assert_eq!(lines(&[PYTHON], &[], &["a b"], Some("make one T={test}")), ["make one T='a b'"]);
    }

    #[test]
    fn targets_of_cargo_go_and_npm_have_their_commands() {
        let cargo = [
            ("Cargo.toml", ""),
            ("tests/it.rs", ""),
            ("src/lib.rs", ""),
            ("src/a/b.rs", ""),
            ("tests/big/main.rs", ""),
        ];
        let targets = [
            "tests::bad",
            "tests/it.rs",
            "tests/it.rs::good",
            "src/lib.rs::tests::bad",
            "src/a/b.rs",
            "src/lib.rs",
            "tests/big/main.rs",
        ];
        let words = ["tests::bad", "--test it", "--test it good", "tests::bad", "a::b::", "--lib", "--test big"];
        assert_eq!(lines(&cargo, &[], &targets, None), words.map(|it| format!("cargo test --no-fail-fast {it}")));
        let go = [("go.mod", ""), ("sum/sum_test.go", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\n")];
        let targets = ["TestA", "example.com/m/sum.TestA/one_two", "sum/sum_test.go"];
        let words = ["'^TestA$' ./...", "'^TestA$/^one_two$' ./...", "'^(TestA|TestB)$' ./sum"];
        assert_eq!(lines(&go, &[], &targets, None), words.map(|it| format!("go test -v -run {it}")));
        let jest = [("package.json", r#"{"scripts": {"test": "jest"}}"#), ("a.test.js", "")];
        let targets = ["a.test.js", "a.test.js › math › adds (1)", "math adds"];
        let words = ["a.test.js", "a.test.js -t 'math adds \\(1\\)'", " -t 'math adds'"];
        assert_eq!(lines(&jest, &[], &targets, None), words.map(|it| format!("npx jest --verbose {it}")));
        assert_eq!(lines(&[("Makefile", "test:\n")], &[], &["x"], None), ["make test"]);
    }

    #[test]
    fn the_file_of_a_test_is_found_by_its_definition() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, text) in [
            ("src/lib.rs", "#[test]\nfn bad() {}\n"),
            ("tests/test_a.py", "class A:\n    def test_x(self): pass\n"),
            ("b_test.go", "func TestB(t *testing.T) {}"),
            ("c.test.js", "it('works (1)', () => {})"),
            ("one/two.py", "def test_twice(): pass"),
            ("one/three.py", "def test_twice(): pass"),
            ("one/node_modules/four.py", "def test_twice(): pass"),
            ("base.py", "class Base:\n    def test_inherited(self): pass\n"),
            (
                "d.test.ts",
                "describe('d', () => {\n  test.each([\n    [1],\n  ])('adds %i to it', (a) => {\n  });\n});\n",
            ),
            ("shop.py", "def should_sell():\n    pass\n"),
            ("tests/shop.py", "def should_sell():\n    pass\n"),
            ("spec/shop_spec.rb", ""),
            ("src/a/mod.rs", "#[test]\nfn same() {}\n"),
            ("src/b.rs", "#[test]\nfn same() {}\n"),
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            counterproof_store::write::write_new(&root.join(name), text.as_bytes()).unwrap();
        }
        let with_tests = files_with_tests(root);
        assert!(with_tests.is_sorted() && !with_tests.contains(&"shop.py".into()), "{with_tests:?}");
        for file in ["src/lib.rs", "spec/shop_spec.rb", "one/two.py", "tests/shop.py"] {
            assert!(with_tests.contains(&file.into()), "{file}");
        }
        for (id, files) in [
            ("tests::bad", &["src/lib.rs"][..]),
            ("tests.test_a.A.test_x", &["tests/test_a.py"]),
            ("test_a.A.test_x", &["tests/test_a.py"]),
            ("tests/test_a.py::A::test_inherited", &["base.py", "tests/test_a.py"]),
            ("test_a.A", &["tests/test_a.py"]),
            ("example.com/m.TestB/sub", &["b_test.go"]),
            ("math › works (1)", &["c.test.js"]),
            ("math works (1)", &["c.test.js"]),
            ("d › adds 7 to it", &["d.test.ts"]),
            ("two.test_twice", &["one/two.py"]),
            ("test_twice", &["one/three.py", "one/two.py"]),
            ("should_sell", &["tests/shop.py"]),
            ("ShopSpec sells", &["spec/shop_spec.rb"]),
            ("a::tests::same", &["src/a/mod.rs"]),
            ("tests::same", &["src/a/mod.rs", "src/b.rs"]),
            ("nope", &[]),
            ("../etc/passwd::x", &[]),
        ] {
            assert_eq!(Target::test(id).files(root), files, "{id}");
        }
    }
}
