//! Working copies of runs that are not folders of files on this machine: runs in a bucket, and packed runs. Commands work on the
//! copies, which are in a temporary folder. Messages name what was copied, and what a command writes goes back there.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{RunId, Side};
use counterproof_bucket::{Bucket, BucketError, BucketUrl, Mirror, Scheme};
use counterproof_cases::Shard;
use counterproof_runner::RunShard;
use counterproof_store::write::{self, Durability};
use counterproof_store::{EVALUATION_FILE, RUN_ARCHIVE, RUN_FILE, RunCopy, RunReader, unpack_run};
use tempfile::TempDir;

use crate::command_error::CommandError;

/// The working copies of a command. They are removed at its end.
#[derive(Debug, Default)]
pub(crate) struct WorkingCopies {
    temporary: Option<TempDir>,
    /// The number of copies that were started, for their names.
    started: usize,
    mirrors: Vec<Arc<Mirror>>,
    /// The kind of the bucket that was used last.
    scheme: Option<Scheme>,
    unpacked: Vec<UnpackedRun>,
}

#[derive(Debug)]
struct UnpackedRun {
    copy: Utf8PathBuf,
    /// The folder of the packed run.
    of: Utf8PathBuf,
}

/// A folder that a command writes runs to.
#[derive(Debug)]
pub(crate) struct OutputFolder {
    /// The folder on this machine.
    pub(crate) folder: Utf8PathBuf,
    /// The bucket that it is a working copy of.
    pub(crate) copy: Option<Arc<Mirror>>,
}

impl OutputFolder {
    /// Where the runner copies each file to.
    pub(crate) fn run_copy(&self) -> Option<Arc<dyn RunCopy>> {
        self.copy.clone().map(|mirror| mirror as _)
    }

    /// Copies what a run that is resumed, or created if it is not there, has in the bucket.
    pub(crate) fn fetch_resumed(&self, side: Side, id: &RunId) -> Result<(), CommandError> {
        let Some(mirror) = &self.copy else { return Ok(()) };
        let folder = self.folder.join(side.as_str()).join(id.as_str());
        if mirror.has(&folder.join(RUN_ARCHIVE)).map_err(bucket_error)? {
            return Err(CommandError::usage(format!("`{folder}` is packed, and cannot be resumed"))
                .hint("start a new run, or merge its shards again without `--pack`"));
        }
        fetch_run(mirror, &folder)
    }

    /// Copies the attempts at a shard that may be complete, and checks that the bucket can hold its lease.
    pub(crate) fn fetch_complete_attempts(&self, side: Side, shard: &RunShard) -> Result<(), CommandError> {
        let Some(mirror) = &self.copy else { return Ok(()) };
        let parent = self.folder.join(side.as_str());
        mirror.probe_creation(&parent).map_err(bucket_error)?;
        for name in mirror.run_folders(&parent).map_err(CommandError::io)? {
            if name.parse().ok().and_then(|id| shard.number_of(&id)).is_none() {
                continue;
            }
            let folder = parent.join(name);
            let is_there = mirror.fetch_document(&folder.join(RUN_FILE)).map_err(bucket_error)?;
            if is_there && RunReader::open(&folder).is_ok_and(|run| run.run().stats.is_some()) {
                fetch_run(mirror, &folder)?;
            }
        }
        Ok(())
    }
}

impl Drop for WorkingCopies {
    fn drop(&mut self) {
        // Answers that could not be written to the bucket exist only here.
        if self.kept().is_some()
            && let Some(folder) = self.temporary.take()
        {
            let _ = folder.keep();
        }
    }
}

impl WorkingCopies {
    /// What explains an error of a bucket: where credentials come from, and where the files are that it lacks.
    pub(crate) fn hints(&self, error: &CommandError) -> Vec<String> {
        let Some((scheme, request)) = self.scheme.zip(error.bucket_request()) else { return Vec::new() };
        let kept =
            self.kept().map(|folder| format!("the files that could not be written to the bucket are in `{folder}`"));
        // The code of S3 for a request whose time is too far from that of the server.
        let is_late = request.to_string().contains("RequestTimeTooSkewed");
        let why = if is_late { "set the clock of this machine" } else { scheme.credentials() };
        [Some(why.to_owned()), kept].into_iter().flatten().collect()
    }

    /// The folder that stays, because a bucket lacks files that are in it.
    pub(crate) fn kept(&self) -> Option<&Utf8Path> {
        let folder = Utf8Path::from_path(self.temporary.as_ref()?.path())?;
        self.mirrors.iter().any(|mirror| mirror.lacks_files()).then_some(folder)
    }

