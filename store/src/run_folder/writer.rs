//! A run folder under construction: its documents, artifacts and assets, in place or staged next to it.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::{
    AssetKind, Case, CaseId, Content, EventBody, Extra, Href, Manifest, ManifestItem, ManifestSchema, Outcome, Run,
    RunId, Side,
};
use serde::Serialize;

use super::reader::{ASSETS_FOLDER, MANIFEST_FILE, RUN_FILE, SAFE_EXTENSIONS};
use super::reopen::{LockError, lock_run_folder};
use crate::file_lock::FileLock;
use crate::write::{self, AtomicFile, Durability, StagedFolder, WriteError};

/// A run folder that could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Another run has this name.
    #[error("the run folder `{0}` already exists")]
    Exists(Utf8PathBuf),
    /// The folder could not be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder could not be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Another process goes on with the run, in this folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("another process has taken this run over, in `{0}`")]
pub struct TakenOver(pub Utf8PathBuf);

impl TakenOver {
    /// The error, if it is why a file was not written.
    pub fn of(error: &WriteError) -> Option<&Self> {
        error.source.get_ref()?.downcast_ref()
    }
}

/// A place that a run is copied to while it is written, such as a bucket. All paths are those of the folder on this machine.
///
/// A file is put there once it is durable here, and its write is done when it is there. So the order of the writes is the same in
/// both: the assets of a case before its artifact, and the end of the run last.
pub trait RunCopy: Send + Sync + Debug {
    /// Copies files, in any order, and replaces earlier copies.
    fn put(&self, files: &[Utf8PathBuf]) -> io::Result<()>;

    /// Removes the copy of a file, if there is one.
    fn remove(&self, file: &Utf8Path) -> io::Result<()>;

    /// Takes the name of a run folder. Of several processes, one gets it; the others get false.
    fn claim(&self, folder: &Utf8Path) -> io::Result<bool>;

    /// Whether a process has taken the name of a run folder.
    fn is_claimed(&self, folder: &Utf8Path) -> io::Result<bool>;

    /// The names of the run folders in a folder.
    fn run_folders(&self, parent: &Utf8Path) -> io::Result<Vec<String>>;

    /// Copies one file from there to this machine, in place of what is here. Returns false if it is not there.
    fn fetch_document(&self, file: &Utf8Path) -> io::Result<bool>;

    /// Copies a run folder from there to this machine, in place of what is here.
    fn fetch(&self, folder: &Utf8Path) -> io::Result<()>;
}

/// A run folder under construction, locked against other processes. Threads can share it.
#[derive(Debug)]
pub struct RunWriter {
    pub(super) folder: Utf8PathBuf,
    pub(super) side: Side,
    /// The assets that the manifest will list.
    pub(super) items: Mutex<Vec<ManifestItem>>,
    /// Set once the assets folder exists.
    assets_created: OnceLock<()>,
    /// The folder of the process that takes this run over. Once it exists, nothing more is committed.
    successor: Option<Utf8PathBuf>,
    /// Where each file is also copied; `None` for a run of this machine.
    copy: Option<Arc<dyn RunCopy>>,
    /// The assets that are not copied yet, each with its case.
    uncopied: Mutex<Vec<(Option<CaseId>, Utf8PathBuf)>>,
    _lock: FileLock,
}

impl RunWriter {
    /// Creates `<out>/<side>/<run_id>/`, which must not exist yet.
    pub fn create(out: &Utf8Path, side: Side, run_id: &RunId) -> Result<Self, CreateError> {
        let parent = out.join(side.as_str());
        write::create_folder(&parent)?;
        let folder = parent.join(run_id.as_str());
        match write::create_new_folder(&folder) {
            Ok(()) => Self::lock(folder, side).map_err(Into::into),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Err(CreateError::Exists(folder)),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts with a folder that exists.
    pub(super) fn lock(folder: Utf8PathBuf, side: Side) -> Result<Self, LockError> {
        let lock = lock_run_folder(&folder)?;
        Ok(Self {
            folder,
            side,
            items: Mutex::default(),
            assets_created: OnceLock::new(),
            successor: None,
            copy: None,
            uncopied: Mutex::default(),
            _lock: lock,
        })
    }

    /// Copies each file that is written from now on.
    #[must_use]
    pub fn copied_to(self, copy: Option<Arc<dyn RunCopy>>) -> Self {
        Self { copy, ..self }
    }

    /// Takes the name of the run where its files are copied to, so that no other process writes there.
    pub fn claim_copy(&self) -> Result<(), CreateError> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let is_claimed = copy.claim(&self.folder).map_err(WriteError::at(&self.folder))?;
        if is_claimed { Ok(()) } else { Err(CreateError::Exists(self.folder.clone())) }
    }

    /// Copies a file that is durable here.
    fn put_copy(&self, file: &Utf8Path) -> Result<(), WriteError> {
        let Some(copy) = &self.copy else { return Ok(()) };
        copy.put(&[file.to_owned()]).map_err(WriteError::at(file))
    }

    /// Copies the assets of a case, or all of them.
    fn put_assets(&self, case: Option<&CaseId>) -> Result<(), WriteError> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let mut uncopied = self.uncopied.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<_> =
            uncopied.extract_if(.., |(of, _)| case.is_none() || of.as_ref() == case).map(|(_, file)| file).collect();
        drop(uncopied);
        copy.put(&files).map_err(WriteError::at(&self.folder))
    }

