//! Which files of a repository have tests by their names, and which of them an id names in a language whose tests are not read.

use camino::{Utf8Path, Utf8PathBuf};

/// The words that make a path that of tests. Others have one of them within a word: `latest`, `inspector`.
const WORDS: [&str; 9] = ["test", "tests", "testing", "testdata", "testcase", "unittest", "unittests", "spec", "specs"];

/// Maximum number of entries of folders that are looked at.
const MAX_ENTRIES: usize = 200_000;

const IGNORED_FOLDERS: [&str; 7] = ["node_modules", "target", "vendor", "dist", "__pycache__", "venv", "site-packages"];

/// Reports whether a path has a word for tests: `src/test/A.java`, `ATest.kt`, `a_spec.rb`, `__tests__/a.dart`. Also `testcalc.py`,
/// which unittest runs.
pub(super) fn is_test_path(path: &str) -> bool {
    let (name, is_python) = (Utf8Path::new(path).file_name(), Utf8Path::new(path).extension() == Some("py"));
    if is_python && name.is_some_and(|name| name.starts_with("test")) {
        return true;
    }
    let mut word = String::new();
    let mut characters = path.chars().peekable();
    let is_word = |word: &str| WORDS.contains(&word.to_ascii_lowercase().as_str());
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or('/');
        word.extend(c.is_alphabetic().then_some(c));
        // Before the last capital of several ones, as in `HTTPTest`, and before the first one, as in `MyTest`.
        let is_next_lower = characters.clone().nth(1).is_some_and(char::is_lowercase);
        let begins = next.is_uppercase() && (c.is_lowercase() || is_next_lower);
        if begins || !next.is_alphabetic() {
            if is_word(&word) {
                return true;
            }
            word.clear();
        }
    }
    false
}

pub(super) fn is_source(path: &Utf8Path) -> bool {
    let extensions = ["py", "rs", "go", "js", "ts", "jsx", "tsx", "mjs", "cjs", "mts", "cts"];
    path.extension().is_some_and(|extension| extensions.contains(&extension))
}

/// Returns the path in an argument of `--test` that is that of a source file, and that no file of the repository at `folder` has.
pub(super) fn missing_file<'a>(argument: &'a str, folder: &Utf8Path) -> Option<&'a str> {
    let (path, is_id) = argument.split_once("::").map_or((argument, false), |it| (it.0, true));
    let extension = Utf8Path::new(path).extension().filter(|_| is_source(Utf8Path::new(path)))?;
    // Ids of other runners are `com.example.Calc.go` and titles with spaces.
    let has_dots = path.matches('.').count() > 1 && !path.ends_with(&format!(".test.{extension}"));
    if path.contains(char::is_whitespace) || (has_dots && !path.contains('/')) || (is_id && extension != "py") {
        return None;
    }
    if folder.join(path).exists() {
        return None;
    }
    // A command may run in a folder of the repository.
    let mut is_found = false;
    for_each_file(folder, &mut |file| is_found |= file.ends_with(path));
    (!is_found).then_some(path)
}

/// Finds the test files that an id names: by a path in it (`./spec/a_spec.rb[1:2]`), or by the name of a class and its packages
/// (`com.example.ATest.adds`, `Shop::CartTest#test_sum` of `shop/cart_test.rb`). More than one if the id does not decide between them.
pub(super) fn named_files(id: &str, folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let words = id.split([' ', '[', ':', '(', ')', '#']).map(|word| word.strip_prefix("./").unwrap_or(word));
    let paths: Vec<&str> = words.filter(|word| is_test_path(word)).collect();
    let parts = id.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
    let parts: Vec<(String, bool)> = parts.map(|part| (comparable(part), is_test_path(part))).collect();
    let (mut best, mut found) = (0, Vec::new());
    for_each_file(folder, &mut |path| {
        if !is_test_path(path.as_str()) {
            return;
        }
        let rank = if paths.contains(&path.as_str()) {
            usize::MAX
        } else {
            let folders: Vec<String> = path.parent().into_iter().flatten().map(comparable).collect();
            let stem = comparable(path.file_stem().unwrap_or_default());
            let is_named = |part: &str| part == stem && !WORDS.contains(&part);
            let rank = |at: usize| {
                let packages = folders.iter().rev().zip(parts[..at].iter().rev());
                let packages = packages.take_while(|(folder, part)| **folder == part.0).count();
                // A word of a title may have the name of a file by chance.
                packages + usize::from(packages > 0 || parts[at].1)
            };
            (0..parts.len()).filter(|at| is_named(&parts[*at].0)).map(rank).max().unwrap_or(0)
        };
        if rank > best {
            best = rank;
            found.clear();
        }
        if rank == best && rank > 0 {
            found.push(path);
        }
    });
    found.sort();
    found
}

