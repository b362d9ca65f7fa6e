//! The run files that pages link to: references to them, their names within the report, and their copies.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Href, PROGRAM, Sha256Digest, Side};
use counterproof_evaluator::{ComparedRun, SideRuns};
use counterproof_store::confined_path;
use counterproof_store::write::{self, Durability, WriteError};

use crate::folder::ARTIFACTS_FOLDER;
use crate::site::encode_path;
use crate::view::display;

/// A link to a copied file, or the name of a missing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLink {
    pub(crate) name: String,
    /// The copy, relative to the report folder and percent-encoded; `None` for a missing file.
    pub(crate) href: Option<String>,
    /// Why there is no copy; empty if there is one.
    pub(crate) missing: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCopy {
    pub(crate) source: Utf8PathBuf,
    /// The path of the copy within the report.
    pub(crate) target: String,
}

/// A reference to a run file: the link for a page, and the copy that makes the link work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRef {
    pub(crate) link: FileLink,
    /// The copy; `None` for a missing file.
    pub(crate) copy: Option<FileCopy>,
}

impl FileRef {
    /// A link to the copy of a file.
    pub(crate) fn copied(name: impl Into<String>, copy: FileCopy) -> Self {
        let link = FileLink { name: name.into(), href: Some(encode_path(&copy.target)), missing: String::new() };
        Self { link, copy: Some(copy) }
    }

    /// The name of a file without a copy, and why there is none.
    pub(crate) fn missing(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { link: FileLink { name: name.into(), href: None, missing: reason.into() }, copy: None }
    }
}

#[derive(Debug)]
pub(crate) struct RunFiles<'a> {
    /// The folder of the copies within the folder of all copies.
    folder: String,
    run_folder: &'a Utf8Path,
    /// The run document, to which every page links.
    run: FileRef,
    uses_program: bool,
}

impl<'a> RunFiles<'a> {
    /// The files of every run of a side. The copies of each run have a separate folder.
    pub(crate) fn of_side(side: Side, runs: &'a SideRuns) -> Vec<Self> {
        let folder = |index: usize| if runs.is_repeated() { format!("{side}-{}", index + 1) } else { side.to_string() };
        let files = |(index, run): (usize, &'a ComparedRun)| {
            let (folder, run_folder) = (folder(index), run.reader().folder());
            let run_document = reference(run_folder, &folder, counterproof_store::RUN_FILE, None);
            let uses_program = run.reader().run().base_url.starts_with(PROGRAM);
            Self { folder, run_folder, run: run_document, uses_program }
        };
        runs.iter().enumerate().map(files).collect()
    }

    pub(crate) const fn run_folder(&self) -> &Utf8Path {
        self.run_folder
    }

    /// Returns whether the agent of the run was a program instead of a server.
    pub(crate) const fn uses_program(&self) -> bool {
        self.uses_program
    }

    /// The artifact of a case.
    pub(crate) fn artifact(&self, case_id: &CaseId, stem: &str) -> FileRef {
        // The copy has the name of the case page, which differs from the id if two ids differ only in letter case.
        self.reference(&format!("{case_id}.json"), Some(format!("{stem}.json")))
    }

    /// The artifact of a case, which was read from the run folder.
    pub(crate) fn loaded_artifact(&self, case_id: &CaseId, stem: &str) -> FileRef {
        let name = format!("{case_id}.json");
        let source = self.run_folder.join(&name);
        FileRef::copied(display::visible(&name), FileCopy { source, target: self.artifact_path(stem) })
    }

    /// The path of the copied artifact of a case within the report.
    pub(crate) fn artifact_path(&self, stem: &str) -> String {
        format!("{ARTIFACTS_FOLDER}/{}/{stem}.json", self.folder)
    }

    pub(crate) const fn run(&self) -> &FileRef {
        &self.run
    }

    /// A file that a document of the run names.
    pub(crate) fn asset(&self, name: &str) -> FileRef {
        self.reference(name, None)
    }

    fn reference(&self, name: &str, copied_as: Option<String>) -> FileRef {
        reference(self.run_folder, &self.folder, name, copied_as)
    }
}

