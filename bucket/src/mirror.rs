//! The working copy of a bucket: a folder of this machine with the same paths.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, Durability};
use counterproof_store::{ASSETS_FOLDER, RUN_ARCHIVE, RUN_FILE, RunCopy, is_plain_path, read_file, unpack_run};

use crate::Bucket;
use crate::failure::BucketError;
use crate::url::BucketUrl;

/// The object whose creation takes the name of a run folder. It does not belong to the run, and is not copied.
const CLAIM: &str = ".claim";

/// A bucket with its working copy. A file at `ROOT/a/b` is the object with the key `a/b`.
#[derive(Debug)]
pub struct Mirror {
    bucket: Bucket,
    root: Utf8PathBuf,
    /// The content of a claim, which no other process has.
    token: String,
    /// Whether a file of a run could not be written to the bucket while the run was made.
    lacks_files: AtomicBool,
}

impl Mirror {
    /// Starts an empty working copy in a folder that exists.
    pub fn new(bucket: Bucket, root: Utf8PathBuf) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let random = RandomState::new().hash_one(now);
        let token = format!("{}-{}-{random:016x}\n", std::process::id(), now.as_nanos());
        Self { bucket, root, token, lacks_files: AtomicBool::new(false) }
    }

    /// The address of the bucket.
    pub const fn url(&self) -> &BucketUrl {
        self.bucket.url()
    }

    /// The folder of the working copy.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The path of a folder of the bucket in the working copy.
    pub fn local(&self, url: &BucketUrl) -> Utf8PathBuf {
        if url.prefix().is_empty() { self.root.clone() } else { self.root.join(url.prefix()) }
    }

    /// Whether the bucket lacks a file of a run that was made here, because it could not be written there.
    pub fn lacks_files(&self) -> bool {
        self.lacks_files.load(Ordering::Relaxed)
    }

    /// The key of a path in the working copy; empty for its root.
    fn key(&self, path: &Utf8Path) -> Result<String, BucketError> {
        let relative = path.strip_prefix(&self.root).map_err(|_| BucketError::Name(path.to_string()))?;
        Ok(relative.components().map(|part| part.as_str()).collect::<Vec<_>>().join("/"))
    }

    /// Copies one document of each folder in a folder to this machine, if it has it. Returns the folders.
    pub fn fetch_documents(&self, parent: &Utf8Path, name: &str) -> Result<Vec<Utf8PathBuf>, BucketError> {
        let key = self.key(parent)?;
        let folders: Vec<_> = self.bucket.folders(&key)?.into_iter().map(|name| parent.join(name)).collect();
        let keys = folders.iter().map(|folder| self.key(&folder.join(name))).collect::<Result<_, _>>()?;
        Bucket::for_each(keys, |key| self.fetch_file(key).map(drop))?;
        Ok(folders)
    }

    /// Whether the bucket has a file.
    pub fn has(&self, file: &Utf8Path) -> Result<bool, BucketError> {
        self.bucket.exists(&self.key(file)?)
    }

    /// Copies one file of the bucket to this machine, if it is there.
    pub fn fetch_document(&self, file: &Utf8Path) -> Result<bool, BucketError> {
        self.fetch_file(&self.key(file)?)
    }

    /// Copies all files below a folder, or the one file of this name, to this machine. Returns how many there are.
    pub fn fetch_all(&self, folder: &Utf8Path) -> Result<usize, BucketError> {
        let key = self.key(folder)?;
        let mut keys = self.bucket.list(&key)?;
        if keys.is_empty() {
            return Ok(usize::from(!key.is_empty() && self.fetch_file(&key)?));
        }
        keys.retain(|key| !is_claim(key));
        let count = keys.len();
        let archives: Vec<_> = keys.iter().filter(|key| is_named(key, RUN_ARCHIVE)).cloned().collect();
        Bucket::for_each(keys, |key| self.fetch_missing(key))?;
        archives.iter().try_for_each(|key| Self::unpack(&self.path(key)?))?;
        Ok(count)
    }

    /// Copies the files of a run folder that this machine lacks, and its run document. Returns false if the bucket has no
    /// run of this name, not even one that has just been started.
    ///
    /// The document is read before the files are listed, so a run that it says is complete has all its files here. Assets are listed
    /// again after the artifacts are copied: of a run that is being written, each artifact has its assets.
    pub fn fetch_run(&self, folder: &Utf8Path) -> Result<bool, BucketError> {
        let key = self.key(folder)?;
        let document_key = format!("{key}/{RUN_FILE}");
        let Some(document) = self.bucket.get(&document_key)? else {
            // Not listed: the address of all runs, passed by mistake, would copy everything.
            let is_claimed = self.bucket.exists(&format!("{key}/{CLAIM}"))?;
            return Ok(is_claimed && write::create_folder(folder).map(|()| true)?);
        };
        // A file of an earlier state of the run may have been replaced since, such as that of a case that runs again.
        let is_changed = |known: Vec<u8>| known != document;
        if read(&folder.join(RUN_FILE)).is_ok_and(is_changed) {
            remove_folder(folder)?;
        }
        let keys = self.bucket.list(&key)?;
        write::create_folder(folder)?;
        let assets = format!("{key}/{ASSETS_FOLDER}/");
        let fetch = |key: &str| self.fetch_missing(key);
        let is_artifact = |key: &String| !key.starts_with(&assets) && *key != document_key && !is_claim(key);
        Bucket::for_each(keys.into_iter().filter(is_artifact).collect(), fetch)?;
        Bucket::for_each(self.bucket.list(assets.trim_end_matches('/'))?, fetch)?;
        Self::unpack(&folder.join(RUN_ARCHIVE))?;
        // Last, because a folder with a run document is read as a run.
        write::write(&folder.join(RUN_FILE), &document, Durability::Cached)?;
        Ok(true)
    }

    /// Unpacks the archive of a run, if there is one, and removes it from the working copy.
    fn unpack(archive: &Utf8Path) -> Result<(), BucketError> {
        let Some(folder) = archive.parent().filter(|_| archive.is_file()) else { return Ok(()) };
        unpack_run(archive, folder).map_err(|source| BucketError::Read { path: archive.to_owned(), source })?;
        write::remove(archive)?;
        Ok(())
    }

    /// The path of an object in the working copy. Anybody who may write to the bucket chose its name, which must not lead out.
    fn path(&self, key: &str) -> Result<Utf8PathBuf, BucketError> {
        if !is_plain_path(key) {
            return Err(BucketError::Name(self.bucket.address(key)));
        }
        Ok(self.root.join(key))
    }

    /// Copies an object to this machine, unless its file is here.
    fn fetch_missing(&self, key: &str) -> Result<(), BucketError> {
        if self.path(key)?.exists() { Ok(()) } else { self.fetch_file(key).map(drop) }
    }

    /// Copies an object to this machine, in place of a file that is here. Returns false if there is none.
    fn fetch_file(&self, key: &str) -> Result<bool, BucketError> {
        let path = self.path(key)?;
        let Some(bytes) = self.bucket.get(key)? else { return Ok(false) };
        if let Some(parent) = path.parent() {
            write::create_folder(parent)?;
        }
        write::write(&path, &bytes, Durability::Cached)?;
        Ok(true)
    }

    /// Writes files of the working copy to the bucket.
    pub fn put_files(&self, files: &[Utf8PathBuf]) -> Result<(), BucketError> {
        let keys = files.iter().map(|file| self.key(file)).collect::<Result<_, _>>()?;
        let put = |key: &str| self.bucket.put(key, read(&self.root.join(key))?);
        Bucket::for_each(keys, put)
    }

    /// Writes a new run folder of the working copy to the bucket: its run document last. Returns false if the bucket has a folder of
    /// this name, or another process is writing one.
    pub fn put_new_run(&self, folder: &Utf8Path) -> Result<bool, BucketError> {
        if !self.take(folder)? {
            return Ok(false);
        }
        let files = files_below(folder)?;
        let document = folder.join(RUN_FILE);
        let others: Vec<_> = files.into_iter().filter(|file| *file != document).collect();
        let written = self.put_files(&others).and_then(|()| self.put_files(&[document]));
        if written.is_err() {
            // So that the name can be used again. The error of the files is reported, and not that of this.
            let _ = self.remove_run(folder);
        }
        written.map(|()| true)
    }

    /// Removes the files of a run that is not complete from the bucket: the claim of its name last.
    fn remove_run(&self, folder: &Utf8Path) -> Result<(), BucketError> {
        let key = self.key(folder)?;
        let files = self.bucket.list(&key)?.into_iter().filter(|key| !is_claim(key)).collect();
        Bucket::for_each(files, |key| self.bucket.delete(key))?;
        self.bucket.delete(&format!("{key}/{CLAIM}"))
    }

    /// Writes a folder of this machine to a folder of the bucket: the file `last` after all others. Files that the bucket has and the
    /// folder lacks stay.
    pub fn publish(&self, folder: &Utf8Path, to: &BucketUrl, last: &str) -> Result<usize, BucketError> {
        for name in [RUN_FILE, CLAIM] {
            if self.bucket.exists(&to.key(name))? {
                return Err(BucketError::IsRun(to.to_string()));
            }
        }
        let mut names = Vec::new();
        for file in files_below(folder)? {
            let name = file.strip_prefix(folder).unwrap_or(&file).to_string().replace('\\', "/");
            if name != last {
                names.push(name);
            }
        }
        let put = |name: &str| self.bucket.put(&to.key(name), read(&folder.join(name))?);
        let count = names.len();
        Bucket::for_each(names, put)?;
        put(last)?;
        Ok(count + 1)
    }

    /// Checks with an object of its own in a folder that the store lets one process create an object.
    pub fn probe_creation(&self, folder: &Utf8Path) -> Result<(), BucketError> {
        let key = format!("{}/{CLAIM}-check-{}", self.key(folder)?, self.token.trim_end());
        let first = self.bucket.create(&key, b"first")?;
        let second = self.bucket.create(&key, b"second");
        self.bucket.delete(&key)?;
        if first && !second? { Ok(()) } else { Err(BucketError::NoLease(self.url().to_string())) }
    }

    /// Creates the claim of a run folder.
    fn take(&self, folder: &Utf8Path) -> Result<bool, BucketError> {
        let key = self.key(folder)?;
        if self.bucket.exists(&format!("{key}/{RUN_FILE}"))? {
            // A run that was copied to the bucket by another program has no claim.
            return Ok(false);
        }
        self.bucket.create(&format!("{key}/{CLAIM}"), self.token.as_bytes())
    }
}