/// Makes `CartTest` and `cart_test` equal.
fn comparable(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Visits the files of a repository, except those of dependencies and builds.
pub(super) fn for_each_file(folder: &Utf8Path, visit: &mut dyn FnMut(Utf8PathBuf)) {
    let (mut folders, mut entries) = (vec![Utf8PathBuf::new()], 0);
    while let Some(relative) = folders.pop() {
        let Ok(found) = folder.join(&relative).read_dir_utf8() else { continue };
        for entry in found.flatten() {
            entries += 1;
            if entries > MAX_ENTRIES {
                return;
            }
            let (path, name) = (relative.join(entry.file_name()), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !name.starts_with('.') && !IGNORED_FOLDERS.contains(&name) {
                folders.push(path);
            } else if kind.is_file() {
                visit(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_known_by_a_word_of_their_path() {
        for path in [
            "src/test/java/com/example/Sum.java",
            "SumTest.kt",
            "HTTPTests.cs",
            "TestSum.php",
            "spec/a_helper.rb",
            "lib/a.spec.ts",
            "__tests__/a.dart",
            "a-test2.exs",
            "unittests/Sum.cpp",
            "src/testcalc.py",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["src/latest.rb", "lib/inspector.rb", "Contest.java", "specification.md", "attestation/a.go", ""] {
            assert!(!is_test_path(path), "{path}");
        }
    }

    #[test]
    fn a_file_is_found_by_the_path_or_the_class_of_an_id() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let java = "app/src/test/java/com/example/SumTest.java";
        let kotlin = "app/src/test/kotlin/org/other/SumTest.kt";
        for name in [
            java,
            kotlin,
            "app/src/main/java/com/example/Sum.java",
            "spec/sum_spec.rb",
            "test/shop/cart_test.rb",
            "test/cart_test.rb",
            "tests/Unit/PriceTest.php",
            "test/test.rb",
            "test/cart.lua",
            "node_modules/SumTest.java",
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            counterproof_store::write::write_new(&root.join(name), b"").unwrap();
        }
        for (id, files) in [
            ("com.example.SumTest.adds", &[java][..]),
            ("com.example.SumTest#adds(int)[1]", &[java]),
            ("org.other.SumTest$Nested > adds()", &[kotlin]),
            ("SumTest.adds", &[java, kotlin]),
            ("./spec/sum_spec.rb[1:2]", &["spec/sum_spec.rb"]),
            ("rspec ./spec/sum_spec.rb:12", &["spec/sum_spec.rb"]),
            ("Shop::CartTest#test_sum", &["test/shop/cart_test.rb"]),
            ("CartTest#test_sum", &["test/cart_test.rb", "test/shop/cart_test.rb"]),
            (r"Tests\Unit\PriceTest::testIt", &["tests/Unit/PriceTest.php"]),
            ("com.example.Sum.adds", &[]),
            ("a test of the sum", &[]),
            ("adds to the cart", &[]),
            ("../etc/passwd", &[]),
            ("", &[]),
        ] {
            assert_eq!(named_files(id, root), files, "{id}");
        }
    }
}
