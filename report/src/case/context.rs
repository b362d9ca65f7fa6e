//! The input of the sections of a case page, and the three things they share: the display budget, the element ids of the
//! page, and the run files it links to.

use std::cell::RefCell;

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

use super::anchors::Anchors;
use crate::files::{CopyFailures, FileCopy, FileLink, FileRef, RunFiles};
use crate::site::Site;
use crate::view::display::Budget;
use counterproof_evaluator::CaseComparison;
use counterproof_evaluator::{Artifact, LoadedAnswer};

/// The input of the sections of a case page.
#[derive(Debug)]
pub(crate) struct CaseContext<'a> {
    /// The report that the page belongs to.
    pub(crate) site: &'a Site<'a>,
    pub(crate) case: &'a CaseComparison<'a>,
    /// The bytes that the page may still display.
    pub(crate) budget: Budget,
    /// The element ids of the page.
    pub(crate) anchors: Anchors,
    /// The run files that are known to be unreadable.
    failures: &'a CopyFailures,
    /// The files that the page links to.
    copies: RefCell<Vec<FileCopy>>,
}

impl<'a> CaseContext<'a> {
    /// The context of a page without any section yet.
    pub(crate) fn new(site: &'a Site<'a>, case: &'a CaseComparison<'a>, failures: &'a CopyFailures) -> Self {
        let (budget, anchors) = (Budget::for_page(), Anchors::default());
        Self { site, case, budget, anchors, failures, copies: RefCell::default() }
    }

    pub(crate) const fn artifact(&self, side: Side) -> &Artifact {
        match side {
            Side::Baseline => &self.case.baseline,
            Side::New => &self.case.new,
        }
    }

    /// The files of the run that the page shows for a side.
    pub(crate) fn files(&self, side: Side) -> &RunFiles<'_> {
        &self.site.files(side)[*self.case.shown.get(side)]
    }

    /// The link to the artifact of a side.
    pub(crate) fn artifact_file(&self, side: Side) -> FileLink {
        let (id, files) = (&self.case.row.case_id, self.files(side));
        let stem = self.site.pages.stem(id);
        // A file that was read is in the run folder, which needs no second look.
        let is_loaded = self.artifact(side).envelope().is_some();
        self.collect(if is_loaded { files.loaded_artifact(id, stem) } else { files.artifact(id, stem) })
    }

    /// The link to the run document of a side.
    pub(crate) fn run_file(&self, side: Side) -> FileLink {
        // The report has its copy before the first page is made.
        self.failures.apply(self.files(side).run().clone()).link
    }

    /// The link to a file that a document of a side names.
    pub(crate) fn asset(&self, side: Side, name: &str) -> FileLink {
        self.collect(self.files(side).asset(name))
    }

    fn collect(&self, reference: FileRef) -> FileLink {
        let reference = self.failures.apply(reference);
        self.copies.borrow_mut().extend(reference.copy);
        reference.link
    }

    /// The files that the sections linked to.
    pub(crate) fn into_copies(self) -> Vec<FileCopy> {
        self.copies.into_inner()
    }

    /// Returns whether a row of the aligned lists, or the output, is noise. `pointers` name its elements.
    pub(crate) fn is_noise(&self, pointers: &[SidePointer]) -> bool {
        let repeats = self.case.row.repeats.as_ref();
        repeats.is_some_and(|repeats| pointers.first().is_some_and(|pointer| repeats.noise.contains(pointer)))
    }

    pub(crate) fn answer(&self, side: Side) -> Option<&LoadedAnswer> {
        self.artifact(side).answer()
    }

    /// The answer of the only side that has one.
    pub(crate) fn only_answer(&self) -> Option<(Side, &LoadedAnswer)> {
        match (self.answer(Side::Baseline), self.answer(Side::New)) {
            (Some(loaded), None) => Some((Side::Baseline, loaded)),
            (None, Some(loaded)) => Some((Side::New, loaded)),
            _ => None,
        }
    }
}
