//! Names of the case pages.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::CaseId;

/// The names of the case pages, in case order. A page is named after its case. Ids that differ only in letter case get a
/// suffix, because some file systems ignore letter case.
#[derive(Debug)]
pub(crate) struct PageNames {
    ids: Vec<CaseId>,
    renamed: HashMap<CaseId, String>,
}

impl PageNames {
    /// The names of the pages of these cases.
    pub(crate) fn new(ids: Vec<CaseId>) -> Self {
        let mut taken: HashSet<String> = ids.iter().map(CaseId::collision_key).collect();
        let mut seen = HashSet::new();
        let mut renamed = HashMap::new();
        for id in ids.iter().filter(|id| !seen.insert(id.collision_key())) {
            let mut stems = (2..).map(|count: usize| format!("{id}~{count}"));
            if let Some(stem) = stems.find(|stem| taken.insert(stem.to_ascii_lowercase())) {
                renamed.insert(id.clone(), stem);
            }
        }
        Self { ids, renamed }
    }

    /// The name of the page of a case, without the extension.
    pub(crate) fn stem<'a>(&'a self, id: &'a CaseId) -> &'a str {
        self.renamed.get(id).map_or(id.as_str(), String::as_str)
    }

    /// The number of cases.
    pub(crate) const fn count(&self) -> usize {
        self.ids.len()
    }

    /// The case at an index of the case order.
    pub(crate) fn id(&self, index: usize) -> Option<&CaseId> {
        self.ids.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_only_in_letter_case_get_separate_pages() {
        let ids: Vec<CaseId> = ["a", "A", "b", "A~2"].map(|id| id.parse().unwrap()).to_vec();
        let pages = PageNames::new(ids.clone());
        assert_eq!(ids.iter().map(|id| pages.stem(id)).collect::<Vec<_>>(), ["a", "A~3", "b", "A~2"]);
    }
}
