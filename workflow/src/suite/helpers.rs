//! The files that control how tests run without being tests: their changes are for a person to read.

use camino::Utf8Path;

use super::test_files::is_test_path;

/// In any folder.
const NAMES: [&str; 24] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    "sitecustomize.py",
    "usercustomize.py",
    "package.json",
    "Cargo.toml",
    "build.rs",
    ".cargo/config.toml",
    ".cargo/config",
    ".config/nextest.toml",
    "go.mod",
    "go.work",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "common/mod.rs",
    "common.rs",
];

/// Without the end, which is one of [`JAVASCRIPT_ENDS`].
const JAVASCRIPT: [&str; 10] = [
    "jest.config",
    "jest.setup",
    "vitest.config",
    "vitest.setup",
    "vitest.workspace",
    "vite.config",
    ".mocharc",
    "ava.config",
    "playwright.config",
    "setupTests",
];
const JAVASCRIPT_ENDS: [&str; 10] = ["js", "ts", "mjs", "cjs", "mts", "cts", "json", "jsonc", "yml", "yaml"];

/// Reports whether a file controls how the tests run: the configuration of a runner or of the build, or what a runner loads before the
/// tests. `target_files` are those of the target test. All paths are relative to the repository.
pub fn controls_tests(path: &Utf8Path, target_files: &[String]) -> bool {
    if target_files.iter().any(|file| path == file) {
        // It has rules of its own.
        return false;
    }
    let is_loaded_with = |file: &String| path.parent().is_some_and(|folder| Utf8Path::new(file).starts_with(folder));
    match path.file_name().unwrap_or_default() {
        // Packages and modules of the code have these names too.
        "__init__.py" | "common.rs" | "mod.rs" if !is_test_path(path.as_str()) => {
            path.ends_with("__init__.py") && target_files.iter().any(is_loaded_with)
        }
        "__init__.py" => true,
        name => {
            let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
            NAMES.iter().any(|name| path.ends_with(name))
                || (JAVASCRIPT.contains(&stem) && JAVASCRIPT_ENDS.contains(&end))
                || name == ".mocharc"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_control_the_tests_are_known_by_their_names_in_any_folder() {
        let controls = |path: &str| controls_tests(Utf8Path::new(path), &[]);
        for path in [
            "conftest.py",
            "a/b/conftest.py",
            "pyproject.toml",
            "tox.ini",
            "setup.cfg",
            ".pytest.ini",
            "src/sitecustomize.py",
            "package.json",
            "packages/a/vitest.config.mts",
            "packages/.mocharc.yml",
            "src/setupTests.js",
            "Cargo.toml",
            "crates/a/build.rs",
            ".cargo/config.toml",
            "tests/common/mod.rs",
            "tests/__init__.py",
            "Makefile",
        ] {
            assert!(controls(path), "{path}");
        }
        for path in
            ["src/common/mod.rs", "src/common.rs", "pkg/__init__.py", "config.toml", "my_conftest.py", "a.js", ""]
        {
            assert!(!controls(path), "{path}");
        }
    }

    #[test]
    fn the_packages_of_the_target_test_are_loaded_with_it() {
        let files = ["checks/unit/check_a.py".to_owned()];
        let controls = |path: &str| controls_tests(Utf8Path::new(path), &files);
        assert!(controls("__init__.py") && controls("checks/__init__.py") && controls("checks/unit/__init__.py"));
        assert!(!controls("pkg/__init__.py") && !controls("checks/unit/check_a.py"));
    }
}