    /// Removes a file, and its copy.
    pub(super) fn remove_file(&self, file: &Utf8Path) -> Result<(), WriteError> {
        write::remove(file)?;
        self.uncopied.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, uncopied)| uncopied != file);
        let Some(copy) = &self.copy else { return Ok(()) };
        copy.remove(file).map_err(WriteError::at(file))
    }

    fn write_document(&self, name: &str, document: &impl Serialize) -> Result<(), WriteError> {
        let path = self.folder.join(name);
        write::write_json(&path, document, Durability::Synced)?;
        self.put_copy(&path)
    }

    /// Commits nothing once this folder exists, because then another process goes on with the run.
    #[must_use]
    pub fn until_exists(self, successor: Utf8PathBuf) -> Self {
        Self { successor: Some(successor), ..self }
    }

    /// Fails with [`TakenOver`] if another process has taken the run over.
    pub fn check_lease(&self) -> Result<(), WriteError> {
        let Some(successor) = &self.successor else { return Ok(()) };
        let is_claimed = match &self.copy {
            Some(copy) => copy.is_claimed(successor).map_err(WriteError::at(&self.folder))?,
            None => successor.exists(),
        };
        if is_claimed {
            let source = io::Error::other(TakenOver(successor.clone()));
            return Err(WriteError { path: self.folder.clone(), source });
        }
        Ok(())
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    pub const fn side(&self) -> Side {
        self.side
    }

    /// Writes `run.json`, replacing the one of the start of the run.
    pub fn write_run(&self, run: &Run) -> Result<(), WriteError> {
        self.check_lease()?;
        self.write_document(RUN_FILE, run)
    }

    /// Writes an artifact. The case is complete and durable when this returns.
    pub fn write_case(&self, case: &Case) -> Result<(), WriteError> {
        let path = self.folder.join(format!("{}.json", case.case_id));
        if self.copy.is_none() {
            self.check_lease()?;
        }
        write::write_json(&path, case, Durability::Synced)?;
        if self.copy.is_some() {
            // Only now: these are requests that can fail, and then the answer is here.
            self.check_lease()?;
        }
        self.put_assets(Some(&case.case_id))?;
        self.put_copy(&path)
    }

    /// Creates the assets folder before the first asset; a run without assets has none.
    pub(super) fn create_assets_folder(&self) -> Result<(), WriteError> {
        if self.assets_created.get().is_none() {
            write::create_folder(&self.folder.join(ASSETS_FOLDER))?;
            let _ = self.assets_created.set(());
        }
        Ok(())
    }

    /// Returns the path and the href of an asset with a plain file name.
    pub(super) fn asset_path(&self, name: &str) -> Result<(Utf8PathBuf, Href), WriteError> {
        let path = self.folder.join(ASSETS_FOLDER).join(name);
        let invalid = |reason: String| WriteError { path: path.clone(), source: io::Error::other(reason) };
        let href: Href = format!("{ASSETS_FOLDER}/{name}").parse().map_err(|error| invalid(format!("{error}")))?;
        if name.contains('/') || !path.extension().is_some_and(|extension| SAFE_EXTENSIONS.contains(&extension)) {
            return Err(invalid(format!(
                "`{name}` is not a plain name with one of the extensions {SAFE_EXTENSIONS:?}"
            )));
        }
        Ok((path, href))
    }

    /// Renames an asset into place and adds it to the manifest.
    pub(super) fn commit_asset(
        &self,
        file: HashedFile,
        href: Href,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        file.file.commit(Durability::Synced)?;
        if self.copy.is_some() {
            // Copied before the artifact of the case.
            let file = self.folder.join(href.as_str());
            self.uncopied.lock().unwrap_or_else(PoisonError::into_inner).push((case.cloned(), file));
        }
        let (digest, size) = file.hasher.finish();
        let item = ManifestItem {
            asset_id: href.as_str().rsplit('/').next().unwrap_or_default().to_owned(),
            href,
            kind,
            case_id: case.cloned(),
            side: case.map(|_| self.side),
            size_bytes: size.into(),
            sha256: Some(digest),
            extra: Extra::new(),
        };
        // Only after the file has its name: the manifest must not list an asset that does not exist.
        self.items.lock().unwrap_or_else(PoisonError::into_inner).push(item.clone());
        Ok(item)
    }

    /// Writes a complete asset, which is durable when this returns.
    pub fn write_asset(
        &self,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
        bytes: &[u8],
    ) -> Result<ManifestItem, WriteError> {
        let mut asset = self.unnamed_asset()?;
        asset
            .write_all(bytes)
            .map_err(|source| WriteError { path: self.folder.join(ASSETS_FOLDER).join(name), source })?;
        self.name_asset(asset, name, kind, case)
    }

    /// Writes `assets/manifest.json`, if there are assets.
    pub fn write_manifest(&self, generated_at: &str) -> Result<(), WriteError> {
        self.check_lease()?;
        self.put_assets(None)?;
        let mut listed = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.is_empty() {
            return Ok(());
        }
        // Moved into the document and back: a run can have very many assets.
        let mut items = std::mem::take(&mut *listed);
        // Threads add assets in any order. Sorted, equal runs have equal manifests.
        items.sort_unstable_by(|a, b| a.href.cmp(&b.href));
        let manifest = Manifest {
            schema_version: ManifestSchema::V1,
            generated_at: generated_at.to_owned(),
            items,
            extra: Extra::new(),
        };
        let written = self.write_document(MANIFEST_FILE, &manifest);
        // Also after a failed write, so that the caller can try again.
        *listed = manifest.items;
        written
    }
}

