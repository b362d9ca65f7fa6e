//! The packages of the workspace and their files. The packages are the members in `Cargo.toml`, so that a new one is checked
//! without being listed here.

use camino::{Utf8Path, Utf8PathBuf};
use walkdir::WalkDir;

use crate::step::{Failure, root};

/// Members whose code measures, tests or checks the others.
const TOOLS: [&str; 3] = ["bench", "tests", "xtask"];

/// Returns the folders of all members, sorted.
pub(crate) fn packages() -> Result<Vec<Utf8PathBuf>, Failure> {
    let path = root().join("Cargo.toml");
    let manifest: toml::Table = read(&path)?.parse().map_err(|error| Failure::Manifest { path, error })?;
    let members = manifest.get("workspace").and_then(|workspace| workspace.get("members")?.as_array());
    let names = members.into_iter().flatten().filter_map(toml::Value::as_str);
    let mut folders: Vec<_> = names.map(|name| root().join(name)).collect();
    folders.sort();
    Ok(folders)
}

/// Returns the folders of the members whose code users run.
pub(crate) fn production_packages() -> Result<Vec<Utf8PathBuf>, Failure> {
    let is_tool = |path: &Utf8PathBuf| TOOLS.iter().any(|name| path.file_name() == Some(name));
    Ok(packages()?.into_iter().filter(|path| !is_tool(path)).collect())
}

/// Files below a folder with one of these extensions, sorted. A folder that does not exist has none.
pub(crate) fn below(folder: &Utf8Path, extensions: &[&str]) -> Vec<Utf8PathBuf> {
    let entries = WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let paths = entries.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok());
    paths.filter(|path| path.extension().is_some_and(|extension| extensions.contains(&extension))).collect()
}

pub(crate) fn read(file: &Utf8Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|source| Failure::File { path: file.to_owned(), source })
}

/// Parses a file of Rust.
pub(crate) fn parse(file: &Utf8Path) -> Result<syn::File, Failure> {
    syn::parse_file(&read(file)?).map_err(|error| Failure::Syntax { path: file.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_with_a_package_is_a_member() {
        let packages = packages().unwrap();
        for entry in root().read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            // The fuzz targets are a workspace of their own, because they need a nightly compiler.
            let is_expected = path.join("Cargo.toml").is_file() && path.file_name() != Some("fuzz");
            assert_eq!(packages.contains(&path), is_expected, "{path}");
        }
    }
}