impl RunCopy for Mirror {
    fn put(&self, files: &[Utf8PathBuf]) -> io::Result<()> {
        // Answers of an agent, which exist nowhere else.
        self.put_files(files).inspect_err(|_| self.lacks_files.store(true, Ordering::Relaxed))?;
        Ok(())
    }

    fn remove(&self, file: &Utf8Path) -> io::Result<()> {
        Ok(self.bucket.delete(&self.key(file)?)?)
    }

    fn claim(&self, folder: &Utf8Path) -> io::Result<bool> {
        Ok(self.take(folder)?)
    }

    fn is_claimed(&self, folder: &Utf8Path) -> io::Result<bool> {
        let found = self.bucket.exists(&format!("{}/{CLAIM}", self.key(folder)?));
        // The answer that was to be put next exists only here.
        Ok(found.inspect_err(|_| self.lacks_files.store(true, Ordering::Relaxed))?)
    }

    fn run_folders(&self, parent: &Utf8Path) -> io::Result<Vec<String>> {
        Ok(self.bucket.folders(&self.key(parent)?)?)
    }

    fn fetch(&self, folder: &Utf8Path) -> io::Result<()> {
        remove_folder(folder)?;
        Ok(self.fetch_run(folder).map(drop)?)
    }

    fn fetch_document(&self, file: &Utf8Path) -> io::Result<bool> {
        Ok(self.fetch_file(&self.key(file)?)?)
    }
}