/// A file under construction that hashes and counts what is written. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct HashedFile {
    pub(super) file: AtomicFile,
    pub(super) hasher: Sha256Hasher,
}

impl HashedFile {
    pub(super) fn create(path: &Utf8Path) -> Result<Self, WriteError> {
        Ok(Self { file: AtomicFile::create(path)?, hasher: Sha256Hasher::default() })
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An asset whose name is chosen after its content is known. Dropping it before [`RunWriter::name_asset`] removes the file.
#[derive(Debug)]
pub struct UnnamedAsset(HashedFile);

impl RunWriter {
    /// Starts an asset that gets its name later.
    pub fn unnamed_asset(&self) -> Result<UnnamedAsset, WriteError> {
        self.create_assets_folder()?;
        // Only selects the folder of the temporary file: `name_asset` replaces this path before the rename.
        let path = self.folder().join(ASSETS_FOLDER).join("unnamed");
        HashedFile::create(&path).map(UnnamedAsset)
    }

    /// Names an asset and adds it to the manifest.
    pub fn name_asset(
        &self,
        asset: UnnamedAsset,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        let (path, href) = self.asset_path(name)?;
        let HashedFile { file, hasher } = asset.0;
        self.commit_asset(HashedFile { file: file.with_path(&path), hasher }, href, kind, case)
    }
}

impl Write for UnnamedAsset {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The length of the summary that replaces a moved payload, in characters.
const SUMMARY_CHARS: usize = 240;

impl RunWriter {
    /// Moves every payload of more than `limit` bytes, as compact JSON, to `assets/full_payload_<side>_<case>_e<event>.json`, and
    /// the snippets of retrievals to `assets/retrieval_snippets_<side>_<case>_e<event>.json`.
    pub fn move_large_payloads(&self, case: &mut Case, limit: usize) -> Result<(), WriteError> {
        let (case_id, side) = (case.case_id.clone(), case.version);
        let Outcome::Ok(answer) = &mut case.outcome else { return Ok(()) };
        for (index, event) in answer.events.iter_mut().enumerate() {
            match &mut event.body {
                EventBody::ToolResult(result) => {
                    let large = result.payload_summary.as_ref().and_then(|payload| large_payload(payload, limit));
                    let Some(large) = large else { continue };
                    let name = format!("full_payload_{side}_{case_id}_e{index}.json");
                    let item =
                        self.write_asset(&name, AssetKind::FullPayload, Some(&case_id), large.json.as_bytes())?;
                    result.payload_summary = Some(Content::Text(large.summary));
                    result.payload_asset_href = Some(item.href);
                    result.payload_asset_sha256 = item.sha256;
                }
                // A link of the agent stays: it names other snippets.
                EventBody::Retrieval(found) if found.snippets_asset_href.is_none() => {
                    let large = found.extra.get(SNIPPETS).filter(|snippets| snippets.to_string().len() > limit);
                    let Some(json) = large.map(|snippets| format!("{snippets:#}\n")) else { continue };
                    let name = format!("retrieval_snippets_{side}_{case_id}_e{index}.json");
                    let item =
                        self.write_asset(&name, AssetKind::RetrievalSnippets, Some(&case_id), json.as_bytes())?;
                    // Without a summary: the ids of the documents state what was found.
                    found.extra.remove(SNIPPETS);
                    found.snippets_asset_href = Some(item.href);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The field of a retrieval with what was read of each document.
const SNIPPETS: &str = "snippets";

/// A payload that becomes an asset.
struct LargePayload {
    /// The content of the asset.
    json: String,
    /// What replaces the payload.
    summary: String,
}

/// Returns the asset of a payload above the limit.
fn large_payload(payload: &Content, limit: usize) -> Option<LargePayload> {
    let json = match payload {
        Content::Text(text) => serde_json::Value::from(text.as_str()),
        Content::Json(object) => serde_json::Value::Object(object.clone()),
    };
    // The limit applies to the compact form, so the indentation of the asset does not decide.
    let compact = json.to_string();
    if compact.len() <= limit {
        return None;
    }
    let text = if let Content::Text(text) = payload { text } else { &compact };
    let summary = text.chars().take(SUMMARY_CHARS).chain(['…']).collect();
    Some(LargePayload { json: format!("{json:#}\n"), summary })
}

/// A run folder under construction, next to its final place. Dropping it before [`StagedRun::publish`] removes it.
#[derive(Debug)]
pub struct StagedRun {
    /// Declared before the folder: fields drop in order, and the folder is removed after its lock is released.
    writer: RunWriter,
    staged: StagedFolder,
}

impl StagedRun {
    /// Starts `<out>/<side>/<run_id>/`, which must not exist.
    pub fn create(out: &Utf8Path, side: Side, run_id: &RunId) -> Result<Self, CreateError> {
        Self::create_at(&out.join(side.as_str()).join(run_id.as_str()), side, "export")
    }

    /// Starts a run folder at a path that must not exist. `purpose` becomes a part of the temporary name.
    pub fn create_at(target: &Utf8Path, side: Side, purpose: &str) -> Result<Self, CreateError> {
        // Checked again when the folder is published; this check avoids writing a run that cannot be used.
        if exists(target) {
            return Err(CreateError::Exists(target.to_owned()));
        }
        write::create_folder(write::parent_of(target))?;
        let staged = StagedFolder::new(target, purpose)?;
        let writer = RunWriter::lock(staged.path().to_owned(), side)?;
        Ok(Self { writer, staged })
    }

    /// The writer of the folder.
    pub const fn writer(&self) -> &RunWriter {
        &self.writer
    }

    /// Gives the folder its name, unless another process has taken it in the meantime. Returns the folder.
    pub fn publish(self) -> Result<Utf8PathBuf, CreateError> {
        let Self { writer, staged } = self;
        // Releases the lock before the folder is renamed.
        drop(writer);
        let target = staged.target().to_owned();
        match staged.place() {
            Ok(()) => Ok(target),
            // An error after the rename also leaves a folder with the final name. Only if the temporary folder still exists
            // does the final one belong to another process.
            Err(_) if exists(&target) && exists(staged.path()) => Err(CreateError::Exists(target)),
            Err(error) => Err(error.into()),
        }
    }
}

fn exists(folder: &Utf8Path) -> bool {
    fs::symlink_metadata(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Durability;

    #[test]
    fn a_run_folder_that_appeared_meanwhile_is_an_error_and_stays_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        for name in ["theirs", "file"] {
            let folder = root.join("new").join(name);
            let staged = StagedRun::create(root, Side::New, &name.parse().unwrap()).unwrap();
            match name {
                "file" => write::write(&folder, b"other", Durability::Cached).unwrap(),
                _ => write::create_folder(&folder.join("assets")).unwrap(),
            }
            let published = staged.publish();
            assert!(matches!(&published, Err(CreateError::Exists(path)) if *path == folder), "{published:?}");
        }
        assert!(root.join("new/theirs/assets").is_dir() && root.join("new/file").is_file());
        let staged = StagedRun::create(root, Side::New, &"gone".parse().unwrap()).unwrap();
        fs::remove_dir_all(staged.writer().folder()).unwrap();
        let missing = staged.publish();
        assert!(matches!(missing, Err(CreateError::Write(_))), "{missing:?}");
    }
}
