//! Which event or action of one side stands for which of the other, and whether the two differ.

use counterproof_artifact::Side;

use crate::diff::Differences;
use crate::diff::align::Row;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    /// In the arguments of the call at this event.
    Call(usize),
    /// In the parameters of this proposed action.
    Action(usize),
}

/// How an element of one side stands to the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stand {
    /// Its counterpart, where it has one.
    pub other: Option<usize>,
    /// Whether it differs from it by more than noise; what has no counterpart differs.
    pub differs: bool,
    /// The row of the aligned lists that it stands in.
    pub row: usize,
}

/// The counterparts of the events and actions of both sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counterparts {
    events: [Vec<Stand>; 2],
    actions: [Vec<Stand>; 2],
}

impl Counterparts {
    /// The counterparts in two aligned answers.
    pub(crate) fn of(differences: &Differences) -> Self {
        Self {
            events: stands(differences.events.iter().map(|row| (row.row, row.counts()))),
            actions: stands(differences.actions.iter().map(|row| (row.row, row.counts()))),
        }
    }

    /// How an event stands to the other side.
    pub(crate) fn event(&self, side: Side, index: usize) -> Stand {
        self.events[place(side)].get(index).copied().unwrap_or_default()
    }

    /// How an action stands to the other side.
    pub(crate) fn action(&self, side: Side, index: usize) -> Stand {
        self.actions[place(side)].get(index).copied().unwrap_or_default()
    }

    /// The call or action of the other side that stands for one.
    pub(crate) fn other(&self, side: Side, holder: Holder) -> Option<Holder> {
        match holder {
            Holder::Call(index) => self.event(side, index).other.map(Holder::Call),
            Holder::Action(index) => self.action(side, index).other.map(Holder::Action),
        }
    }
}

const fn place(side: Side) -> usize {
    match side {
        Side::Baseline => 0,
        Side::New => 1,
    }
}

fn stands(rows: impl Iterator<Item = (Row, bool)>) -> [Vec<Stand>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    let mut put = |side: Side, index: usize, stand: Stand| {
        let list: &mut Vec<Stand> = &mut sides[place(side)];
        if list.len() <= index {
            list.resize(index + 1, Stand::default());
        }
        list[index] = stand;
    };
    for (number, (row, differs)) in rows.enumerate() {
        match row {
            Row::Both { baseline, new } => {
                put(Side::Baseline, baseline, Stand { other: Some(new), differs, row: number });
                put(Side::New, new, Stand { other: Some(baseline), differs, row: number });
            }
            Row::Removed(index) => put(Side::Baseline, index, Stand { other: None, differs, row: number }),
            Row::Added(index) => put(Side::New, index, Stand { other: None, differs, row: number }),
        }
    }
    sides
}
