//! The runs of a case with repeats: the shown one of each side, and a page for each run that answered or acted in another way.

use counterproof_artifact::{CaseId, Side, Sides};

use crate::site::{Site, encode_path};

#[derive(Debug, Clone, Default)]
pub(crate) struct RunPicker {
    /// What the page shows, where it is not the page of the case; otherwise empty.
    pub(crate) note: String,
    pub(crate) sides: Vec<PickerSide>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerSide {
    pub(crate) side: &'static str,
    pub(crate) runs: Vec<RunLink>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunLink {
    pub(crate) number: usize,
    /// The page; `None` for the run of this page, and for one that did the same as the shown run.
    pub(crate) href: Option<String>,
    pub(crate) is_here: bool,
}

/// The picker of the page of a case, or of the page of one of its other runs.
pub(crate) struct PickerInput<'a> {
    pub(crate) case_id: &'a CaseId,
    /// The runs that the page of the case shows.
    pub(crate) shown: Sides<usize>,
    /// The other runs that have a page.
    pub(crate) others: &'a [(Side, usize)],
    /// The run that the page shows instead.
    pub(crate) current: Option<(Side, usize)>,
}

pub(crate) fn view(site: &Site<'_>, input: &PickerInput<'_>) -> RunPicker {
    let counts = Sides::from_fn(|side| site.files(side).len());
    let page = |stem: &str| Some(encode_path(&format!("{stem}.html")));
    let of_side = |side: Side| {
        let here = input.current.filter(|(of, _)| *of == side).map_or(*input.shown.get(side), |(_, index)| index);
        let run = |index: usize| {
            let is_here = index == here;
            let href = if is_here {
                None
            } else if index == *input.shown.get(side) {
                page(site.pages.stem(input.case_id))
            } else if input.others.contains(&(side, index)) {
                page(&site.pages.run_stem(input.case_id, side, index))
            } else {
                None
            };
            RunLink { number: index + 1, href, is_here }
        };
        PickerSide { side: side.as_str(), runs: (0..*counts.get(side)).map(run).collect() }
    };
    RunPicker {
        note: input.current.map_or_else(String::new, |(side, index)| {
            format!(
                "This page shows run {} of {side} next to run {} of {}. All runs together decide about the case.",
                index + 1,
                input.shown.get(side.other()) + 1,
                side.other()
            )
        }),
        sides: if input.others.is_empty() && counts.iter().all(|(_, count)| *count == 1) {
            Vec::new()
        } else {
            Side::BOTH.into_iter().map(of_side).collect()
        },
    }
}