    /// A text with the paths of working copies replaced by what they are copies of.
    pub(crate) fn original(&self, mut text: String) -> String {
        let mirrors = self.mirrors.iter().map(|mirror| (mirror.root(), mirror.url().to_string()));
        let unpacked = self.unpacked.iter().map(|run| (run.copy.as_path(), run.of.to_string()));
        for (copy, original) in mirrors.chain(unpacked) {
            if text.contains(copy.as_str()) {
                text = text.replace(copy.as_str(), &original);
            }
        }
        text
    }

    /// Creates the folder of a new working copy.
    fn start(&mut self) -> Result<Utf8PathBuf, CommandError> {
        let failed = |error| CommandError::io(format!("failed to create a temporary folder: {error}"));
        let temporary = match &self.temporary {
            Some(folder) => folder,
            None => self.temporary.insert(tempfile::Builder::new().prefix("counterproof-").tempdir().map_err(failed)?),
        };
        self.started += 1;
        // Canonical, as paths in messages are. No such name is the start of another one.
        let folder = Utf8PathBuf::from_path_buf(temporary.path().canonicalize().map_err(failed)?);
        let folder = folder.map_err(|_| CommandError::io("the path of the temporary folder is not UTF-8"))?;
        let folder = folder.join(format!("{}-copy", self.started));
        write::create_folder(&folder).map_err(CommandError::io)?;
        Ok(folder)
    }

    /// The bucket of an address, or of a path in its working copy, with the path there. `None` for a path of this machine.
    fn find(&mut self, path: &Utf8Path) -> Result<Option<(Arc<Mirror>, Utf8PathBuf)>, CommandError> {
        if !BucketUrl::is_bucket(path.as_str()) {
            reject_url(path)?;
            let mirror = self.mirrors.iter().find(|mirror| path.starts_with(mirror.root()));
            return Ok(mirror.map(|mirror| (Arc::clone(mirror), path.to_owned())));
        }
        let url = bucket_url(path)?;
        self.scheme = Some(url.scheme());
        let known = self.mirrors.iter().find(|mirror| *mirror.url() == url.root()).cloned();
        let mirror = if let Some(mirror) = known {
            mirror
        } else {
            let bucket = Bucket::open(&url).map_err(bucket_error)?;
            let mirror = Arc::new(Mirror::new(bucket, self.start()?));
            self.mirrors.push(Arc::clone(&mirror));
            mirror
        };
        let local = mirror.local(&url);
        Ok(Some((mirror, local)))
    }

    /// Returns the folder of a run on this machine: a copy, if the run is in a bucket or packed. Its confirmation runs are copied
    /// with it.
    pub(crate) fn run(&mut self, folder: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
        let Some((mirror, local)) = self.find(folder)? else { return self.unpacked(folder) };
        fetch_run(&mirror, &local)?;
        fetch_confirmations(&mirror, &local)?;
        Ok(local)
    }

    /// Returns a run whose files are on this machine, for one that was found in a folder of runs.
    pub(crate) fn reader(&mut self, run: RunReader) -> Result<RunReader, CommandError> {
        let folder = self.unpacked(run.folder())?;
        if folder == run.folder() { Ok(run) } else { RunReader::open(&folder).map_err(CommandError::io) }
    }

