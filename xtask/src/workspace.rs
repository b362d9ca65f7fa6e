//! The packages of the workspace, from the members in its `Cargo.toml`: a new package is checked without being listed here.

use camino::Utf8PathBuf;

use crate::language::read;
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
