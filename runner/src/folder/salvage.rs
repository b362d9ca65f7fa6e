//! The assets that a run left behind when it ended before its time: which case each belongs to, told by its name.

use std::collections::{BTreeSet, HashMap};

use counterproof_artifact::{AssetKind, CaseId, Extra, ManifestItem, Sha256Digest, Side};
use counterproof_store::write::WriteError;
use counterproof_store::{ASSETS_FOLDER, ReadError, RunReader, RunWriter};

/// Why assets could not be sorted out.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// One could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// One could not be removed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// An asset on disk, and what is known of it.
pub(crate) struct Asset {
    pub(crate) name: String,
    pub(crate) kind: AssetKind,
    pub(crate) case: Option<CaseId>,
    /// As the manifest lists it, where there is one.
    pub(crate) sha256: Option<Sha256Digest>,
    extra: Extra,
}

/// Enters the assets of complete cases into the manifest, and removes those of cases that will be asked from the start.
pub(crate) fn salvage_assets(
    folder: &RunWriter,
    reader: &RunReader,
    selected: &BTreeSet<CaseId>,
    complete: &BTreeSet<CaseId>,
) -> Result<(), SalvageError> {
    for asset in listed(reader, selected)? {
        if asset.case.as_ref().is_some_and(|case| !complete.contains(case)) {
            folder.remove_asset(&asset.name)?;
        } else {
            folder.adopt(&asset.name, asset.kind, asset.case, asset.extra)?;
        }
    }
    // It is written again at the end; until then it would name files that are gone.
    folder.remove_manifest()?;
    Ok(())
}

/// The assets on disk, with what the manifest says of them, or else their names.
pub(crate) fn listed(reader: &RunReader, cases: &BTreeSet<CaseId>) -> Result<Vec<Asset>, ReadError> {
    let items = reader.manifest()?.map(|manifest| manifest.items).unwrap_or_default();
    let mut items: HashMap<String, ManifestItem> =
        items.into_iter().map(|item| (item.href.as_str().to_owned(), item)).collect();
    let of = |name: String| {
        if let Some(item) = items.remove(&format!("{ASSETS_FOLDER}/{name}")) {
            return Asset { name, kind: item.kind, case: item.case_id, sha256: item.sha256, extra: item.extra };
        }
        let owner = owner(&name, reader.run().version, cases);
        let (case, kind) = owner.map_or((None, AssetKind::Other), |(case, kind)| (Some(case), kind));
        Asset { name, kind, case, sha256: None, extra: Extra::new() }
    };
    Ok(reader.asset_names()?.into_iter().map(of).collect())
}

/// Whose an asset is, and what it holds, by the names that the runner gives.
fn owner(name: &str, side: Side, cases: &BTreeSet<CaseId>) -> Option<(CaseId, AssetKind)> {
    let known = |text: &str| cases.get(&text.parse::<CaseId>().ok()?).cloned();
    let payload = name.strip_prefix(&format!("full_payload_{side}_")).and_then(|rest| rest.strip_suffix(".json"));
    if let Some((case, event)) = payload.and_then(|rest| rest.rsplit_once("_e"))
        && event.bytes().all(|byte| byte.is_ascii_digit())
        && let Some(case) = known(case)
    {
        return Some((case, AssetKind::FullPayload));
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
    // Anything else that is called after a case; of two whose ids begin alike, the longer.
    let ends = name.rmatch_indices('.').map(|(at, _)| at);
    ends.filter_map(|at| known(&name[..at])).map(|case| (case, AssetKind::Other)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_are_told_by_their_names() {
        let ids = ["a", "a.attempt1", "b_e1", "full_payload_new_x"];
        let cases: BTreeSet<CaseId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        let of = |name: &str| owner(name, Side::New, &cases).map(|(case, kind)| (case.to_string(), kind));
        let is = |case: &str, kind| Some((case.to_owned(), kind));
        assert_eq!(of("a.attempt1.body.txt"), is("a", AssetKind::FullBody));
        assert_eq!(of("a.attempt1.attempt12.meta.json"), is("a.attempt1", AssetKind::FailureMeta));
        assert_eq!(of("full_payload_new_b_e1_e0.json"), is("b_e1", AssetKind::FullPayload));
        assert_eq!(of("full_payload_new_x.attempt2.body.bin"), is("full_payload_new_x", AssetKind::FullBody));
        assert_eq!(of("a.request.json"), is("a", AssetKind::Other));
        assert_eq!(of("notes.txt"), None);
    }
}
