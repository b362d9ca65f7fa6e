//! The files that steer a test without being its own: their changes are for a person to read.

use camino::{Utf8Path, Utf8PathBuf};

/// In each folder from the repository to that of the test.
const PYTHON: [&str; 3] = ["conftest.py", "__init__.py", "pytest.ini"];
const RUST: [&str; 3] = ["common/mod.rs", "common.rs", ".cargo/config.toml"];
const JAVASCRIPT: [(&str, &[&str]); 6] = [
    ("jest.config", &["js", "ts", "mjs", "cjs", "json"]),
    ("vitest.config", &["js", "ts", "mjs", "cjs", "mts", "cts"]),
    ("vite.config", &["js", "ts", "mjs", "cjs", "mts", "cts"]),
    (".mocharc", &["js", "cjs", "json", "jsonc", "yml", "yaml"]),
    ("jest.setup", &["js", "ts", "mjs", "cjs"]),
    ("vitest.setup", &["js", "ts", "mjs"]),
];
const JAVASCRIPT_SETUP: [&str; 2] = ["setupTests", "src/setupTests"];

/// Maximum number of folders above a test.
const MAX_DEPTH: usize = 32;

/// Returns the files that may steer the tests of a file, whether they exist or not. All paths are relative to the repository.
pub fn helpers(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    let names: Vec<String> = match path.extension() {
        Some("py") => PYTHON.map(str::to_owned).to_vec(),
        Some("rs") => RUST.map(str::to_owned).to_vec(),
        Some("js" | "ts" | "jsx" | "tsx" | "mjs" | "cjs" | "mts" | "cts") => {
            let setup = JAVASCRIPT_SETUP.iter().map(|stem| (*stem, &["js", "ts"][..]));
            let files = JAVASCRIPT.into_iter().chain(setup);
            files.flat_map(|(stem, ends)| ends.iter().map(move |end| format!("{stem}.{end}"))).collect()
        }
        _ => Vec::new(),
    };
    let mut folders: Vec<&Utf8Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders.truncate(MAX_DEPTH);
    let files = folders.into_iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    files.filter(|file| file != path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_steer_a_test_are_in_its_folders() {
        let of_python = [
            "conftest.py",
            "__init__.py",
            "pytest.ini",
            "tests/conftest.py",
            "tests/__init__.py",
            "tests/pytest.ini",
            "tests/unit/conftest.py",
            "tests/unit/__init__.py",
            "tests/unit/pytest.ini",
        ];
        assert_eq!(helpers(Utf8Path::new("tests/unit/test_a.py")), of_python);
        assert!(!helpers(Utf8Path::new("tests/conftest.py")).contains(&"tests/conftest.py".into()));
        let of_javascript = helpers(Utf8Path::new("packages/a/a.test.ts"));
        for file in ["jest.config.js", "packages/a/vitest.config.mts", "packages/.mocharc.yml", "src/setupTests.js"] {
            assert!(of_javascript.contains(&file.into()), "{file}");
        }
        assert!(helpers(Utf8Path::new("tests/it.rs")).contains(&"tests/common/mod.rs".into()));
        assert_eq!(helpers(Utf8Path::new("a_test.go")), Vec::<Utf8PathBuf>::new());
        assert!(helpers(Utf8Path::new(&("a/".repeat(10_000) + "t.py"))).len() <= 3 * MAX_DEPTH);
    }
}
