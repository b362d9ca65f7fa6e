//! What the sections of a case page share: the display budget, the element ids of the page and the links to them, and the run
//! files that it links to. A link never names an id that the page does not have.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Side, Sides};
use counterproof_evaluator::{Artifact, CaseComparison, LoadedAnswer, MadeCall, made_calls, messages};

use crate::files::{CopyFailures, FileCopy, FileLink, FileRef, RunFiles};
use crate::site::Site;
use crate::view::display::{self, Budget};

#[derive(Debug)]
pub(crate) struct CaseContext<'a> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) case: &'a CaseComparison<'a>,
    pub(crate) budget: Budget,
    pub(crate) anchors: Anchors,
    /// The calls of each side; empty without an answer.
    pub(crate) made: Sides<Vec<MadeCall>>,
    failures: &'a CopyFailures,
    copies: RefCell<Vec<FileCopy>>,
}

impl<'a> CaseContext<'a> {
    pub(crate) fn new(site: &'a Site<'a>, case: &'a CaseComparison<'a>, failures: &'a CopyFailures) -> Self {
        let (budget, anchors) = (Budget::for_page(), Anchors::default());
        let made = made_calls(Sides::new(case.baseline.answer(), case.new.answer()));
        Self { site, case, budget, anchors, made, failures, copies: RefCell::default() }
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

    pub(crate) fn artifact_file(&self, side: Side) -> FileLink {
        let (id, files) = (&self.case.row.case_id, self.files(side));
        let stem = self.site.pages.stem(id);
        // A file that was read is in the run folder, which needs no second look.
        let is_loaded = self.artifact(side).envelope().is_some();
        self.collect(if is_loaded { files.loaded_artifact(id, stem) } else { files.artifact(id, stem) })
    }

    pub(crate) fn run_file(&self, side: Side) -> FileLink {
        // The report has its copy before the first page is made.
        self.failures.apply(self.files(side).run().clone()).link
    }

    pub(crate) fn asset(&self, side: Side, name: &str) -> FileLink {
        self.collect(self.files(side).asset(name))
    }

    fn collect(&self, reference: FileRef) -> FileLink {
        // First, so that a file that is known to be unreadable is not copied again.
        let reference = self.failures.apply(reference);
        self.copies.borrow_mut().extend(reference.copy);
        reference.link
    }

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

    pub(crate) fn only_answer(&self) -> Option<(Side, &LoadedAnswer)> {
        match (self.answer(Side::Baseline), self.answer(Side::New)) {
            (Some(loaded), None) => Some((Side::Baseline, loaded)),
            (None, Some(loaded)) => Some((Side::New, loaded)),
            _ => None,
        }
    }
}

/// The ids of the steps, actions and sections that the page shows.
#[derive(Debug, Default)]
pub(crate) struct Anchors {
    // Filled while the sections are built, which share the context.
    known: RefCell<HashSet<String>>,
    /// Baseline ids of elements that also carry a new id, by the new id.
    baseline_by_new: RefCell<HashMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnchorLink {
    pub(crate) text: String,
    pub(crate) href: String,
}

impl Anchors {
    pub(crate) fn add(&self, id: String) -> String {
        self.known.borrow_mut().insert(id.clone());
        id
    }

    /// Registers a baseline id on an element that carries a new id too, and returns the baseline id.
    pub(crate) fn add_shared(&self, baseline: String, new: String) -> String {
        self.baseline_by_new.borrow_mut().insert(new, baseline.clone());
        self.add(baseline)
    }

    /// Returns whether a baseline link and a new link lead to the same element, or neither exists.
    pub(crate) fn is_same_target(&self, baseline: Option<&str>, new: Option<&str>) -> bool {
        let (baseline, new) = match (baseline, new) {
            (None, None) => return true,
            (Some(baseline), Some(new)) => (baseline, new),
            _ => return false,
        };
        let shared = self.baseline_by_new.borrow();
        let shared = new.strip_prefix('#').and_then(|new| shared.get(new));
        baseline == new || shared.is_some_and(|shared| baseline.strip_prefix('#') == Some(shared))
    }

    pub(crate) fn href(&self, id: &str) -> Option<String> {
        self.known.borrow().contains(id).then(|| format!("#{id}"))
    }

    /// The link to the element that a pointer names, or to its section where the page does not show the element.
    pub(crate) fn link(&self, at: &SidePointer) -> AnchorLink {
        let side = at.side;
        let (text, id, section) = match at.entry() {
            ("events", Some(index)) => (format!("step {}", index + 1), event(side, index), "#events"),
            ("proposed_actions", Some(index)) => (format!("action {}", index + 1), action(side, index), "#actions"),
            ("events", None) => ("events".to_owned(), String::new(), "#events"),
            ("proposed_actions", None) => ("proposed actions".to_owned(), String::new(), "#actions"),
            ("final_output", _) => ("output".to_owned(), String::new(), "#output"),
            ("runner_failure", _) => ("runner error".to_owned(), failure(side), "#files"),
            _ => (display::visible(&at.pointer), artifact(side), "#files"),
        };
        let within = match at.entry() {
            ("events" | "proposed_actions", Some(_)) => messages::field_path(&at.pointer),
            _ => String::new(),
        };
        let within = if within.is_empty() { within } else { format!(" · {within}") };
        AnchorLink {
            text: format!("{side}: {text}{within}"),
            // An element beyond the limit of rows has no id on the page.
            href: self.href(&id).unwrap_or_else(|| section.to_owned()),
        }
    }

    /// The link for a pointer into an artifact that the page does not show: its violations, or the file.
    pub(crate) fn link_to_file(&self, at: &SidePointer) -> AnchorLink {
        let text = if at.pointer.is_empty() { "whole file" } else { &at.pointer };
        AnchorLink {
            text: format!("{}: {}", at.side, display::visible(text)),
            href: self.href(&violations(at.side)).unwrap_or_else(|| format!("#{}", artifact(at.side))),
        }
    }
}

pub(crate) fn event(side: Side, index: usize) -> String {
    // The same index names different elements on the two sides, so each id contains its side.
    format!("{side}-event-{index}")
}

pub(crate) fn action(side: Side, index: usize) -> String {
    format!("{side}-action-{index}")
}

pub(crate) fn failure(side: Side) -> String {
    format!("{side}-failure")
}

pub(crate) fn violations(side: Side) -> String {
    format!("{side}-violations")
}

pub(crate) fn artifact(side: Side) -> String {
    format!("{side}-artifact")
}
