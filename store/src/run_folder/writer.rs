//! A run folder: opened for reading, created for writing. What the documents in it mean is not judged here.
//!
//! ```text
//! runs/<side>/<runId>/run.json  <caseId>.json  assets/manifest.json  assets/…
//! ```

use std::io::{self, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::run_folder::journal::LARGEST;
use crate::write::{self, Durability, SharedFolder, WriteError};
use counterproof_artifact::canonical::Sha256Digest;
use counterproof_artifact::{AssetKind, Case, CaseId, Href, Manifest, ManifestItem, ManifestSchema, Run, RunId, Side};

mod commit;
pub(crate) mod journal;
mod lock;
mod reader;
mod reopen;
mod restore;
mod spool;

use commit::{Committer, Rank};

pub use commit::Done;
pub use journal::{JOURNAL_FILE, Record as JournalRecord};
pub use lock::{LOCK_FILE, LockError, RunLock};
pub use reader::{Latest, ReadError, RunReader, read_evaluation};
pub use reopen::ReopenError;
pub use restore::unrestored;
pub use spool::Spool;

use spool::HashedFile;

/// The run document, within a run folder.
pub const RUN_FILE: &str = "run.json";
/// The evaluator's document, within a run folder and within a report.
pub const EVALUATION_FILE: &str = "evaluation.json";
/// The folder of the assets, within a run folder.
pub const ASSETS_FOLDER: &str = "assets";
/// The assets' manifest, within a run folder.
pub const MANIFEST_FILE: &str = "assets/manifest.json";

/// Extensions that no browser runs when somebody opens the file from disk.
pub const SAFE_EXTENSIONS: [&str; 3] = ["json", "txt", "bin"];

/// Why a run folder could not be started.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Another run has this name.
    #[error("the run folder `{0}` is there already")]
    Exists(Utf8PathBuf),
    /// The folder could not be made.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder could not be kept for this process alone.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// What the manifest will list: assets that have their names.
type Items = Arc<Mutex<Vec<ManifestItem>>>;

/// A run folder under construction, kept from all other processes. It can be shared between threads.
#[derive(Debug)]
pub struct RunWriter {
    folder: Utf8PathBuf,
    side: Side,
    items: Items,
    /// Set once the folder of assets is there.
    assets_made: OnceLock<()>,
    /// It ends before the lock does.
    committer: Option<Committer>,
    _lock: RunLock,
    /// The entries of the folder itself, and of the folder of assets.
    cases: SharedFolder,
    assets: SharedFolder,
}

impl RunWriter {
    /// Makes `<out>/<side>/<run_id>/`, which must not be there yet.
    pub fn create(out: &Utf8Path, side: Side, run_id: &RunId) -> Result<Self, CreateError> {
        let parent = out.join(side.as_str());
        write::create_folder(&parent)?;
        Self::create_at(parent.join(run_id.as_str()), side)
    }

    fn locked(folder: Utf8PathBuf, side: Side, lock: RunLock) -> Self {
        let (cases, assets) = (SharedFolder::default(), SharedFolder::default());
        Self {
            folder,
            side,
            items: Items::default(),
            assets_made: OnceLock::new(),
            committer: None,
            _lock: lock,
            cases,
            assets,
        }
    }

    /// Makes a run folder by its path, which must not be there yet; the folder above it is.
    pub fn create_at(folder: Utf8PathBuf, side: Side) -> Result<Self, CreateError> {
        match write::create_new_folder(&folder) {
            Ok(()) => {
                let lock = RunLock::take(&folder)?;
                Ok(Self::locked(folder, side, lock))
            }
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Err(CreateError::Exists(folder)),
            Err(error) => Err(error.into()),
        }
    }

    /// The same folder, but small files go through a journal, which is synced for many at once. [`RunWriter::finish`] ends it.
    pub fn with_journal(mut self) -> Result<Self, WriteError> {
        self.committer = Some(Committer::start(&self.folder, commit::MAX_JOURNAL)?);
        Ok(self)
    }

    /// The folder.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The side that the run stands for.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Writes `run.json`, again when the run has ended.
    pub fn write_run(&self, run: &Run) -> Result<(), WriteError> {
        write::write_json(&self.folder.join(RUN_FILE), run, Durability::Synced)
    }

    /// Writes an artifact: when this returns, the case is complete, whatever happens next.
    pub fn write_case(&self, case: &Case) -> Result<(), WriteError> {
        let path = self.case_path(case);
        if self.committer.is_none() {
            return write::write_json_shared(&path, case, &self.cases);
        }
        let (done, told) = channel();
        // Nobody listens any more only where the thread that asked is gone.
        self.submit_case(case, Box::new(move |written| drop(done.send(written))))?;
        told.recv().unwrap_or_else(|error| Err(WriteError { path, source: io::Error::other(error) }))
    }

    /// Hands an artifact over to be written, and returns as soon as there is room for it. The case is complete when `done`
    /// is called with `Ok`; assets that were written before are then on disk too.
    pub fn submit_case(&self, case: &Case, done: Done) -> Result<(), WriteError> {
        let Some(committer) = &self.committer else {
            done(self.write_case(case));
            return Ok(());
        };
        let failed = |source: serde_json::Error| WriteError { path: self.case_path(case), source: source.into() };
        let mut bytes = serde_json::to_vec_pretty(case).map_err(failed)?;
        bytes.push(b'\n');
        committer.push(format!("{}.json", case.case_id), bytes, Rank::Artifact, done)
    }

    fn case_path(&self, case: &Case) -> Utf8PathBuf {
        self.folder.join(format!("{}.json", case.case_id))
    }

    /// Ends the journal, where there is one: waits until all that was handed over has its name and is synced. Says how long
    /// the disk was waited for, all in all.
    pub fn finish(&self) -> Result<Duration, WriteError> {
        self.committer.as_ref().map_or(Ok(Duration::ZERO), Committer::finish)
    }

    /// Starts an asset with a plain file name, such as `refund_001.attempt2.body.bin`.
    pub fn asset(&self, name: &str, kind: AssetKind, case: Option<&CaseId>) -> Result<AssetWriter<'_>, WriteError> {
        let (path, href) = self.asset_place(name)?;
        self.make_assets_folder()?;
        Ok(AssetWriter { run: self, href, kind, case: case.cloned(), file: HashedFile::create(&path)? })
    }

    /// There is none before the first asset.
    pub(crate) fn make_assets_folder(&self) -> Result<(), WriteError> {
        if self.assets_made.get().is_none() {
            write::create_folder(&self.folder.join(ASSETS_FOLDER))?;
            let _ = self.assets_made.set(());
        }
        Ok(())
    }

    /// Where an asset with a plain file name stands.
    pub(crate) fn asset_place(&self, name: &str) -> Result<(Utf8PathBuf, Href), WriteError> {
        let path = self.folder.join(ASSETS_FOLDER).join(name);
        let refuse = |reason: String| WriteError { path: path.clone(), source: io::Error::other(reason) };
        let href: Href = format!("{ASSETS_FOLDER}/{name}").parse().map_err(|error| refuse(format!("{error}")))?;
        if name.contains('/') || !path.extension().is_some_and(|extension| SAFE_EXTENSIONS.contains(&extension)) {
            return Err(refuse(format!("`{name}` is not a plain name with one of the extensions {SAFE_EXTENSIONS:?}")));
        }
        Ok((path, href))
    }

    /// Gives an asset its name on disk and enters it into the manifest.
    pub(crate) fn enter(
        &self,
        file: HashedFile,
        href: Href,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        file.file.commit_shared(&self.assets)?;
        let item = self.item(href, file.hasher.finish(), kind, case);
        self.items.lock().unwrap_or_else(PoisonError::into_inner).push(item.clone());
        Ok(item)
    }

    /// What the manifest says of an asset.
    fn item(
        &self,
        href: Href,
        (digest, size): (Sha256Digest, u64),
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> ManifestItem {
        ManifestItem {
            asset_id: href.as_str().rsplit('/').next().unwrap_or_default().to_owned(),
            href,
            kind,
            case_id: case.cloned(),
            side: case.map(|_| self.side),
            size_bytes: size.into(),
            sha256: Some(digest),
            extra: counterproof_artifact::Extra::new(),
        }
    }

    /// Writes an asset whole. Where there is a journal, it is on disk no later than the artifact that comes next.
    pub fn write_asset(
        &self,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
        bytes: &[u8],
    ) -> Result<ManifestItem, WriteError> {
        if let Some(committer) = self.committer.as_ref().filter(|_| bytes.len() <= LARGEST) {
            let (_, href) = self.asset_place(name)?;
            self.make_assets_folder()?;
            let item = self.item(href, (Sha256Digest::of(bytes), bytes.len() as u64), kind, case);
            let (items, listed) = (self.items.clone(), item.clone());
            let done = move |written: Result<(), WriteError>| {
                // A failure is told with the artifact that comes next.
                if written.is_ok() {
                    items.lock().unwrap_or_else(PoisonError::into_inner).push(listed);
                }
            };
            committer.push(item.href.as_str().to_owned(), bytes.to_vec(), Rank::Asset, Box::new(done))?;
            return Ok(item);
        }
        let mut asset = self.asset(name, kind, case)?;
        asset.write_all(bytes).map_err(|source| WriteError { path: self.folder.join(asset.href.as_str()), source })?;
        asset.finish()
    }

    /// Writes `assets/manifest.json`, if there are assets.
    pub fn write_manifest(&self, generated_at: &str) -> Result<(), WriteError> {
        let mut listed = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.is_empty() {
            return Ok(());
        }
        // Lent to the document and taken back, since there can be many.
        let mut items = std::mem::take(&mut *listed);
        items.sort_unstable_by(|a, b| a.href.cmp(&b.href));
        let manifest = Manifest {
            schema_version: ManifestSchema::V1,
            generated_at: generated_at.to_owned(),
            items,
            extra: counterproof_artifact::Extra::new(),
        };
        let written = write::write_json(&self.folder.join(MANIFEST_FILE), &manifest, Durability::Synced);
        *listed = manifest.items;
        written
    }
}

/// An asset under construction: hashed and counted on its way to the disk, gone when dropped before [`AssetWriter::finish`].
#[derive(Debug)]
pub struct AssetWriter<'run> {
    run: &'run RunWriter,
    href: Href,
    kind: AssetKind,
    case: Option<CaseId>,
    file: HashedFile,
}

impl AssetWriter<'_> {
    /// Gives the asset its name and enters it into the manifest.
    pub fn finish(self) -> Result<ManifestItem, WriteError> {
        self.run.enter(self.file, self.href, self.kind, self.case.as_ref())
    }
}

impl Write for AssetWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
