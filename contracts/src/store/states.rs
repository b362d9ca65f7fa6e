//! The state of every contract, replayed from the lines of a store. The file alone is the truth: the states are kept in memory
//! while a store is open, and follow what this and other processes append.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::num::NonZeroU32;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::time::SystemTime;

use camino::Utf8PathBuf;
use counterproof_store::line_log::{Line, LineLog, LineReader, LogError};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::Error as _;

use super::{Contradiction, History, NoteKind, Record, RecordError, StoreError};
use crate::contract::{Contract, ContractId, creation_time};
use crate::lifecycle::{State, StateChange};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    /// The time of the last transition. `None` if there was none.
    pub since: Option<Timestamp>,
    pub owner: Option<String>,
    /// True if the check passed and a person must approve the work.
    pub awaits_approval: bool,
    /// True if the work could not be undone and a person must decide.
    pub rollback_refused: bool,
    /// The project, or the first segment of the id.
    pub project: String,
    /// The summary for people, or the id.
    pub summary: String,
    pub dependencies: Vec<ContractId>,
    /// The time of creation of the latest version. `None` if the contract has another text there.
    pub created_at: Option<Timestamp>,
}

impl Status {
    /// Returns the time since which the contract is in its state: of the last transition, or of its creation.
    pub fn in_state_since(&self) -> Option<Timestamp> {
        self.since.or(self.created_at)
    }
}

#[derive(Debug, Default)]
pub(super) struct States {
    path: Utf8PathBuf,
    contracts: HashMap<ContractId, Lines>,
    /// The contracts whose latest version depends on a contract.
    dependents: HashMap<ContractId, BTreeSet<ContractId>>,
    /// The file that was read. It stays open, so that its lines are found where they were after a compaction replaced it.
    reader: Option<LineReader>,
    stamp: Option<FileStamp>,
    last: Option<Line>,
    count: u64,
}

#[derive(Debug)]
struct Lines {
    status: Status,
    all: Vec<Position>,
    /// The index in `all` of the latest version.
    latest: usize,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    offset: u64,
    bytes: usize,
    /// Counted from 1.
    number: u64,
}

/// What distinguishes a file from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn new(metadata: &Metadata) -> Self {
        let (device, inode, bytes) = (metadata.dev(), metadata.ino(), metadata.len());
        Self { device, inode, bytes, modified: metadata.modified().ok() }
    }
}

impl States {
    /// Replays the lines that were added since the last call; all of them if the file was changed in another way.
    pub(super) fn catch_up(&mut self, log: &LineLog) -> Result<(), StoreError> {
        let now = std::fs::metadata(log.path()).ok().map(|metadata| FileStamp::new(&metadata));
        // The usual case in a run of many contracts: nothing was added since the last look.
        if now.is_some() && now == self.stamp {
            return Ok(());
        }
        let replayed = self.replay(log);
        if replayed.is_err() {
            // A part of a damaged file is not a store.
            *self = Self::default();
        }
        replayed
    }

    fn replay(&mut self, log: &LineLog) -> Result<(), StoreError> {
        // Without a file the store is empty: it may have been removed since the last look.
        let Some(mut reader) = log.read_from(0)? else {
            *self = Self::default();
            return Ok(());
        };
        let metadata = reader.file().metadata();
        // Taken before the lines are read: what is appended meanwhile makes the next call read on.
        let stamp = FileStamp::new(&metadata.map_err(|source| LogError::Read { path: log.path().to_owned(), source })?);
        if !self.is_continued_by(&stamp, &mut reader)? {
            // The comparison above has moved the reader.
            reader = log.read_from(0)?.unwrap_or(reader);
            *self = Self { path: log.path().to_owned(), ..Self::default() };
        }
        while let Some(line) = reader.next_line()? {
            // Counted before the line is parsed, so that an error has its number.
            self.count += 1;
            self.add(&line)?;
            self.last = Some(line);
        }
        self.stamp = Some(stamp);
        self.reader = Some(reader);
        Ok(())
    }

