//! A session in one file, to go on with on another machine: its records, and the objects of its checkpoints.

use std::collections::BTreeSet;
use std::io::{self, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::open_or_create;
use counterproof_ledger::store::StoreError;
use counterproof_sessions::event::{EventBody, SessionEvent};
use counterproof_sessions::store::{Archive, ArchiveError, EventFilter, SessionStore};
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability, WriteError};
use counterproof_workspace::{RepositoryId, Snapshot, WorkspaceError};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::begin::{BeginError, Home};
use super::machine::Control;
use super::resume::Found;
use super::state::{ForgeKind, RunState};
use crate::suite::Commands;
use crate::tools::SandboxChoice;

/// The name and the version of the format.
const FORMAT: &str = "counterproof-session.v1";

const MANIFEST: &str = "manifest.json";
const SESSION: &str = "session.json";
const OBJECTS: &str = "objects.bundle";

/// Largest manifest, records of a session, and objects, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
const MAX_SESSION: u64 = 4 << 30;
const MAX_OBJECTS: u64 = 64 << 30;

/// Checked before anything is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: String,
    session_id: String,
    checkpoint_id: String,
    repository: RepositoryId,
}

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error(transparent)]
    Begin(#[from] BeginError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`{0}` already exists")]
    Exists(Utf8PathBuf),
    #[error("cannot read or write `{path}`")]
    File { path: Utf8PathBuf, source: io::Error },
    #[error("`{path}` is not a bundle of a session: {reason}")]
    Format { path: Utf8PathBuf, reason: String },
}

/// Writes the session of a checkpoint up to it. Returns the id of the checkpoint.
pub fn bundle(
    home: &Home,
    store: &mut SessionStore,
    id: &str,
    out: &Utf8Path,
    control: &Control<'_>,
) -> Result<String, BundleError> {
    let file_error = |source| BundleError::File { path: out.to_owned(), source };
    let found = Found::read(store, id)?;
    let commits = commits(store, &found)?;
    let folder = TempDir::new().map_err(file_error)?;
    let objects = temporary(&folder, OBJECTS).map_err(file_error)?;
    home.store(control).open(&found.state.base.repository)?.bundle(&commits, &objects)?;
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        session_id: found.session_id.clone(),
        checkpoint_id: found.checkpoint_id.clone(),
        repository: found.state.base.repository,
    };
    let manifest = serde_json::to_vec(&manifest).map_err(ArchiveError::from)?;
    let session = store.archive(&found.session_id, found.seq)?;
    let mut file = AtomicFile::create(out)?;
    let mut archive = tar::Builder::new(&mut file);
    let append = |archive: &mut tar::Builder<_>, name: &str, size: u64, content: &mut dyn io::Read| {
        let mut header = tar::Header::new_ustar();
        header.set_size(size);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, content).map_err(file_error)
    };
    append(&mut archive, MANIFEST, manifest.len() as u64, &mut manifest.as_slice())?;
    append(&mut archive, SESSION, session.len() as u64, &mut session.as_slice())?;
    let (mut objects, size) = read_file::open(&objects).map_err(file_error)?;
    append(&mut archive, OBJECTS, size, &mut objects)?;
    archive.into_inner().map_err(file_error)?;
    // Not replaced: it may be the only copy of another session.
    let written = file.commit_new([out.to_owned()], Durability::Synced)?;
    written.map(|_| found.checkpoint_id).ok_or_else(|| BundleError::Exists(out.to_owned()))
}

/// A bundle that was read, and is not in a ledger yet.
pub struct ReadBundle {
    path: Utf8PathBuf,
    manifest: Manifest,
    session: Archive,
    /// With the file of the objects.
    folder: TempDir,
    state: RunState,
}

