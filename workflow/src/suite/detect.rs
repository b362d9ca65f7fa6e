//! Detection of test commands by the files of a repository.

use camino::Utf8Path;

use super::commands::Commands;

/// Finds the commands of the repository at `folder`. `has_module` reports whether Python can import a module.
pub fn detect(folder: &Utf8Path, has_module: &dyn Fn(&str) -> bool) -> Commands {
    let _ = (folder, has_module);
    Commands::default()
}