    /// Returns true if the file only has more lines than before, and leaves the reader at the first of them.
    fn is_continued_by(&self, stamp: &FileStamp, reader: &mut LineReader) -> Result<bool, LogError> {
        let (Some(last), Some(before)) = (&self.last, &self.stamp) else { return Ok(false) };
        // An edit in place can keep the length, and an editor can replace the text by a longer one.
        Ok((before.device, before.inode) == (stamp.device, stamp.inode)
            && before.bytes != stamp.bytes
            && reader.line_at(last.offset)?.as_ref() == Some(last))
    }

    fn add(&mut self, line: &Line) -> Result<(), StoreError> {
        let number = self.count;
        let fields: Fields<'_> =
            serde_json::from_slice(&line.bytes).map_err(|error| self.invalid(number, error.into()))?;
        let position = Position { offset: line.offset, bytes: line.bytes.len(), number };
        let contradiction = match fields.record {
            None => self.add_version(fields, position).map_err(|error| self.invalid(number, error.into()))?,
            Some(kind) => {
                if let Some(lines) = self.contracts.get_mut(&*fields.id) {
                    lines.all.push(position);
                    let added = match kind {
                        Record::TRANSITION => lines.status.apply_transition(fields),
                        Record::NOTE => lines.status.apply_note(&fields).map(|()| None),
                        _ => Err(RecordError::UnknownKind(kind.to_owned())),
                    };
                    added.map_err(|error| self.invalid(number, error))?
                } else {
                    let id = fields.id().map_err(|error| self.invalid(number, error.into()))?;
                    Some(Contradiction::NoContract(id))
                }
            }
        };
        match contradiction {
            None => Ok(()),
            Some(reason) => Err(StoreError::Contradiction { path: self.path.clone(), line: number, reason }),
        }
    }

    fn add_version(
        &mut self,
        fields: Fields<'_>,
        position: Position,
    ) -> Result<Option<Contradiction>, serde_json::Error> {
        let id = fields.id()?;
        let dependencies = fields.dependencies.unwrap_or_default();
        let (project, summary) = fields.metadata.map_or((None, None), |it| (Some(it.project), it.human_summary));
        let status = Status {
            version: fields.version,
            state: State::Pending,
            since: None,
            owner: None,
            awaits_approval: false,
            rollback_refused: false,
            project: project.unwrap_or_else(|| id.project().to_owned()),
            summary: summary.unwrap_or_else(|| id.to_string()),
            dependencies,
            created_at: creation_time(&required(fields.created_at, "created_at")?),
            id,
        };
        let id = &status.id;
        if let Some(before) = self.contracts.get(id) {
            let (version, latest) = (status.version, before.status.version);
            if version <= latest {
                return Ok(Some(Contradiction::Version { id: id.clone(), version, latest }));
            }
            // A new version may drop a dependency.
            for dependency in &before.status.dependencies {
                if let Some(dependents) = self.dependents.get_mut(dependency) {
                    dependents.remove(id);
                }
            }
        }
        for dependency in &status.dependencies {
            self.dependents.entry(dependency.clone()).or_default().insert(id.clone());
        }
        let mut all = self.contracts.remove(id).map(|it| it.all).unwrap_or_default();
        all.push(position);
        let latest = all.len() - 1;
        self.contracts.insert(id.clone(), Lines { status, all, latest });
        Ok(None)
    }

    fn invalid(&self, line: u64, reason: RecordError) -> StoreError {
        StoreError::Line { path: self.path.clone(), line, reason }
    }

    /// Returns the length of a torn last line, which the next writer repairs; 0 if there is none.
    pub(super) fn torn_bytes(&self) -> u64 {
        self.reader.as_ref().map_or(0, LineReader::torn_bytes)
    }

