//! A forge in a folder: a bare repository, and a JSON record for each pull request. CI is a command in a clean clone.
//!
//! ```text
//! repository.git/     branches, and refs/pull/N/head
//! pulls/N.json        the records; the URL of a pull request is that of its record
//! logs/N-COMMIT.log   the whole log of each run of CI
//! ```

use std::io::{self, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::process::Cancellation;
use counterproof_safe_run::LogView;
use counterproof_store::FileLock;
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability, create_folder, write_json};
use counterproof_workspace::git::{Git, GitOptions};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::push::Remote;
use super::{CiResult, CiStatus, CiWanted, Forge, ForgeError, NewPullRequest, PullRequest, Push};
use crate::suite::{Finished, Shell, new_failures};

/// Maximum size of a record.
const MAX_RECORD_BYTES: u64 = 16 << 20;
/// How long another process may hold the lock of the records. It holds it for the time of a few file operations.
const LOCK_WITHIN: Duration = Duration::from_mins(1);
/// Start of the names of the folders with clones for CI, and the file in them that is locked while CI runs.
const CLONES: &str = "ci-";
const USED: &str = "used";
const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// The forge of one repository.
#[derive(Debug, Clone)]
pub struct LocalForge {
    /// An absolute path. It is created on the first push.
    pub folder: Utf8PathBuf,
    /// The command line of CI; without it, no checks run.
    pub ci_line: Option<String>,
    /// How CI runs. Its time limit applies where `ci` gets none.
    pub shell: Shell,
    pub git: GitOptions,
}

/// A pull request. Readers depend on exactly these keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    number: u64,
    title: String,
    body: String,
    /// The path of the bare repository.
    repository: Utf8PathBuf,
    base: String,
    head: String,
    base_commit: String,
    head_commit: String,
    ci: Vec<CiRun>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CiRun {
    commit: String,
    status: CiStatus,
    log: Utf8PathBuf,
}

impl LocalForge {
    fn repository(&self) -> Utf8PathBuf {
        self.folder.join("repository.git")
    }

    fn record_path(&self, number: u64) -> Utf8PathBuf {
        self.folder.join(format!("pulls/{number}.json"))
    }

    fn pull_request(&self, record: &Record) -> PullRequest {
        let path = self.record_path(record.number);
        let url = format!("file://{}", utf8_percent_encode(path.as_str(), PATH));
        PullRequest { number: record.number, url, head: record.head.clone() }
    }

    fn git(&self, folder: &Utf8Path, arguments: &[&str]) -> Git {
        Git::new(&self.git, folder, arguments).without_user_settings().with("GIT_ALLOW_PROTOCOL", "file")
    }

    /// Creates the folders and the repository, or what is missing of them because a process was killed. Returns the lock.
    fn create(&self) -> Result<FileLock, ForgeError> {
        for name in ["pulls", "logs"] {
            create_folder(&self.folder.join(name))?;
        }
        let lock = self.lock()?;
        let path = self.repository();
        // Only this command creates them, under the lock.
        for left in ["config.lock", "HEAD.lock"] {
            let _ = std::fs::remove_file(path.join(left));
        }
        self.git(&self.folder, &["init", "--quiet", "--bare", "--template=", path.as_str()]).output()?;
        Ok(lock)
    }

    fn lock(&self) -> Result<FileLock, ForgeError> {
        let path = self.folder.join("pulls/.lock");
        let held = || io::Error::new(io::ErrorKind::ResourceBusy, "another process holds it");
        let lock = FileLock::lock_within(&path, LOCK_WITHIN).and_then(|lock| lock.ok_or_else(held));
        lock.map_err(|source| ForgeError::Record { path, source })
    }

