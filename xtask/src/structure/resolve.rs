//! From a path as it is written to the file that defines it.

use camino::Utf8Path;

use super::modules::{Modules, Segments};

/// Re-exports of re-exports end here; a longer chain is a mistake in the source.
const MOST_RE_EXPORTS: usize = 16;

/// Returns the file that defines what `path` names, written in the module `from`. `None` for names of other crates.
pub(super) fn file<'m>(modules: &'m Modules, from: &Segments, path: &[String]) -> Option<&'m Utf8Path> {
    resolve(modules, from, path, MOST_RE_EXPORTS)
}

fn resolve<'m>(modules: &'m Modules, from: &Segments, path: &[String], budget: usize) -> Option<&'m Utf8Path> {
    let (first, rest) = path.split_first()?;
    let module = modules.get(from)?;
    let (start, rest) = match first.as_str() {
        "crate" => (Segments::new(), rest),
        "self" => (from.clone(), rest),
        "super" => (from.split_last()?.1.to_vec(), rest),
        name if module.children.iter().any(|child| child == name) => (from.clone(), path),
        name => {
            let alias = module.aliases.get(name)?;
            // `use serde::Serialize` defines the name `Serialize`, not a path that starts with it.
            let full: Segments = alias.iter().chain(rest).cloned().collect();
            return if alias == path { None } else { resolve(modules, from, &full, budget.checked_sub(1)?) };
        }
    };
    descend(modules, start, rest, budget)
}

/// Follows `rest` from the module `at`: into child modules, then through re-exports, and ends at an item.
fn descend<'m>(modules: &'m Modules, mut at: Segments, rest: &[String], budget: usize) -> Option<&'m Utf8Path> {
    for (index, segment) in rest.iter().enumerate() {
        let module = modules.get(&at)?;
        if segment == "super" {
            at.pop();
        } else if module.children.contains(segment) {
            at.push(segment.clone());
        } else if let Some(alias) = module.aliases.get(segment) {
            let full: Segments = alias.iter().chain(&rest[index + 1..]).cloned().collect();
            return resolve(modules, &at, &full, budget.checked_sub(1)?);
        } else {
            let defined = module.globs.iter().find_map(|glob| {
                let full: Segments = glob.iter().chain(&rest[index..]).cloned().collect();
                let file = resolve(modules, &at, &full, budget.checked_sub(1)?)?;
                (file != module.file).then_some(file)
            });
            return Some(defined.unwrap_or(&module.file));
        }
    }
    modules.get(&at).map(|module| module.file.as_path())
}
