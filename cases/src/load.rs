//! From a path to a suite: which files are read, and that every id is there once.

use std::collections::HashMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, pointer};
use walkdir::{DirEntry, WalkDir};

use crate::document::{Document, Format, Part, parse};
use crate::fields::Log;
use crate::interpret::interpret;
use crate::problem::{LoadError, Problem};
use crate::spec::CaseSpec;

/// All cases below a path, in the order of the files' names and of their places within.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The cases, at least one. No two ids are equal, not even but for letter case.
    pub cases: Vec<CaseSpec>,
    /// What the author may not have meant, such as expectations that this version does not know.
    pub warnings: Vec<Problem>,
}

/// Loads a cases file, or all cases files below a folder.
///
/// The name of a file tells its format: `.json`, `.jsonl` or `.ndjson`, `.yaml` or `.yml`. In a folder, other files and
/// those whose names start with a dot are left alone.
pub fn load(path: &Utf8Path) -> Result<Suite, LoadError> {
    let mut documents = Vec::new();
    let mut errors = Vec::new();
    for (file, format) in files(path)? {
        let bytes = std::fs::read(&file).map_err(|source| LoadError::Read { path: file.clone(), source })?;
        match parse(&file, format, &bytes) {
            Ok(mut parsed) => documents.append(&mut parsed),
            Err(mut problems) => errors.append(&mut problems),
        }
    }
    let mut suite = Suite { cases: Vec::new(), warnings: Vec::new() };
    let mut taken = Taken::default();
    for document in &documents {
        let mut found = interpret(document);
        errors.append(&mut found.errors);
        suite.warnings.append(&mut found.warnings);
        for (case, pointer) in found.cases {
            match taken.claim(&case.id, document, &pointer) {
                Ok(()) => suite.cases.push(case),
                Err(problem) => errors.push(*problem),
            }
        }
    }
    if !errors.is_empty() {
        return Err(LoadError::Invalid(errors));
    }
    if suite.cases.is_empty() {
        return Err(LoadError::Empty(path.to_owned()));
    }
    Ok(suite)
}

/// The ids that are taken, by what they become where letter case does not count.
#[derive(Default)]
struct Taken<'d> {
    ids: HashMap<String, (CaseId, &'d Document, String)>,
}

impl<'d> Taken<'d> {
    fn claim(&mut self, id: &CaseId, document: &'d Document, pointer: &str) -> Result<(), Box<Problem>> {
        let Some((first, where_document, where_pointer)) = self.ids.get(&id.collision_key()) else {
            self.ids.insert(id.collision_key(), (id.clone(), document, pointer.to_owned()));
            return Ok(());
        };
        let position = where_document.position(where_pointer, Part::Value);
        let line = position.map(|position| format!(":{}", position.line)).unwrap_or_default();
        let place = format!("{}{line}", where_document.file());
        let message = if first == id {
            format!("the id `{id}` is taken by the case at {place}")
        } else {
            format!("the id `{id}` differs from `{first}` at {place} by letter case alone, which some systems fold")
        };
        let mut log = Log::new(document, Some(id.to_string()));
        log.error(&pointer::child(pointer, "id"), message, "give one of the two another id");
        Err(Box::new(log.errors.remove(0)))
    }
}

/// The files to read, each with its format.
fn files(path: &Utf8Path) -> Result<Vec<(Utf8PathBuf, Format)>, LoadError> {
    let read = |source| LoadError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(read)?.is_dir() {
        let format = Format::of(path).ok_or_else(|| LoadError::UnknownFormat(path.to_owned()))?;
        return Ok(vec![(path.to_owned(), format)]);
    }
    let visible = |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.');
    let mut files = Vec::new();
    for entry in WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = entry.map_err(|error| read(error.into()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let Some(file) = Utf8Path::from_path(entry.path()) else {
            let name = entry.path().to_string_lossy().into_owned();
            return Err(read(io::Error::other(format!("the name of `{name}` is not UTF-8"))));
        };
        if let Some(format) = Format::of(file) {
            files.push((file.to_owned(), format));
        }
    }
    if files.is_empty() { Err(LoadError::NoFiles(path.to_owned())) } else { Ok(files) }
}