    fn read(&self, number: u64) -> Result<Record, ForgeError> {
        let path = self.record_path(number);
        let record = read_file::read(&path, MAX_RECORD_BYTES)
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from));
        record.map_err(|source| ForgeError::Record { path, source })
    }

    /// Returns the numbers of all pull requests, in order.
    fn numbers(&self) -> Result<Vec<u64>, ForgeError> {
        let path = self.folder.join("pulls");
        let entries = match path.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| ForgeError::Record { path, source })?,
        };
        let name = |entry: camino::Utf8DirEntry| entry.file_name().strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = entries.flatten().filter_map(name).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn find_record(&self, branch: &str) -> Result<Option<Record>, ForgeError> {
        for number in self.numbers()?.into_iter().rev() {
            let record = self.read(number)?;
            if record.head == branch {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Record)) -> Result<(), ForgeError> {
        let _lock = self.lock()?;
        let mut record = self.read(number)?;
        change(&mut record);
        Ok(write_json(&self.record_path(number), &record, Durability::Synced)?)
    }

    /// Creates the folder of a clone, with the lock that shows that it is used, and removes those of killed processes.
    fn clone_folder(&self) -> Result<(TempDir, Option<FileLock>), ForgeError> {
        let failed = |source| ForgeError::Record { path: self.folder.clone(), source };
        let _lock = self.lock()?;
        for entry in self.folder.read_dir_utf8().map_err(failed)?.flatten() {
            let is_clone = entry.file_name().starts_with(CLONES) && entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_clone && let Ok(Some(_left)) = FileLock::try_lock(&entry.path().join(USED)) {
                // What cannot be removed only takes space.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let folder = tempfile::Builder::new().prefix(CLONES).tempdir_in(&self.folder).map_err(failed)?;
        let path = Utf8Path::from_path(folder.path()).unwrap_or(&self.folder).join(USED);
        let used = FileLock::try_lock(&path).map_err(failed)?;
        Ok((folder, used))
    }

    fn run(&self, line: &str, commit: &str, shell: &Shell) -> Result<Finished, ForgeError> {
        let (folder, _used) = self.clone_folder()?;
        let root = Utf8Path::from_path(folder.path()).unwrap_or(&self.folder).join("clone");
        let repository = self.repository();
        let clone =
            ["clone", "--quiet", "--shared", "--no-checkout", "--template=", repository.as_str(), root.as_str()];
        let cancel = &shell.cancellation;
        self.git(&self.folder, &clone).cancelled_by(cancel).output()?;
        self.git(&root, &["checkout", "--quiet", "--detach", commit]).cancelled_by(cancel).output()?;
        Ok(shell.run(line, &root)?)
    }

    /// Stores the log of a run under a name that is not used yet.
    fn store_log(&self, number: u64, commit: &str, run: &Finished, end: &str) -> Result<Utf8PathBuf, ForgeError> {
        let short = commit.get(..12).unwrap_or(commit);
        let path = |run: u32| {
            let run = if run > 1 { format!("-{run}") } else { String::new() };
            self.folder.join(format!("logs/{number}-{short}{run}.log"))
        };
        let mut file = AtomicFile::create(&path(1))?;
        let written = run.command.record().write_log(LogView::Merged, &mut file);
        let written = written.and_then(|()| file.write_all(end.as_bytes()));
        written.map_err(|source| ForgeError::Record { path: path(1), source })?;
        let exists = || io::Error::from(io::ErrorKind::AlreadyExists);
        let stored = file.commit_new((1..10_000).map(path), Durability::Synced)?;
        stored.ok_or_else(|| ForgeError::Record { path: path(1), source: exists() })
    }
}

impl Forge for LocalForge {
    /// The base is pushed with the first branch, and stays on this machine.
    fn check_base(&self, _branch: &str, _commit: &str, _cancellation: &Cancellation) -> Result<(), ForgeError> {
        Ok(())
    }

    fn push(&self, push: &Push<'_>, cancellation: &Cancellation) -> Result<(), ForgeError> {
        drop(self.create()?);
        let path = self.repository();
        let options = &self.git;
        let address = path.as_str();
        Remote { address, protocol: "file", environment: &[], options, cancel: cancellation }.push(push)
    }

    fn find(&self, branch: &str, _cancellation: &Cancellation) -> Result<Option<PullRequest>, ForgeError> {
        Ok(self.find_record(branch)?.map(|record| self.pull_request(&record)))
    }

    fn open(&self, request: &NewPullRequest, _cancellation: &Cancellation) -> Result<PullRequest, ForgeError> {
        let _lock = self.create()?;
        if let Some(record) = self.find_record(&request.head)? {
            return Ok(self.pull_request(&record));
        }
        let number = self.numbers()?.last().map_or(1, |last| last + 1);
        let record = Record {
            number,
            title: request.title.clone(),
            body: request.body.clone(),
            repository: self.repository(),
            base: request.base.clone(),
            head: request.head.clone(),
            base_commit: request.base_commit.clone(),
            head_commit: request.head_commit.clone(),
            ci: Vec::new(),
        };
        let base = format!("refs/heads/{}", request.base);
        let has_base = self.git(&self.repository(), &["show-ref", "--verify", "--quiet", &base]).answer()?.is_some();
        if !has_base && !request.base.is_empty() && request.base != request.head {
            self.git(&self.repository(), &["update-ref", &base, &request.base_commit]).output()?;
        }
        let head = format!("refs/pull/{number}/head");
        self.git(&self.repository(), &["update-ref", &head, &request.head_commit]).output()?;
        // Last: once the record exists, everything that it names exists.
        write_json(&self.record_path(number), &record, Durability::Synced)?;
        Ok(self.pull_request(&record))
    }

    fn update(
        &self,
        pull_request: &PullRequest,
        request: &NewPullRequest,
        _cancellation: &Cancellation,
    ) -> Result<(), ForgeError> {
        let head = format!("refs/pull/{}/head", pull_request.number);
        self.git(&self.repository(), &["update-ref", &head, &request.head_commit]).output()?;
        self.change(pull_request.number, |record| {
            record.title.clone_from(&request.title);
            record.body.clone_from(&request.body);
            record.head_commit.clone_from(&request.head_commit);
        })
    }

    fn ci(
        &self,
        pull_request: &PullRequest,
        wanted: &CiWanted<'_>,
        cancellation: &Cancellation,
    ) -> Result<CiResult, ForgeError> {
        let CiWanted { commit, timeout, before } = *wanted;
        let Some(line) = &self.ci_line else {
            return Ok(CiResult { status: CiStatus::None, log: String::new(), log_place: String::new() });
        };
        let shell = Shell {
            timeout: timeout.unwrap_or(self.shell.timeout),
            cancellation: cancellation.clone(),
            ..self.shell.clone()
        };
        let finished = match self.run(line, commit, &shell) {
            Err(_) if cancellation.is_cancelled() => {
                return Ok(CiResult { status: CiStatus::Cancelled, log: String::new(), log_place: String::new() });
            }
            finished => finished?,
        };
        let (status, end) = if finished.report.timed_out {
            let end = format!("\nCI did not end within {} s and was killed\n", shell.timeout.as_secs_f64());
            (CiStatus::TimedOut, end)
        } else {
            let report = &finished.report;
            let known = before.filter(|before| {
                let mut masked = report.clone();
                masked.mask_ids(&before.redactor);
                let is_known = new_failures(&before.report, &masked).is_empty();
                !report.is_success() && !report.formats.is_empty() && is_known
            });
            let is_pass = report.is_success() || known.is_some();
            let ending = &finished.command.ending;
            let end = match known {
                Some(_) => format!("\nCI ended with {ending}; all tests that fail here also fail without the change\n"),
                None => format!("\nCI ended with {ending}\n"),
            };
            (if is_pass { CiStatus::Pass } else { CiStatus::Fail }, end)
        };
        let log = self.store_log(pull_request.number, commit, &finished, &end)?;
        self.change(pull_request.number, |record| {
            // A run that was killed has failed; its log states why.
            let status = if status == CiStatus::Pass { CiStatus::Pass } else { CiStatus::Fail };
            record.ci.push(CiRun { commit: commit.to_owned(), status, log: log.clone() });
        })?;
        Ok(CiResult { status, log: finished.report.output + &end, log_place: log.into_string() })
    }
}