    pub(super) fn get(&self, id: &ContractId) -> Option<&Status> {
        self.contracts.get(id).map(|lines| &lines.status)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Status> {
        self.contracts.values().map(|lines| &lines.status)
    }

    /// Returns the contracts that depend on this one, in the order of their ids.
    pub(super) fn dependents(&self, id: &ContractId) -> impl Iterator<Item = &Status> {
        self.dependents.get(id).into_iter().flatten().filter_map(|id| self.get(id))
    }

    pub(super) fn superseded(&self) -> BTreeSet<u64> {
        self.contracts.values().flat_map(|lines| &lines.all[..lines.latest]).map(|it| it.offset).collect()
    }

    pub(super) fn latest(&self, id: &ContractId) -> Result<Option<Contract>, StoreError> {
        // Read again in full: the states keep only what lists need, so that they fit into memory.
        let Some(lines) = self.contracts.get(id) else { return Ok(None) };
        match self.record(lines.all[lines.latest])? {
            Record::Contract(contract) => Ok(Some(*contract)),
            Record::Transition(_) | Record::Note(_) => Ok(None),
        }
    }

    pub(super) fn history(&self, id: &ContractId) -> Result<Option<History>, StoreError> {
        let Some(lines) = self.contracts.get(id) else { return Ok(None) };
        let mut history = History::default();
        for &position in &lines.all {
            history.push(self.record(position)?);
        }
        Ok(Some(history))
    }

    fn record(&self, position: Position) -> Result<Record, StoreError> {
        let mut line = vec![0; position.bytes];
        // From the open file, not from the path: a compaction may have replaced the file, and the offsets are of this
        // one.
        if let Some(reader) = &self.reader {
            let read = reader.file().read_exact_at(&mut line, position.offset);
            read.map_err(|source| LogError::Read { path: self.path.clone(), source })?;
        }
        Record::parse(&line).map_err(|reason| self.invalid(position.number, reason))
    }
}

/// The fields of a line that states and lists need. The parser checks the syntax of the others and skips them, which is what
/// makes a pass over the whole file fast.
#[derive(Deserialize)]
struct Fields<'a> {
    record: Option<&'a str>,
    #[serde(borrow)]
    id: std::borrow::Cow<'a, str>,
    version: NonZeroU32,
    created_at: Option<String>,
    dependencies: Option<Vec<ContractId>>,
    metadata: Option<MetadataFields>,
    from: Option<State>,
    to: Option<State>,
    at: Option<Timestamp>,
    owner: Option<String>,
    kind: Option<NoteKind>,
}

#[derive(Deserialize)]
struct MetadataFields {
    project: String,
    human_summary: Option<String>,
}

fn required<T>(field: Option<T>, name: &'static str) -> Result<T, serde_json::Error> {
    field.ok_or_else(|| serde_json::Error::missing_field(name))
}

impl Fields<'_> {
    fn id(&self) -> Result<ContractId, serde_json::Error> {
        self.id.parse().map_err(serde_json::Error::custom)
    }
}

impl Status {
    /// Changes the state as a line says, or returns how the line contradicts the earlier ones.
    fn apply_transition(&mut self, fields: Fields<'_>) -> Result<Option<Contradiction>, RecordError> {
        let (from, to) = (required(fields.from, "from")?, required(fields.to, "to")?);
        let at = required(fields.at, "at")?;
        let id = || self.id.clone();
        if fields.version != self.version {
            return Ok(Some(Contradiction::OtherVersion { id: id(), version: fields.version, latest: self.version }));
        }
        if from != self.state {
            return Ok(Some(Contradiction::OtherState { id: id(), from, state: self.state }));
        }
        if !StateChange::targets(from).any(|target| target == to) {
            return Ok(Some(Contradiction::InvalidTransition { id: id(), from, to }));
        }
        (self.state, self.since) = (to, Some(at));
        if matches!(to, State::Claimed | State::Ready) {
            self.owner = fields.owner;
        }
        // Any transition is a decision about what the notes asked for.
        (self.awaits_approval, self.rollback_refused) = (false, false);
        Ok(None)
    }

    fn apply_note(&mut self, fields: &Fields<'_>) -> Result<(), RecordError> {
        let kind = required(fields.kind, "kind")?;
        // A note about a superseded version does not change the state of the latest one.
        if fields.version == self.version {
            match kind {
                NoteKind::ApprovalRequested => self.awaits_approval = true,
                NoteKind::NotRolledBack => self.rollback_refused = true,
            }
        }
        Ok(())
    }
}
