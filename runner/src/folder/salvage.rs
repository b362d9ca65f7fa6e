//! The assets of an unfinished run: determines the case of each from the manifest or from its file name.

use std::collections::{BTreeSet, HashMap};

use counterproof_artifact::{AssetKind, Case, CaseId, Extra, ManifestItem, Outcome, Sha256Digest, Side};
use counterproof_store::write::WriteError;
use counterproof_store::{ASSETS_FOLDER, ReadError, RunReader, RunWriter};

use crate::event::Counts;
use crate::failure::Reason;

/// Why the assets could not be salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be removed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// An asset on disk.
pub(crate) struct Asset {
    pub(crate) name: String,
    pub(crate) kind: AssetKind,
    pub(crate) case: Option<CaseId>,
    /// The digest in the manifest, if there is one.
    pub(crate) sha256: Option<Sha256Digest>,
    extra: Extra,
}

/// Adds the assets of complete cases to the new manifest, and removes the assets of cases that will run.
pub(crate) fn salvage_assets(
    folder: &RunWriter,
    reader: &RunReader,
    selected: &BTreeSet<CaseId>,
    complete: &BTreeSet<CaseId>,
) -> Result<(), SalvageError> {
    for asset in list_assets(reader, selected)? {
        if asset.case.as_ref().is_some_and(|case| !complete.contains(case)) {
            folder.remove_asset(&asset.name)?;
        } else {
            folder.adopt(&asset.name, asset.kind, asset.case, asset.extra)?;
        }
    }
    // The run writes a new manifest at its end. Until then the old one would list removed files.
    folder.remove_manifest()?;
    Ok(())
}

/// Returns the assets on disk with their manifest entry, or with the case that their name implies.
pub(crate) fn list_assets(reader: &RunReader, cases: &BTreeSet<CaseId>) -> Result<Vec<Asset>, ReadError> {
    let items = reader.manifest()?.map(|manifest| manifest.items).unwrap_or_default();
    let mut items: HashMap<String, ManifestItem> =
        items.into_iter().map(|item| (item.href.as_str().to_owned(), item)).collect();
    let of = |name: String| {
        if let Some(item) = items.remove(&format!("{ASSETS_FOLDER}/{name}")) {
            return Asset { name, kind: item.kind, case: item.case_id, sha256: item.sha256, extra: item.extra };
        }
        // A run writes its manifest at the end. For an unfinished run, only the name shows the case.
        let owner = owner(&name, reader.run().version, cases);
        let (case, kind) = owner.map_or((None, AssetKind::Other), |(case, kind)| (Some(case), kind));
        Asset { name, kind, case, sha256: None, extra: Extra::new() }
    };
    Ok(reader.asset_names()?.into_iter().map(of).collect())
}

/// Returns the case and the kind of an asset from the naming scheme of the runner.
fn owner(name: &str, side: Side, cases: &BTreeSet<CaseId>) -> Option<(CaseId, AssetKind)> {
    let known = |text: &str| cases.get(&text.parse::<CaseId>().ok()?).cloned();
    for (start, kind) in
        [("full_payload", AssetKind::FullPayload), ("retrieval_snippets", AssetKind::RetrievalSnippets)]
    {
        let event = name.strip_prefix(&format!("{start}_{side}_")).and_then(|rest| rest.strip_suffix(".json"));
        if let Some((case, event)) = event.and_then(|rest| rest.rsplit_once("_e"))
            && event.bytes().all(|byte| byte.is_ascii_digit())
            && let Some(case) = known(case)
        {
            return Some((case, kind));
        }
    }
    for (end, kind) in
        [(".body.txt", AssetKind::FullBody), (".body.bin", AssetKind::FullBody), (".meta.json", AssetKind::FailureMeta)]
    {
        if let Some((case, attempt)) = name.strip_suffix(end).and_then(|rest| rest.rsplit_once(".attempt"))
            && attempt.bytes().all(|byte| byte.is_ascii_digit())
            && let Some(case) = known(case)
        {
            return Some((case, kind));
        }
    }
    // Other names start with a case id. Case ids may contain dots, so the longest match wins.
    let ends = name.rmatch_indices('.').map(|(at, _)| at);
    ends.filter_map(|at| known(&name[..at])).map(|case| (case, AssetKind::Other)).next()
}

pub(crate) fn counts_of(artifact: &Case) -> Counts {
    let attempts = artifact.attempts.as_ref().map_or(0, Vec::len);
    let failed = usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
    let skipped = usize::from(was_skipped(artifact));
    let retried = usize::from(attempts > 1);
    Counts { answered: 1 - failed, failed, retried, attempts, skipped, ..Counts::default() }
}

/// Reports whether the case was skipped because the agent looked down.
pub(crate) fn was_skipped(artifact: &Case) -> bool {
    // Such a case counts as missing: the agent was never asked.
    let Outcome::RunnerError(failure) = &artifact.outcome else { return false };
    failure.error_name.as_deref() == Some(Reason::NotRun.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_asset_implies_its_case_and_kind() {
        let ids = ["a", "a.attempt1", "b_e1", "full_payload_new_x"];
        let cases: BTreeSet<CaseId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        let of = |name: &str| owner(name, Side::New, &cases).map(|(case, kind)| (case.to_string(), kind));
        let is = |case: &str, kind| Some((case.to_owned(), kind));
        assert_eq!(of("a.attempt1.body.txt"), is("a", AssetKind::FullBody));
        assert_eq!(of("a.attempt1.attempt12.meta.json"), is("a.attempt1", AssetKind::FailureMeta));
        assert_eq!(of("full_payload_new_b_e1_e0.json"), is("b_e1", AssetKind::FullPayload));
        assert_eq!(of("retrieval_snippets_new_a_e12.json"), is("a", AssetKind::RetrievalSnippets));
        assert_eq!(of("full_payload_new_x.attempt2.body.bin"), is("full_payload_new_x", AssetKind::FullBody));
        assert_eq!(of("a.request.json"), is("a", AssetKind::Other));
        assert_eq!(of("notes.txt"), None);
    }
}
