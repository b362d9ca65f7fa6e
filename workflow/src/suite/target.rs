//! The test to fix, as a person names it, and the ids of runners that belong to it.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::read::Reader;
use super::test_files::missing_file;

/// Maximum size of a CI log.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// The start of the ids that unittest gives to modules that cannot be imported.
const FAILED_MODULE: &str = "unittest.loader._FailedTest.";

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("no command is known that runs one test")]
    NoCommand,
    #[error("cannot read the CI log `{path}`")]
    Log { path: Utf8PathBuf, source: std::io::Error },
    #[error("the CI log `{0}` names no failed test")]
    NoFailedTest(Utf8PathBuf),
    #[error("the repository has no file `{0}`")]
    NoFile(String),
    #[error("`{0}` is not a `file://` URL of a CI log on this machine")]
    Url(String),
}

/// What `--test` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Target {
    /// One test. Parametrised tests and test classes are several tests with one id.
    Test {
        id: String,
        /// The URL of the CI log that the test was found in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<String>,
    },
    /// All tests of a file, relative to the repository.
    File { path: Utf8PathBuf },
}

impl Target {
    pub fn test(id: impl Into<String>) -> Self {
        Target::Test { id: id.into(), log: None }
    }

    /// Parses an argument of `--test`: a `file://` URL of a CI log, a file of the repository at `folder`, or the id of a test.
    pub fn parse(argument: &str, folder: &Utf8Path) -> Result<Self, TargetError> {
        if argument.starts_with("file://") {
            return Self::of_log(argument);
        }
        if argument.starts_with("http://") || argument.starts_with("https://") {
            return Err(TargetError::Url(argument.to_owned()));
        }
        let path = Utf8Path::new(argument);
        let path = path.strip_prefix(folder).unwrap_or(path);
        let path: Utf8PathBuf = path.components().filter(|it| it.as_str() != ".").collect();
        let is_inside = !path.is_absolute() && path.components().all(|it| it.as_str() != "..");
        if is_inside && !path.as_str().is_empty() && folder.join(&path).is_file() {
            return Ok(Target::File { path });
        }
        if let Some(missing) = missing_file(argument, folder) {
            return Err(TargetError::NoFile(missing.to_owned()));
        }
        Ok(Target::test(argument))
    }

    fn of_log(url: &str) -> Result<Self, TargetError> {
        let place = url.strip_prefix("file://").and_then(|rest| rest.find('/').map(|at| rest.split_at(at)));
        let path = match place {
            Some(("" | "localhost", path)) => percent_decode_str(path.split(['?', '#']).next().unwrap_or(path)),
            _ => return Err(TargetError::Url(url.to_owned())),
        };
        let path = path.decode_utf8().map_err(|_| TargetError::Url(url.to_owned()))?;
        let path = Utf8PathBuf::from(path.into_owned());
        let log = read_file::read(&path, MAX_LOG_BYTES);
        let log = log.map_err(|source| TargetError::Log { path: path.clone(), source })?;
        let mut reader = Reader::default();
        log.split(|byte| *byte == b'\n').for_each(|line| reader.line(line));
        let first = reader.finish(Some(1), false).first_failed.ok_or(TargetError::NoFailedTest(path))?;
        // A module that could not be imported has the name of its tests.
        let id = first.strip_prefix(FAILED_MODULE).unwrap_or(&first).to_owned();
        Ok(Target::Test { id, log: Some(url.to_owned()) })
    }

    /// The id or the path.
    pub fn name(&self) -> &str {
        match self {
            Target::Test { id, .. } => id,
            Target::File { path } => path.as_str(),
        }
    }

    /// Reports whether a test of a runner belongs to the target. Ids may be in another style than the target, and relative to another
    /// folder.
    pub fn contains(&self, id: &str) -> bool {
        let (target, id_parts) = (parts(self.name()), parts(id));
        // Ids of a runner that was started in a folder of the file lack the folders above it.
        let folders = self.name().split("::").next().map_or(0, |file| file.matches('/').count());
        let mut ends = (0..=folders).filter_map(|at| target.get(at..));
        match self {
            Target::File { path } => match id.split_once("::").map(|(file, _)| Utf8Path::new(file)) {
                Some(file) if file.extension() == Some("py") => file.ends_with(path) || path.ends_with(file),
                _ => contains_run(&id_parts, &target) || ends.any(|end| !end.is_empty() && id_parts.starts_with(end)),
            },
            Target::Test { id: name, .. } => {
                let is_named = name == id || ends.any(|end| is_within(&id_parts, end));
                is_named || is_suffix(&id_parts, &target) || is_title(id, name)
            }
        }
    }
}