/// Reads a bundle.
pub fn read_bundle(path: &Utf8Path) -> Result<ReadBundle, BundleError> {
    let file_error = |source| BundleError::File { path: path.to_owned(), source };
    let invalid = |reason: &str| BundleError::Format { path: path.to_owned(), reason: reason.to_owned() };
    let folder = TempDir::new().map_err(file_error)?;
    let objects = temporary(&folder, OBJECTS).map_err(file_error)?;
    let (mut manifest, mut session, mut has_objects) = (None, None, false);
    let mut archive = tar::Archive::new(read_file::open(path).map_err(file_error)?.0);
    let unreadable = |error: io::Error| invalid(&error.to_string());
    // Raw: no entry changes the name or the size of another one.
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        let name = entry.path().map_err(unreadable)?.to_string_lossy().into_owned();
        let limit = match name.as_str() {
            MANIFEST => MAX_MANIFEST,
            SESSION => MAX_SESSION,
            OBJECTS => MAX_OBJECTS,
            _ => return Err(invalid("it has an unknown entry")),
        };
        if !entry.header().entry_type().is_file() {
            return Err(invalid("an entry is not a file"));
        }
        if entry.size() > limit {
            return Err(invalid("an entry is too large"));
        }
        if name == OBJECTS {
            let mut file = AtomicFile::create(&objects)?;
            io::copy(&mut entry, &mut file).map_err(unreadable)?;
            file.commit(Durability::Cached)?;
            has_objects = true;
            continue;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(unreadable)?;
        if name == MANIFEST { manifest = Some(bytes) } else { session = Some(bytes) }
    }
    let (Some(manifest), Some(session), true) = (manifest, session, has_objects) else {
        return Err(invalid("an entry is missing"));
    };
    let manifest: Manifest = serde_json::from_slice(&manifest).map_err(|error| invalid(&error.to_string()))?;
    if manifest.format != FORMAT {
        return Err(invalid(&format!("its format is `{}`", manifest.format)));
    }
    let session = Archive::parse(&session)?;
    if session.session_id() != manifest.session_id || !session.has_checkpoint(&manifest.checkpoint_id) {
        return Err(invalid("its records are not those of its checkpoint"));
    }
    // As the ledger will have it: what is checked here is what runs.
    let ledger = temporary(&folder, "ledger.db").map_err(file_error)?;
    let mut store = SessionStore::new(open_or_create(&LedgerLocation::SqliteFile(ledger))?)?;
    store.add_archive(&session)?;
    let state = Found::read(&mut store, &manifest.checkpoint_id)?.state;
    Ok(ReadBundle { path: path.to_owned(), manifest, session, folder, state })
}

impl ReadBundle {
    /// Returns what the run of this bundle does outside of the sandbox: each line with a word for it.
    pub fn commands(&self) -> Vec<(&'static str, String)> {
        let RunState { settings, commands, base, .. } = &self.state;
        let of_commands = |of: fn(&Commands) -> &Option<String>| commands.as_ref().and_then(|it| of(it).clone());
        let github = settings.forge == ForgeKind::Github;
        let origin = base.origin.as_ref().unwrap_or(&settings.source);
        let lines = [
            ("test", of_commands(|it| &it.test)),
            ("test by name", of_commands(|it| &it.test_by_name)),
            ("suite", of_commands(|it| &it.suite)),
            ("lint", of_commands(|it| &it.lint)),
            ("CI", settings.ci_command.clone()),
            ("agent", settings.agent_command.clone()),
            ("contract", settings.contract.as_ref().map(|contract| contract.id.to_string())),
            ("push with the GitHub token", github.then(|| origin.clone())),
        ];
        lines.into_iter().filter_map(|(word, line)| Some((word, line?))).collect()
    }

    /// The sandbox of the agent's commands.
    pub const fn sandbox(&self) -> SandboxChoice {
        self.state.settings.sandbox
    }

    /// Adds the session to a ledger, and its objects to the store. Returns the id of its checkpoint.
    pub fn add(self, home: &Home, store: &mut SessionStore, control: &Control<'_>) -> Result<String, BundleError> {
        let Self { path, manifest, session, folder, .. } = self;
        if store.find(&manifest.session_id)?.is_some() {
            return Err(ArchiveError::Exists(manifest.session_id).into());
        }
        let objects = temporary(&folder, OBJECTS).map_err(|source| BundleError::File { path, source })?;
        // The objects first: a session without them could not be resumed.
        home.store(control).unbundle(&manifest.repository, &objects)?;
        store.add_archive(&session)?;
        Ok(manifest.checkpoint_id)
    }
}

fn temporary(folder: &TempDir, name: &str) -> io::Result<Utf8PathBuf> {
    let path = folder.path().join(name);
    Utf8PathBuf::from_path_buf(path).map_err(|_| io::Error::other("the folder for temporary files is not UTF-8"))
}

/// Returns all commits that the checkpoints of a session need, up to one of them.
fn commits(store: &mut SessionStore, found: &Found) -> Result<Vec<String>, StoreError> {
    let mut commits = BTreeSet::from([found.state.base.commit.clone()]);
    let filter = EventFilter { types: vec!["checkpoint".to_owned()], ..EventFilter::default() };
    store.for_each(&found.session_id, &filter, 0, None, |seq, event| {
        let event = event.filter(|_| seq <= found.seq);
        let event = event.and_then(|event| serde_json::from_value::<SessionEvent>(event).ok());
        if let Some(EventBody::Checkpoint(checkpoint)) = event.map(|event| event.body) {
            let snapshot = serde_json::from_value::<Snapshot>(checkpoint.state.workspace);
            commits.extend(snapshot.ok().map(|snapshot| snapshot.commit));
            let state = serde_json::from_value::<RunState>(checkpoint.state.tool_state);
            commits.extend(state.into_iter().flat_map(|state| state.publication.commits));
        }
        Ok::<_, StoreError>(())
    })?;
    Ok(commits.into_iter().collect())
}
