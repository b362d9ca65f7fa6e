//! Resources that others have.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::{Claim, Holder, LivingHolder};

/// A resource that others have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The resource that was asked for.
    pub resource: String,
    /// Who has it; `None` if that is unknown.
    pub holder: Option<Holder>,
    /// The details.
    pub message: String,
}

/// Returns the conflicts of claims with those of a holder. A holder whose claims are unknown conflicts with everything.
pub(super) fn with_holder(wanted: &[Claim], other: &LivingHolder) -> Vec<Conflict> {
    let Some((holder, claims)) = &other.known else {
        let message = format!("the holder of `{}` is unknown: its record cannot be read", other.record);
        return vec![Conflict { resource: "all resources".to_owned(), holder: None, message }];
    };
    let conflict = |wanted: &Claim| {
        let held = claims.iter().find(|held| wanted.conflicts_with(held))?;
        let Holder { contract, owner, pid, since } = holder;
        let by = format!("contract `{contract}` (owner `{owner}`, process {pid}, since {since})");
        let message = if wanted == held {
            format!("{wanted} is held by {by}")
        } else {
            format!("{wanted} overlaps with {held}, held by {by}")
        };
        Some(Conflict { resource: wanted.to_string(), holder: Some(holder.clone()), message })
    };
    wanted.iter().filter_map(conflict).collect()
}

/// Returns the conflict of a range without a free port. It names the first holder of a port in it.
pub(super) fn no_port(range: RangeInclusive<u16>, holders: &[LivingHolder]) -> Conflict {
    let (first, last) = (*range.start(), *range.end());
    let held_by = |holder: &LivingHolder| holder.ports().filter(|port| range.contains(port)).count();
    let held: usize = holders.iter().map(held_by).sum();
    let holder = holders.iter().find(|holder| held_by(holder) > 0).and_then(LivingHolder::holder).cloned();
    let by = holder.as_ref().map_or_else(String::new, |holder| format!(" (the first of them `{}`)", holder.contract));
    let others = range.len().saturating_sub(held);
    let message =
        format!("no free port in {first}-{last}: {held} held by contracts{by}, {others} in use by other programs");
    Conflict { resource: format!("port {first}-{last}"), holder, message }
}