/// The reference to a file of a run folder whose copies are in `folder`.
fn reference(run_folder: &Utf8Path, folder: &str, name: &str, copied_as: Option<String>) -> FileRef {
    let missing = |reason| FileRef::missing(display::visible(name), reason);
    // The name is text of an agent. It may be anything, and must not lead out of the run folder.
    let Ok(href) = name.parse::<Href>() else { return missing("not a path within the run folder") };
    let Ok(source) = confined_path::resolve(run_folder, href.as_str()) else { return missing("not found") };
    let copied_as = copied_as.unwrap_or_else(|| copy_name(&href));
    let target = format!("{ARTIFACTS_FOLDER}/{folder}/{copied_as}");
    FileRef::copied(display::visible(name), FileCopy { source, target })
}

/// The run files that could not be read, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopyFailures {
    /// By the path of the copy within the report, which no two files share.
    reasons: BTreeMap<String, String>,
}

impl CopyFailures {
    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn merged_with(&self, other: Self) -> Self {
        let mut reasons = self.reasons.clone();
        reasons.extend(other.reasons);
        Self { reasons }
    }

    /// The reference without its link if the file could not be read.
    pub(crate) fn apply(&self, reference: FileRef) -> FileRef {
        let reason = reference.copy.as_ref().and_then(|copy| self.reasons.get(&copy.target));
        match reason {
            Some(reason) => FileRef::missing(reference.link.name, reason),
            None => reference,
        }
    }
}

/// Copies run files into the report folder `out` that is under construction, and returns those that could not be read.
pub(crate) fn copy_files(
    out: &Utf8Path,
    copies: impl IntoIterator<Item = FileCopy>,
) -> Result<CopyFailures, WriteError> {
    let mut failures = CopyFailures::default();
    for FileCopy { source, target } in copies {
        let path = out.join(&target);
        // Several pages link to one file: a target that exists is a copy of this very file.
        let result = match write::copy_new(&source, &path) {
            // Most folders exist, so they are only created where a copy fails without.
            Err(error) if error.path == path && error.source.kind() == ErrorKind::NotFound => {
                write::create_folder(path.parent().unwrap_or(out))?;
                write::copy_new(&source, &path)
            }
            result => result,
        };
        match result {
            // The path of the error tells the two sides of the copy apart.
            Err(error) if error.path == source => {
                let reason = format!("could not be copied: {}", error.source);
                // A page that another thread builds at this moment may link to the file, so the reason takes its place.
                // A source that could not be opened has no target yet, and perhaps no folder for it.
                write::create_folder(path.parent().unwrap_or(out))?;
                write::write(&path, reason.as_bytes(), Durability::Cached)?;
                failures.reasons.insert(target, reason);
            }
            // Any other error is one of the report, such as a full disk.
            result => {
                result?;
            }
        }
    }
    Ok(failures)
}

/// Extensions that a browser displays or saves, and never executes, when a user opens the file from disk.
/// A file with any other extension is copied as `.txt`, because a browser may guess that an unknown type is HTML.
const HARMLESS_EXTENSIONS: [&str; 9] = ["json", "txt", "bin", "csv", "png", "jpg", "jpeg", "gif", "webp"];

/// The folder for files that a browser could execute under their own name.
const AS_TEXT_FOLDER: &str = "as-text/";

/// Longer names are replaced by their digest: some systems limit a name to 255 bytes and a path to little more.
const LONGEST_NAME: usize = 180;

/// Returns the path of the copy of a linked file within the folder of its run. No two links share a copy.
pub(crate) fn copy_name(href: &Href) -> String {
    let href = href.as_str();
    if href.len() > LONGEST_NAME {
        return format!("{AS_TEXT_FOLDER}{}.txt", Sha256Digest::from_bytes(href.as_bytes()));
    }
    if is_harmless(href) && !href.starts_with(AS_TEXT_FOLDER) {
        return href.to_owned();
    }
    // A separate folder, so that the copy cannot collide with a file that has this name already.
    format!("{AS_TEXT_FOLDER}{href}.txt")
}

fn is_harmless(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| HARMLESS_EXTENSIONS.contains(&extension))
}

/// The names of the case pages, in case order. A page is named after its case. Ids that differ only in letter case get a
/// suffix, because some file systems ignore letter case.
#[derive(Debug)]
pub(crate) struct PageNames {
    ids: Vec<CaseId>,
    renamed: HashMap<CaseId, String>,
    /// The names in small letters.
    taken: HashSet<String>,
}

impl PageNames {
    pub(crate) fn new(ids: Vec<CaseId>) -> Self {
        // All names from the start: a suffix must not make the name of a later case.
        let mut taken: HashSet<String> = ids.iter().map(CaseId::collision_key).collect();
        let mut seen = HashSet::new();
        let mut renamed = HashMap::new();
        for id in ids.iter().filter(|id| !seen.insert(id.collision_key())) {
            let mut stems = (2..).map(|count: usize| format!("{id}~{count}"));
            if let Some(stem) = stems.find(|stem| taken.insert(stem.to_ascii_lowercase())) {
                renamed.insert(id.clone(), stem);
            }
        }
        Self { ids, renamed, taken }
    }

