//! From a path to a suite: which files are read, and that every id is there once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::check::Position;
use counterproof_artifact::{CaseId, pointer};
use walkdir::{DirEntry, WalkDir};

use crate::document::{Document, Format, Part, parse};
use crate::fields::{Log, nearest};
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

impl Suite {
    /// The id of a case that another id may be a slip of the pen for.
    pub fn nearest(&self, id: &CaseId) -> Option<&CaseId> {
        let ids: Vec<&str> = self.cases.iter().map(|case| case.id.as_str()).collect();
        let near = nearest(id.as_str(), &ids)?;
        self.cases.iter().map(|case| &case.id).find(|known| known.as_str() == near)
    }
}

/// Loads a cases file, or all cases files below a folder.
///
/// The name of a file tells its format: `.json`, `.jsonl` or `.ndjson`, `.yaml` or `.yml`. In a folder, other files and
/// those whose names start with a dot are left alone.
pub fn load(path: &Utf8Path) -> Result<Suite, LoadError> {
    let mut documents = Vec::new();
    // What keeps a file from being read at all is told first.
    let (mut syntax, mut errors) = (Vec::new(), Vec::new());
    let mut suite = Suite { cases: Vec::new(), warnings: Vec::new() };
    let mut taken = Taken::default();
    for (file, format) in files(path)? {
        let bytes = std::fs::read(&file).map_err(|source| LoadError::Read { path: file.clone(), source })?;
        let (syntax_before, errors_before) = (syntax.len(), errors.len());
        for parsed in parse(&file, format, bytes) {
            match parsed {
                // In a file that cannot be read whole, nothing but its syntax counts.
                Ok(_) if syntax.len() > syntax_before => {}
                Ok((document, value)) => {
                    let mut found = interpret(&document, value);
                    errors.append(&mut found.errors);
                    suite.warnings.append(&mut found.warnings);
                    documents.push(document);
                    for (case, pointer) in found.cases {
                        match taken.claim(&case.id, &documents, pointer) {
                            Ok(()) => suite.cases.push(case),
                            Err(problem) => errors.push(*problem),
                        }
                    }
                }
                Err(mut problems) => {
                    syntax.append(&mut problems);
                    errors.truncate(errors_before);
                }
            }
        }
    }
    syntax.append(&mut errors);
    if !syntax.is_empty() {
        return Err(LoadError::Invalid { problems: syntax, warnings: suite.warnings });
    }
    if suite.cases.is_empty() {
        return Err(LoadError::Empty(path.to_owned()));
    }
    // It lives as long as the run.
    suite.cases.shrink_to_fit();
    Ok(suite)
}

/// Where a case stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The case.
    pub id: CaseId,
    /// The file, below the path that was asked for.
    pub file: Utf8PathBuf,
    /// The line of its id, counted from 1.
    pub line: usize,
}

/// Where the cases below a path stand: those in files of at most so many bytes, since finding the lines of a file takes many
/// times its size in memory. What is wrong with a file is [`load`]'s to tell.
pub fn places(path: &Utf8Path, file_up_to_bytes: usize) -> Result<Vec<Place>, LoadError> {
    let mut places = Vec::new();
    for (file, format) in files(path)? {
        let bytes = std::fs::read(&file).map_err(|source| LoadError::Read { path: file.clone(), source })?;
        if bytes.len() > file_up_to_bytes {
            continue;
        }
        for (document, value) in parse(&file, format, bytes).flatten() {
            for (case, pointer) in interpret(&document, value).cases {
                let position = document.position(&pointer::child(&pointer, "id"), Part::Value);
                let place = |position: Position| Place { id: case.id, file: file.clone(), line: position.line };
                places.extend(position.map(place));
            }
        }
    }
    Ok(places)
}

/// The ids that are taken, by what they become where letter case does not count.
#[derive(Default)]
struct Taken {
    ids: HashMap<String, Claim>,
}

/// Where an id stands: the number of the document, and the pointer to the case.
struct Claim {
    id: CaseId,
    document: usize,
    pointer: String,
}

impl Taken {
    /// Takes an id for a case of the last of the documents.
    fn claim(&mut self, id: &CaseId, documents: &[Document], pointer: String) -> Result<(), Box<Problem>> {
        let claim = match self.ids.entry(id.collision_key()) {
            Entry::Occupied(claim) => claim.into_mut(),
            Entry::Vacant(free) => {
                free.insert(Claim { id: id.clone(), document: documents.len() - 1, pointer });
                return Ok(());
            }
        };
        let first = &documents[claim.document];
        let position = first.position(&claim.pointer, Part::Value);
        let line = position.map(|position| format!(":{}", position.line)).unwrap_or_default();
        let place = format!("{}{line}", first.file());
        let message = if claim.id == *id {
            format!("the id `{id}` is taken by the case at {place}")
        } else {
            format!(
                "the id `{id}` differs from `{}` at {place} by letter case alone, which some systems fold",
                claim.id
            )
        };
        let mut log = Log::new(&documents[documents.len() - 1], Some(id.to_string()));
        log.error(&pointer::child(&pointer, "id"), message, "give one of the two another id");
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
