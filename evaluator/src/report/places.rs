//! The ids that elements of a case page carry, and the links that lead to them. A link never names an id that the page
//! does not have.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

use super::shown;
use crate::messages;

/// The ids of a page's steps and actions, as far as they are shown.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    known: RefCell<HashSet<String>>,
    /// Ids of the baseline's that stand on the same element as one of new's, by that one.
    other: RefCell<HashMap<String, String>>,
}

/// A link within the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlaceLink {
    /// Where it leads, in words.
    pub(super) text: String,
    /// The fragment.
    pub(super) href: String,
}

impl Anchors {
    /// Notes that an element carries the id.
    pub(super) fn add(&self, id: String) -> String {
        self.known.borrow_mut().insert(id.clone());
        id
    }

    /// Notes that an element which carries one of new's ids carries one of the baseline's too.
    pub(super) fn add_other(&self, baseline: String, new: String) -> String {
        self.other.borrow_mut().insert(new, baseline.clone());
        self.add(baseline)
    }

    /// True where a link of the baseline's and one of new's lead to the same element, or none of them anywhere.
    pub(super) fn are_one(&self, baseline: Option<&str>, new: Option<&str>) -> bool {
        match (baseline, new) {
            (None, None) => true,
            (Some(baseline), Some(new)) => {
                let other = self.other.borrow();
                baseline == new
                    || new
                        .strip_prefix('#')
                        .and_then(|new| other.get(new))
                        .is_some_and(|other| baseline.strip_prefix('#') == Some(other))
            }
            _ => false,
        }
    }

    /// A link to the element with the id, if there is one.
    pub(super) fn href(&self, id: &str) -> Option<String> {
        self.known.borrow().contains(id).then(|| format!("#{id}"))
    }

    /// A link to what a pointer into an artifact names; to its section where the place itself is not shown.
    pub(super) fn link(&self, place: &SidePointer, artifact_is_shown: bool) -> PlaceLink {
        let side = place.side;
        let mut segments = place.pointer.split('/').skip(1);
        let (list, index) = (segments.next().unwrap_or(""), segments.next().and_then(|index| index.parse().ok()));
        if !artifact_is_shown {
            let text = if place.pointer.is_empty() { "the whole file" } else { &place.pointer };
            return PlaceLink {
                text: format!("{side}: {}", shown::visible(text)),
                href: self.href(&violations(side)).unwrap_or_else(|| format!("#{}", artifact(side))),
            };
        }
        let (text, id, section) = match (list, index) {
            ("events", Some(index)) => (format!("step {}", index + 1), event(side, index), "#events"),
            ("proposed_actions", Some(index)) => (format!("action {}", index + 1), action(side, index), "#actions"),
            ("events", None) => ("events".to_owned(), String::new(), "#events"),
            ("proposed_actions", None) => ("proposed actions".to_owned(), String::new(), "#actions"),
            ("final_output", _) => ("output".to_owned(), String::new(), "#output"),
            ("runner_failure", _) => ("failure".to_owned(), failure(side), "#files"),
            _ => (shown::visible(&place.pointer), artifact(side), "#files"),
        };
        let within = match (list, index) {
            ("events" | "proposed_actions", Some(_)) => messages::place_name(&place.pointer),
            _ => String::new(),
        };
        let within = if within.is_empty() { within } else { format!(" · {within}") };
        PlaceLink {
            text: format!("{side}: {text}{within}"),
            href: self.href(&id).unwrap_or_else(|| section.to_owned()),
        }
    }
}

/// The id of an event.
pub(super) fn event(side: Side, index: usize) -> String {
    format!("{side}-event-{index}")
}

/// The id of a proposed action.
pub(super) fn action(side: Side, index: usize) -> String {
    format!("{side}-action-{index}")
}

/// The id of a runner failure.
pub(super) fn failure(side: Side) -> String {
    format!("{side}-failure")
}

/// The id of the list of what is wrong with an artifact.
pub(super) fn violations(side: Side) -> String {
    format!("{side}-violations")
}

/// The id of the link to an artifact.
pub(super) fn artifact(side: Side) -> String {
    format!("{side}-artifact")
}