    /// The name of the page of a case, without the extension.
    pub(crate) fn stem<'a>(&'a self, id: &'a CaseId) -> &'a str {
        self.renamed.get(id).map_or(id.as_str(), String::as_str)
    }

    /// The name of the page of another run of a case, without the extension.
    pub(crate) fn run_stem(&self, id: &CaseId, side: Side, run: usize) -> String {
        let mut stem = format!("{}.run-{side}-{}", self.stem(id), run + 1);
        // The name of another case may look like that.
        while self.taken.contains(&stem.to_ascii_lowercase()) {
            stem.push('~');
        }
        stem
    }

    pub(crate) const fn count(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, index: usize) -> Option<&CaseId> {
        self.ids.get(index)
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn reference(source: Utf8PathBuf, target: &str) -> FileRef {
        FileRef::copied("run.json", FileCopy { source, target: target.to_owned() })
    }

    #[test]
    fn an_unreadable_file_is_missing_with_a_reason_and_the_others_are_copied() {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap();
        let source = out.join("source.json");
        write::write(&source, b"{}", Durability::Cached).unwrap();
        // A folder cannot be copied. The folder of its target does not exist yet.
        let unreadable = reference(out.to_owned(), "artifacts/new/a.json");
        let readable = reference(source, "artifacts/new/b.json");
        let copies = [&unreadable, &readable].map(|reference| reference.copy.clone().unwrap());
        let failures = copy_files(out, copies).unwrap();
        assert_eq!(std::fs::read(out.join("artifacts/new/b.json")).unwrap(), b"{}");
        let missing = failures.apply(unreadable);
        assert_eq!((missing.link.href, missing.copy), (None, None));
        assert!(missing.link.missing.starts_with("could not be copied: "), "{}", missing.link.missing);
        assert_eq!(failures.apply(readable.clone()), readable);
    }

    #[test]
    fn a_copy_that_cannot_be_written_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap();
        let source = out.join("source.json");
        write::write(&source, b"{}", Durability::Cached).unwrap();
        write::write(&out.join("artifacts"), b"a file in the way", Durability::Cached).unwrap();
        let copy = reference(source, "artifacts/new/a.json").copy;
        assert!(copy_files(out, copy).is_err());
    }

    fn copied(href: &str) -> String {
        copy_name(&href.parse().unwrap())
    }

    #[test]
    fn names_that_a_browser_could_execute_get_a_harmless_extension() {
        for (href, expected) in [
            ("assets/a.json", "assets/a.json"),
            ("assets/a.html", "as-text/assets/a.html.txt"),
            ("assets/a.html.txt", "assets/a.html.txt"),
            ("as-text/assets/a.html.txt", "as-text/as-text/assets/a.html.txt.txt"),
            ("assets/a.SVG", "as-text/assets/a.SVG.txt"),
            ("assets/a", "as-text/assets/a.txt"),
            ("assets.html/a.json", "assets.html/a.json"),
        ] {
            assert_eq!(copied(href), expected);
        }
    }

    #[test]
    fn a_name_that_is_too_long_for_some_systems_becomes_its_digest() {
        let long = format!("assets/{}.html", "é".repeat(100));
        let name = copied(&long);
        assert!(name.len() < 100 && is_harmless(&name), "{name}");
    }

    #[test]
    fn ids_that_differ_only_in_letter_case_get_separate_pages() {
        let ids: Vec<CaseId> = ["a", "A", "b", "A~2"].map(|id| id.parse().unwrap()).to_vec();
        let pages = PageNames::new(ids.clone());
        assert_eq!(ids.iter().map(|id| pages.stem(id)).collect::<Vec<_>>(), ["a", "A~3", "b", "A~2"]);
    }

    #[test]
    fn the_page_of_a_run_has_no_name_of_a_case() {
        let ids: Vec<CaseId> = ["a", "a.run-new-2"].map(|id| id.parse().unwrap()).to_vec();
        let pages = PageNames::new(ids.clone());
        assert_eq!(pages.run_stem(&ids[0], Side::Baseline, 1), "a.run-baseline-2");
        assert_eq!(pages.run_stem(&ids[0], Side::New, 1), "a.run-new-2~");
    }
}
