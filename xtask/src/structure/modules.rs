//! The module tree of one package, read from its source files.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree, Visibility};

use crate::step::Failure;

/// A path as it is written, such as `crate :: diff :: Table`, or `super :: *` for a glob.
pub(super) type Segments = Vec<String>;

/// One module: its file, the names that it defines, and what it imports.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: Utf8PathBuf,
    /// Names of child modules; the path of a child is the module's own path plus the name.
    pub(super) children: Vec<String>,
    /// Imported names and where they come from. A re-export is resolved through this map.
    pub(super) aliases: BTreeMap<String, Segments>,
    /// The prefixes of glob imports.
    pub(super) globs: Vec<Segments>,
    /// Paths that make this module depend on another one.
    pub(super) dependencies: Vec<Segments>,
}

/// The modules of a package by module path; the root module has the empty path.
pub(super) type Modules = BTreeMap<Segments, Module>;

/// Reads the package whose root module is `root_file`.
pub(super) fn read(root_file: &Utf8Path) -> Result<Modules, Failure> {
    let mut modules = Modules::new();
    let mut pending = vec![(Segments::new(), root_file.to_owned())];
    while let Some((path, file)) = pending.pop() {
        let text = std::fs::read_to_string(&file).map_err(|source| Failure::File { path: file.clone(), source })?;
        let syntax = syn::parse_file(&text).map_err(|error| Failure::Syntax { path: file.clone(), error })?;
        let mut reader = Reader { file: &file, path: path.clone(), modules: &mut modules, files: Vec::new() };
        reader.module(&syntax.items);
        for child in reader.files {
            pending.push((child.clone(), child_file(&file, &path, &child)));
        }
    }
    Ok(modules)
}

/// Returns the file of the child module `child`, declared in `file`, whose own module path is `path`.
fn child_file(file: &Utf8Path, path: &Segments, child: &Segments) -> Utf8PathBuf {
    let folder = file.parent().unwrap_or(file);
    let is_folder_module = path.is_empty() || file.file_name() == Some("mod.rs");
    let mut base = if is_folder_module { folder.to_owned() } else { folder.join(file.file_stem().unwrap_or_default()) };
    // Inline modules between the file and the child are folders.
    for segment in &child[path.len()..child.len() - 1] {
        base.push(segment);
    }
    let name = child.last().map_or("", String::as_str);
    let nested = base.join(name).join("mod.rs");
    if nested.is_file() { nested } else { base.join(format!("{name}.rs")) }
}

/// Reads the items of one file into modules: its own, and one for each inline module.
struct Reader<'m> {
    file: &'m Utf8Path,
    path: Segments,
    modules: &'m mut Modules,
    /// Module paths declared here that have a file of their own.
    files: Vec<Segments>,
}

impl Reader<'_> {
    fn module(&mut self, items: &[Item]) {
        let mut module = Module { file: self.file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_test_only(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    module.children.push(child.ident.to_string());
                    self.child(child);
                }
                Item::Use(import) => {
                    let mut leaves = Vec::new();
                    flatten(&import.tree, &mut Segments::new(), &mut leaves);
                    // A re-export hands a name on; it does not use it.
                    if matches!(import.vis, Visibility::Inherited) {
                        module.dependencies.extend(leaves.iter().map(|leaf| leaf.path.clone()));
                    }
                    for leaf in leaves {
                        module.define(leaf);
                    }
                }
                other => Paths(&mut module.dependencies).visit_item(other),
            }
        }
        self.modules.insert(self.path.clone(), module);
    }

    fn child(&mut self, child: &ItemMod) {
        let mut path = self.path.clone();
        path.push(child.ident.to_string());
        match &child.content {
            None => self.files.push(path),
            Some((_, items)) => {
                let outer = std::mem::replace(&mut self.path, path);
                self.module(items);
                self.path = outer;
            }
        }
    }
}

impl Module {
    /// Adds the name that an import brings into scope.
    fn define(&mut self, Leaf { name, path }: Leaf) {
        match name {
            Some(name) => {
                self.aliases.insert(name, path);
            }
            None => self.globs.push(path),
        }
    }
}

/// One imported path. A glob has no name.
struct Leaf {
    name: Option<String>,
    path: Segments,
}

fn flatten(tree: &UseTree, prefix: &mut Segments, leaves: &mut Vec<Leaf>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, leaves)),
        UseTree::Glob(_) => leaves.push(Leaf { name: None, path: prefix.clone() }),
        UseTree::Name(name) => leaves.push(leaf(prefix, &name.ident.to_string(), None)),
        UseTree::Rename(rename) => {
            leaves.push(leaf(prefix, &rename.ident.to_string(), Some(rename.rename.to_string())));
        }
    }
}

fn leaf(prefix: &Segments, name: &str, rename: Option<String>) -> Leaf {
    let mut path = prefix.clone();
    if name != "self" {
        path.push(name.to_owned());
    }
    let name = rename.or_else(|| path.last().cloned());
    Leaf { name, path }
}

/// Collects the paths in an item that start at a module: `crate::…`, `super::…`, `self::…` or a name with a tail.
struct Paths<'p>(&'p mut Vec<Segments>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of a macro are tokens, not syntax: take each run of `name :: name`.
        tokens(call.tokens.clone(), self.0);
        visit::visit_macro(self, call);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }
}

fn tokens(stream: proc_macro2::TokenStream, paths: &mut Vec<Segments>) {
    let mut path = Segments::new();
    let mut colons = 0;
    let finish = |path: &mut Segments, paths: &mut Vec<Segments>| {
        let path = std::mem::take(path);
        if path.len() > 1 {
            paths.push(path);
        }
    };
    for token in stream {
        match token {
            proc_macro2::TokenTree::Ident(name) => {
                if colons != 2 {
                    finish(&mut path, paths);
                }
                path.push(name.to_string());
                colons = 0;
            }
            proc_macro2::TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            proc_macro2::TokenTree::Group(group) => {
                finish(&mut path, paths);
                tokens(group.stream(), paths);
                colons = 0;
            }
            _ => {
                finish(&mut path, paths);
                colons = 0;
            }
        }
    }
    finish(&mut path, paths);
}

/// True for `#[cfg(test)]`, and for a `#[test]` function.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// The attributes of an item that can hold code.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
