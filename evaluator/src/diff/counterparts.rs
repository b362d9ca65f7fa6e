//! Counterparts: which event or action of one side is paired with which of the other, and whether the two differ.

use counterproof_artifact::{Side, Sides};

use crate::diff::Differences;
use crate::diff::align::Row;

/// A call or a proposed action, which holds the arguments for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    /// The call at this event.
    Call(usize),
    /// The proposed action with this index.
    Action(usize),
}

/// The relation of an element to the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counterpart {
    /// The paired element of the other side.
    pub(crate) other: Option<usize>,
    /// True if the pair differs by more than noise. An unpaired element differs.
    pub(crate) differs: bool,
    /// The row of the aligned lists.
    pub(crate) row: usize,
}

/// The counterparts of the events and actions of both sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counterparts {
    events: Sides<Vec<Counterpart>>,
    actions: Sides<Vec<Counterpart>>,
}

impl Counterparts {
    /// Lists the counterparts in two aligned answers.
    pub(crate) fn new(differences: &Differences) -> Self {
        Self {
            events: counterparts(differences.events.iter().map(|row| (row.row, row.counts()))),
            actions: counterparts(differences.actions.iter().map(|row| (row.row, row.counts()))),
        }
    }

    pub(crate) fn event(&self, side: Side, index: usize) -> Counterpart {
        self.events.get(side).get(index).copied().unwrap_or_default()
    }

    pub(crate) fn action(&self, side: Side, index: usize) -> Counterpart {
        self.actions.get(side).get(index).copied().unwrap_or_default()
    }

    /// Returns the paired call or action of the other side.
    pub(crate) fn other(&self, side: Side, holder: Holder) -> Option<Holder> {
        match holder {
            Holder::Call(index) => self.event(side, index).other.map(Holder::Call),
            Holder::Action(index) => self.action(side, index).other.map(Holder::Action),
        }
    }
}

fn counterparts(rows: impl Iterator<Item = (Row, bool)>) -> Sides<Vec<Counterpart>> {
    let mut sides = Sides::new(Vec::new(), Vec::new());
    let mut put = |side: Side, index: usize, counterpart: Counterpart| {
        let list: &mut Vec<Counterpart> = sides.get_mut(side);
        if list.len() <= index {
            list.resize(index + 1, Counterpart::default());
        }
        list[index] = counterpart;
    };
    for (row, (pair, differs)) in rows.enumerate() {
        match pair {
            Row::Both { baseline, new } => {
                put(Side::Baseline, baseline, Counterpart { other: Some(new), differs, row });
                put(Side::New, new, Counterpart { other: Some(baseline), differs, row });
            }
            Row::Removed(index) => put(Side::Baseline, index, Counterpart { other: None, differs, row }),
            Row::Added(index) => put(Side::New, index, Counterpart { other: None, differs, row }),
        }
    }
    sides
}