/// Removes a folder of the working copy, if it is there.
fn remove_folder(folder: &Utf8Path) -> Result<(), BucketError> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(BucketError::Read { path: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn is_named(key: &str, name: &str) -> bool {
    key.rsplit('/').next() == Some(name)
}

fn is_claim(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.starts_with(CLAIM))
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, BucketError> {
    read_file::read(path, read_file::MAX_LARGE_BYTES)
        .map_err(|source| BucketError::Read { path: path.to_owned(), source })
}

/// All files below a folder, without those that are being written and the lock.
fn files_below(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BucketError> {
    let failed = |source| BucketError::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file_type = entry.file_type().map_err(failed)?;
        if entry.file_name().starts_with('.') {
            continue;
        }
        if file_type.is_dir() {
            files.append(&mut files_below(entry.path())?);
        } else if file_type.is_file() {
            files.push(entry.path().to_owned());
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(feature = "stores")]
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use counterproof_artifact::{AssetKind, Run, Side};
    use counterproof_store::{RunReader, RunWriter, pack_run};
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
    use tempfile::TempDir;

    use super::*;

    /// A working copy of a store that several can share.
    struct Copy {
        mirror: Arc<Mirror>,
        _folder: TempDir,
    }

    fn copy_of(store: &Arc<InMemory>) -> Copy {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let url = "s3://agents".parse().unwrap();
        let bucket = Bucket::with_store(&url, Arc::clone(store) as Arc<dyn ObjectStore>).unwrap();
        Copy { mirror: Arc::new(Mirror::new(bucket, root)), _folder: folder }
    }

    fn document(id: &str) -> Run {
        serde_json::from_value(serde_json::json!({
            "schema_version": "run.v1", "run_id": id, "version": "new", "generated_at": "2026-01-01T00:00:00Z",
            "base_url": "http://a", "cases_path": "c.json", "out_dir": "../..", "selected_case_ids": ["c1"],
            "runner_version": "counterproof 0.1.0", "case_digests": {}, "stats": {"cases_total": 1},
        }))
        .unwrap()
    }

    /// Writes a run with one asset through the working copy.
    fn write_run(copy: &Copy, id: &str) -> Utf8PathBuf {
        let writer = RunWriter::create(copy.mirror.root(), Side::New, &id.parse().unwrap()).unwrap();
        let writer = writer.copied_to(Some(copy.mirror.clone()));
        writer.claim_copy().unwrap();
        writer.write_asset("c1.request.json", AssetKind::FullBody, None, b"{}\n").unwrap();
        writer.write_manifest("2026-01-01T00:00:00Z").unwrap();
        writer.write_run(&document(id)).unwrap();
        writer.folder().to_owned()
    }

    #[test]
    fn a_run_that_one_machine_writes_is_read_on_another_with_equal_bytes() {
        let store = Arc::new(InMemory::new());
        let (writer, reader) = (copy_of(&store), copy_of(&store));
        let written = write_run(&writer, "r1");
        let folder = reader.mirror.root().join("new/r1");
        assert!(reader.mirror.fetch_run(&folder).unwrap());
        for name in ["run.json", "assets/manifest.json", "assets/c1.request.json"] {
            let bytes = |folder: &Utf8Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(bytes(&written), bytes(&folder), "{name}");
        }
        assert!(!folder.join(CLAIM).exists());
        assert!(!reader.mirror.fetch_run(&reader.mirror.root().join("new/r2")).unwrap());
        // The name is taken, also for a process that has not read the run.
        let third = copy_of(&store);
        let other = RunWriter::create(third.mirror.root(), Side::New, &"r1".parse().unwrap()).unwrap();
        assert!(other.copied_to(Some(third.mirror.clone())).claim_copy().is_err());
    }

    #[test]
    fn a_run_that_was_resumed_is_copied_again() {
        let store = Arc::new(InMemory::new());
        let (writer, reader) = (copy_of(&store), copy_of(&store));
        let written = write_run(&writer, "r1");
        let folder = reader.mirror.root().join("new/r1");
        let put = |name: &str, text: &str| {
            write::write(&written.join(name), text.as_bytes(), Durability::Cached).unwrap();
            writer.mirror.put_files(&[written.join(name)]).unwrap();
        };
        put("c1.json", "skipped");
        assert!(reader.mirror.fetch_run(&folder).unwrap());
        put("c1.json", "answered");
        let resumed = Run { repo_commit: Some("abc".to_owned()), ..document("r1") };
        put(RUN_FILE, &serde_json::to_string(&resumed).unwrap());
        assert!(reader.mirror.fetch_run(&folder).unwrap());
        assert_eq!(std::fs::read_to_string(folder.join("c1.json")).unwrap(), "answered");
    }

    #[test]
    fn a_report_is_not_published_into_a_run() {
        let store = Arc::new(InMemory::new());
        let copy = copy_of(&store);
        write_run(&copy, "r1");
        let report = copy.mirror.root().join("report");
        write::create_folder(&report).unwrap();
        write::write(&report.join("index.html"), b"", Durability::Cached).unwrap();
        let publish = |to: &str| copy.mirror.publish(&report, &to.parse().unwrap(), "index.html");
        let error = publish("s3://agents/new/r1").unwrap_err().to_string();
        assert_eq!(error, "`s3://agents/new/r1` is a run, and no report is written into it");
        assert_eq!(publish("s3://agents/reports/r1").unwrap(), 1);
    }

    #[test]
    fn one_of_many_processes_gets_the_name_of_a_run() {
        let store = Arc::new(InMemory::new());
        let copies: Vec<_> = (0..16).map(|_| copy_of(&store)).collect();
        let take = |copy: &Copy| copy.mirror.claim(&copy.mirror.root().join("new/r1")).unwrap();
        let take = &take;
        let taken: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = copies.iter().map(|copy| scope.spawn(move || take(copy))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
        // The process that has it may ask again: its first answer can be lost.
        let winner = taken.iter().position(|taken| *taken).unwrap();
        assert!(take(&copies[winner]));
        assert!(copies[0].mirror.is_claimed(&copies[0].mirror.root().join("new/r1")).unwrap());
        copies[0].mirror.probe_creation(copies[0].mirror.root()).unwrap();
        assert_eq!(copies[0].mirror.bucket.list("").unwrap(), ["new/r1/.claim"]);
    }

    #[test]
    fn a_packed_run_is_unpacked_in_the_working_copy() {
        let store = Arc::new(InMemory::new());
        let (writer, reader) = (copy_of(&store), copy_of(&store));
        let run = writer.mirror.root().join("new/r1");
        write::create_folder(&run.join(ASSETS_FOLDER)).unwrap();
        write::write(&run.join("assets/a.json"), b"{\"a\": 1}", Durability::Cached).unwrap();
        pack_run(&run, &["assets/a.json".to_owned()], &run.join(RUN_ARCHIVE)).unwrap();
        write::remove(&run.join("assets/a.json")).unwrap();
        write::write_json(&run.join(RUN_FILE), &document("r1"), Durability::Cached).unwrap();
        assert!(writer.mirror.put_new_run(&run).unwrap() && !writer.mirror.put_new_run(&run).unwrap());
        let folder = reader.mirror.root().join("new/r1");
        // As one run, and as a part of all runs.
        for is_alone in [true, false] {
            if is_alone {
                assert!(reader.mirror.fetch_run(&folder).unwrap());
            } else {
                assert_eq!(reader.mirror.fetch_all(folder.parent().unwrap()).unwrap(), 2);
            }
            assert_eq!(std::fs::read(folder.join("assets/a.json")).unwrap(), b"{\"a\": 1}");
            assert!(!folder.join(RUN_ARCHIVE).exists() && RunReader::open(&folder).is_ok());
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn an_object_whose_name_is_not_a_path_is_an_error() {
        let store = Arc::new(InMemory::new());
        let copy = copy_of(&store);
        let key = Path::parse("runs/..\\..\\evil").unwrap();
        copy.mirror.bucket.put("runs/fine.json", b"{}".to_vec()).unwrap();
        assert_eq!(copy.mirror.fetch_all(&copy.mirror.root().join("runs")).unwrap(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(store.put(&key, PutPayload::from_static(b"x"))).unwrap();
        let error = copy.mirror.fetch_all(&copy.mirror.root().join("runs")).unwrap_err();
        assert_eq!(error.to_string(), "`s3://agents/runs/..\\..\\evil` cannot be copied: its name is not a path");
    }
}