    fn unpacked(&mut self, folder: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
        let archive = folder.join(RUN_ARCHIVE);
        if !archive.is_file() || !folder.join(RUN_FILE).is_file() {
            return Ok(folder.to_owned());
        }
        if let Some(known) = self.unpacked.iter().find(|run| run.of == folder) {
            return Ok(known.copy.clone());
        }
        let copy = self.start()?.join(folder.file_name().unwrap_or("run"));
        write::create_folder(&copy).map_err(CommandError::io)?;
        let failed = |error| CommandError::io(format!("failed to unpack `{archive}`: {error}"));
        unpack_run(&archive, &copy).map_err(failed)?;
        // What is next to the archive: the run document, an evaluation.
        for entry in folder.read_dir_utf8().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_file = entry.file_type().map_err(failed)?.is_file();
            if is_file && entry.file_name() != RUN_ARCHIVE && !entry.file_name().starts_with('.') {
                write::copy(entry.path(), &copy.join(entry.file_name()), Durability::Cached)
                    .map_err(CommandError::io)?;
            }
        }
        self.unpacked.push(UnpackedRun { copy: copy.clone(), of: folder.to_owned() });
        Ok(copy)
    }

    /// Returns a folder of runs on this machine. Of a bucket, it has the latest run of the side with its repeats and confirmation
    /// runs, and the run documents of the others.
    pub(crate) fn latest(&mut self, runs: &Utf8Path, side: Side) -> Result<Utf8PathBuf, CommandError> {
        let Some((mirror, local)) = self.find(runs)? else { return Ok(runs.to_owned()) };
        for folder in mirror.fetch_documents(&local.join(side.as_str()), RUN_FILE).map_err(bucket_error)? {
            let Ok(run) = RunReader::open(&folder) else { continue };
            // Only the artifacts of a stopped run say whether it has answers.
            if run.run().stats.is_none() && run.run().shard.is_none() && run.run().confirmation.is_none() {
                fetch_run(&mirror, &folder)?;
            }
        }
        // The caller reports an error.
        if let Ok(latest) = RunReader::latest(&local, side) {
            for run in latest.repeats.iter().chain([&latest.run]) {
                fetch_run(&mirror, run.folder())?;
                fetch_confirmations(&mirror, run.folder())?;
            }
        }
        Ok(local)
    }

    /// Copies the other repeats of a run's group, for a run in a bucket.
    pub(crate) fn repeats(&mut self, run: &Utf8Path) -> Result<(), CommandError> {
        let is_repeat = |folder: &Utf8Path| RunReader::open(folder).is_ok_and(|run| run.run().repeats.is_some());
        if let Some(packed) = self.unpacked.iter().find(|packed| packed.copy == run && is_repeat(run)) {
            return Err(CommandError::usage(format!("`{}` is packed, and one of several repeats", packed.of))
                .hint("unpack run.zip in the folder of each repeat, and remove it"));
        }
        let Some((mirror, local)) = self.find(run)? else { return Ok(()) };
        let (Some(parent), Ok(reader)) = (local.parent(), RunReader::open(&local)) else { return Ok(()) };
        if reader.run().group_id.is_none() {
            return Ok(());
        }
        let folders = mirror.fetch_documents(parent, RUN_FILE).map_err(bucket_error)?;
        let is_repeat = |folder: &Utf8PathBuf| {
            RunReader::open(folder).is_ok_and(|other| other.run().group_id == reader.run().group_id)
        };
        folders.iter().filter(|folder| is_repeat(folder)).try_for_each(|folder| fetch_run(&mirror, folder))
    }

    /// Returns any file or folder on this machine; all of it is copied from a bucket.
    pub(crate) fn tree(&mut self, path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
        let Some((mirror, local)) = self.find(path)? else { return self.unpacked(path) };
        mirror.fetch_all(&local).map_err(bucket_error)?;
        Ok(local)
    }

    /// Returns a folder on this machine with the evaluations in a folder, or directly below it.
    pub(crate) fn evaluations(&mut self, folder: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
        let Some((mirror, local)) = self.find(folder)? else { return Ok(folder.to_owned()) };
        if !mirror.fetch_document(&local.join(EVALUATION_FILE)).map_err(bucket_error)? {
            mirror.fetch_documents(&local, EVALUATION_FILE).map_err(bucket_error)?;
        }
        Ok(local)
    }

    /// Whether a path is in the working copy of a bucket.
    pub(crate) fn is_of_bucket(&self, path: &Utf8Path) -> bool {
        self.mirrors.iter().any(|mirror| path.starts_with(mirror.root()))
    }

    /// Returns the folder on this machine of a folder that runs are written to. Nothing is copied.
    pub(crate) fn output(&mut self, path: &Utf8Path) -> Result<OutputFolder, CommandError> {
        Ok(match self.find(path)? {
            Some((mirror, folder)) => OutputFolder { folder, copy: Some(mirror) },
            None => OutputFolder { folder: path.to_owned(), copy: None },
        })
    }

    /// Copies all attempts at the shards of the run that `run` will be merged into, with the files that are not copied yet.
    pub(crate) fn attempts(&mut self, run: &Utf8Path, shards: u32) -> Result<(), CommandError> {
        let Some((mirror, local)) = self.find(run)? else { return Ok(()) };
        let (Some(parent), Some(Ok(run_id))) = (local.parent(), local.file_name().map(str::parse::<RunId>)) else {
            return Ok(());
        };
        let start = format!("{run_id}-s");
        let names = mirror.run_folders(parent).map_err(CommandError::io)?;
        let ids: Vec<RunId> =
            names.iter().filter(|name| name.starts_with(&start)).filter_map(|name| name.parse().ok()).collect();
        for index in 1..=shards {
            let Ok(shard) = Shard::new(index, shards) else { continue };
            let shard = RunShard { run_id: run_id.clone(), shard };
            for id in ids.iter().filter(|id| shard.number_of(id).is_some()) {
                fetch_run(&mirror, &parent.join(id.as_str()))?;
            }
        }
        Ok(())
    }

    /// Copies the run documents of a side, so that a run of the same name is found before another one is made.
    pub(crate) fn documents(&mut self, runs: &Utf8Path, side: Side) -> Result<(), CommandError> {
        let Some((mirror, local)) = self.find(runs)? else { return Ok(()) };
        let found = mirror.fetch_documents(&local.join(side.as_str()), RUN_FILE);
        found.map(drop).map_err(bucket_error)
    }

    /// Copies the run document of a folder, so that a run that exists is found before another one is made.
    pub(crate) fn document(&mut self, run: &Utf8Path) -> Result<(), CommandError> {
        let Some((mirror, local)) = self.find(run)? else { return Ok(()) };
        let found = mirror.fetch_document(&local.join(RUN_FILE));
        found.map(drop).map_err(bucket_error)
    }

    /// Writes a new run of a working copy to its bucket.
    pub(crate) fn put_new_run(&mut self, folder: &Utf8Path) -> Result<(), CommandError> {
        let Some((mirror, local)) = self.find(folder)? else { return Ok(()) };
        if mirror.put_new_run(&local).map_err(bucket_error)? {
            return Ok(());
        }
        Err(CommandError::usage(format!("`{folder}` already exists, or another process is writing it")).hint(
            "choose another name; if an earlier command was killed while it wrote, remove the folder in the bucket first",
        ))
    }

    /// Writes a file that was changed in a working copy back.
    pub(crate) fn put_back(&mut self, file: &Utf8Path) -> Result<(), CommandError> {
        if let Some((mirror, file)) = self.find(file)? {
            return mirror.put_files(&[file]).map_err(bucket_error);
        }
        for run in &self.unpacked {
            if let Ok(name) = file.strip_prefix(&run.copy) {
                return write::copy(file, &run.of.join(name), Durability::Synced).map_err(CommandError::io);
            }
        }
        Ok(())
    }

    /// Returns the folder on this machine of a report, which [`Self::publish`] writes to the bucket.
    pub(crate) fn report(&mut self, out: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
        Ok(if BucketUrl::is_bucket(out.as_str()) { self.output(out)?.folder } else { out.to_owned() })
    }

    /// Writes a report to a bucket: its first page last. Nothing is written to a path of this machine.
    pub(crate) fn publish(&mut self, report: &Utf8Path, to: &Utf8Path) -> Result<usize, CommandError> {
        let url = bucket_url(to)?;
        let Some((mirror, _)) = self.find(to)? else { return Ok(0) };
        mirror.publish(report, &url, write::INDEX_FILE).map_err(bucket_error)
    }
}