/// Splits an id into its parts: `a/test_b.py::C::test[1]` and `a.test_b.C.test` have the same ones.
fn parts(id: &str) -> Vec<&str> {
    let id = without_number(id);
    let id = id.split_once('[').filter(|(before, _)| before.contains(".py::")).map_or(id, |it| it.0);
    let id = id.strip_prefix("./").unwrap_or(id);
    let (file, rest) = match id.find(".py") {
        Some(at) if id[at + 3..].is_empty() || id[at + 3..].starts_with("::") => (&id[..at], &id[at + 3..]),
        _ => ("", id),
    };
    let split = |text: &'static [&'static str], part| split_any(part, text);
    let parts = split(&["/"], file).into_iter().chain(split(&["::", " › ", " > ", "/", "."], rest));
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Removes the number of a second test of one name, in another test binary: `tests::works (2)`.
fn without_number(id: &str) -> &str {
    let numbered = id.rsplit_once(" (").filter(|(_, end)| end.trim_end_matches(')').parse::<u32>().is_ok());
    numbered.map_or(id, |(name, _)| name)
}

fn split_any<'a>(text: &'a str, separators: &[&str]) -> Vec<&'a str> {
    let mut parts = vec![text];
    for separator in separators {
        parts = parts.into_iter().flat_map(|part| part.split(separator)).collect();
    }
    parts
}

/// Reports whether the parts of the target occur in the id in their order: `test_b.test` names `test_b.C.test`.
fn is_within(id: &[&str], target: &[&str]) -> bool {
    let mut left = id.iter();
    !target.is_empty() && target.iter().all(|part| left.any(|it| it == part))
}

fn contains_run(id: &[&str], target: &[&str]) -> bool {
    !target.is_empty() && id.windows(target.len()).any(|window| window == target)
}

/// Reports whether the id is the end of the target: the runner was started in a folder below.
fn is_suffix(id: &[&str], target: &[&str]) -> bool {
    !id.is_empty() && target.ends_with(id)
}

/// Compares titles of JavaScript, which runners join by spaces.
fn is_title(id: &str, target: &str) -> bool {
    let joined = |text: &str| split_any(text, &["::", " › ", " > "]).join(" ");
    let (id, target) = (joined(id), joined(target));
    id == target || id.strip_suffix(&target).is_some_and(|before| before.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_not_an_id() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("app/tests")).unwrap();
        counterproof_store::write::write_new(&root.join("app/tests/test_x.py"), b"").unwrap();
        for (argument, path) in [
            ("tests/test_y.py", "tests/test_y.py"),
            ("test_y.py::C::test_a", "test_y.py"),
            ("src/calc.test.ts", "src/calc.test.ts"),
            ("calc.test.js", "calc.test.js"),
            ("sum_test.go", "sum_test.go"),
            ("/elsewhere/test_x.py", "/elsewhere/test_x.py"),
        ] {
            let error = Target::parse(argument, root).unwrap_err();
            assert!(matches!(&error, TargetError::NoFile(found) if found == path), "{argument}: {error}");
        }
        for id in [
            "tests/test_x.py::test_a",
            "tests/test_x.py",
            "com.example.Calc.go",
            "test_y.C.test_a",
            "tests::adds",
            "TestSum/zero",
            "j.test.js › math › adds",
            "reads a/b.js",
            "",
        ] {
            assert_eq!(Target::parse(id, root).unwrap(), Target::test(id), "{id}");
        }
        let path = "app/tests/test_x.py";
        assert_eq!(Target::parse(path, root).unwrap(), Target::File { path: path.into() });
    }

    #[test]
    fn ids_of_one_test_in_other_styles_belong_to_it() {
        for (target, id) in [
            ("tests/test_x.py::C::test_a", "tests/test_x.py::C::test_a[x/y - z]"),
            ("tests/test_x.py::C::test_a", "tests.test_x.C.test_a"),
            ("tests/test_x.py::C::test_a", "test_x.C.test_a"),
            ("test_x.py::test_a", "test_x.C.test_a"),
            ("tests/test_x.py::test_a", "test_x.C.test_a"),
            ("tests.test_x.C.test_a", "tests/test_x.py::C::test_a"),
            ("test_x.C", "test_x.C.test_a"),
            ("tests::bad", "tests::bad (2)"),
            ("krate::tests::bad", "tests::bad"),
            ("TestSum", "example.com/m/sum.TestSum/zero"),
            ("math adds", "j.test.js › math › adds"),
            ("adds", "math › adds"),
            ("vt/v.test.js > math > adds", "vt/v.test.js > math > adds"),
        ] {
            assert!(Target::test(target).contains(id), "{target} {id}");
        }
        for (target, id) in [
            ("test_x.py::test_a", "test_x.py::test_ab"),
            ("test_x.C.test_a", "test_y.C.test_a"),
            ("tests::bad", "tests::bad_other"),
            ("adds", "math › adds more"),
        ] {
            assert!(!Target::test(target).contains(id), "{target} {id}");
        }
        let file = Target::File { path: "tests/test_x.py".into() };
        assert!(file.contains("tests/test_x.py::C::test_a") && file.contains("tests.test_x.C.test_a"));
        assert!(!file.contains("tests/test_y.py::test_x"));
    }
}
