//! References to the run files that pages link to. Nothing is copied here: the writer copies what the references name, so
//! that the report folder is self-contained.
//!
//! References follow the same rules as the contract: nothing outside of the run folder is referenced. A file that cannot be
//! copied is shown as missing (see [`CopyFailures`](super::CopyFailures)), because a report of an incomplete run is still a report.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Href, PROGRAM, Side};
use counterproof_store::confined_path;

use super::copy_name::copy_name;
use crate::layout::ARTIFACTS_FOLDER;
use crate::url_path::encode_path;
use crate::view::display;
use counterproof_evaluator::ComparedRun;
use counterproof_evaluator::SideRuns;

/// A link to a copied file, or the name of a missing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLink {
    /// The name of the file in the run.
    pub(crate) name: String,
    /// The copy, relative to the report folder and percent-encoded; `None` for a missing file.
    pub(crate) href: Option<String>,
    /// Why there is no copy; empty where there is one.
    pub(crate) missing: String,
}

/// A file to copy into the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCopy {
    /// The file in the run folder.
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
    /// The files of every run of a side. The copies of each run have a folder of their own.
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

    /// The artifact of a case. The copy has the name of the case page.
    pub(crate) fn artifact(&self, case_id: &CaseId, stem: &str) -> FileRef {
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

    /// The run document.
    pub(crate) const fn run(&self) -> &FileRef {
        &self.run
    }

    /// A file that a document of the run names. The name is agent text and may be no valid path.
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
    let Ok(href) = name.parse::<Href>() else { return missing("not a path within the run folder") };
    let Ok(source) = confined_path::resolve(run_folder, href.as_str()) else { return missing("not found") };
    let copied_as = copied_as.unwrap_or_else(|| copy_name(&href));
    let target = format!("{ARTIFACTS_FOLDER}/{folder}/{copied_as}");
    FileRef::copied(display::visible(name), FileCopy { source, target })
}