/// Parses the address of a bucket.
pub(crate) fn bucket_url(path: &Utf8Path) -> Result<BucketUrl, CommandError> {
    path.as_str().parse().map_err(|error| CommandError::usage(error).hint("example: `s3://BUCKET/runs`"))
}

/// Rejects a path that is meant as an address, such as `S3://agents` or `s3:/agents`. It would become a folder of that name.
fn reject_url(path: &Utf8Path) -> Result<(), CommandError> {
    let scheme = path.as_str().split_once(":/").map_or("", |(scheme, _)| scheme);
    // One letter is a drive of Windows.
    if scheme.len() < 2 || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    // The path is not quoted: it may hold a password.
    Err(CommandError::usage("an address of a bucket starts with `s3://`, `gs://` or `az://`, and this one does not")
        .hint("example: `s3://BUCKET/runs`; a folder of such a name is written `./NAME`"))
}

/// Rejects the address of a bucket where only a folder of this machine can be used.
pub(crate) fn reject_bucket(path: &Utf8Path, option: &str) -> Result<(), CommandError> {
    reject_url(path)?;
    if BucketUrl::is_bucket(path.as_str()) {
        return Err(CommandError::usage(format!("{option} cannot be the address of a bucket"))
            .hint("use a folder of this machine; docs/scale.md lists the commands that work with buckets"));
    }
    Ok(())
}

fn fetch_run(mirror: &Mirror, folder: &Utf8Path) -> Result<(), CommandError> {
    mirror.fetch_run(folder).map(drop).map_err(bucket_error)
}

/// Copies the confirmation runs of a new run, of both sides.
fn fetch_confirmations(mirror: &Mirror, run: &Utf8Path) -> Result<(), CommandError> {
    let (Some(parent), Some(id)) = (run.parent(), run.file_name()) else { return Ok(()) };
    if parent.file_name() != Some(Side::New.as_str()) {
        return Ok(());
    }
    let start = format!("{id}-c");
    for parent in [parent.to_owned(), parent.with_file_name(Side::Baseline.as_str())] {
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        for name in mirror.run_folders(&parent).map_err(CommandError::io)? {
            if name.strip_prefix(&start).is_some_and(is_number) {
                fetch_run(mirror, &parent.join(name))?;
            }
        }
    }
    Ok(())
}

/// Maps an error of a bucket.
fn bucket_error(error: BucketError) -> CommandError {
    match error {
        BucketError::NotBuilt(_) => {
            CommandError::usage(error).hint("install the program with its default features, or use a folder")
        }
        BucketError::IsRun(_) => CommandError::usage(error).hint("use another address for the report"),
        BucketError::NoLease(_) => {
            CommandError::usage(error).hint("start each shard once, without `--take-over`, or use another store")
        }
        _ => CommandError::io(error),
    }
}
