//! Measures snapshots of a repository with 50,000 files and 1 GB: `cargo run --release --example large_workspace -- FOLDER`. The folder is
//! removed at the end. For the tests, the program is the supervisor of commands.

#![expect(clippy::print_stdout, reason = "it prints measurements")]

use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Instant;

use camino::Utf8PathBuf;
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{CHECKPOINTS, SnapshotOptions, Workspace, WorkspaceStore};

const FOLDERS: usize = 500;
const FILES: usize = 100;
/// Unless a second argument sets another size.
const FILE_BYTES: usize = 20_000;
const CHECKPOINTS_TAKEN: usize = 100;
/// How many files change before each checkpoint.
const CHANGED: usize = 5;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = counterproof_safe_run::enter() {
        return Ok(code);
    }
    let folder = Utf8PathBuf::from(std::env::args().nth(1).ok_or("a folder that does not exist")?);
    fs::create_dir(&folder)?;
    let bytes = std::env::args().nth(2).map_or(Ok(FILE_BYTES), |bytes| bytes.parse())?;
    let result = measure(&folder, bytes);
    fs::remove_dir_all(&folder)?;
    result.map(|()| ExitCode::SUCCESS)
}

fn measure(folder: &Utf8PathBuf, file_bytes: usize) -> Result<(), Box<dyn Error>> {
    let source = folder.join("source");
    fs::create_dir(&source)?;
    let mut random = Random(1);
    for number in 0..FOLDERS {
        let inner = source.join(format!("packages/group{}/package{number}", number % 10));
        fs::create_dir_all(&inner)?;
        for file in 0..FILES {
            put(&inner.join(format!("file{file}.txt")), &random.bytes(file_bytes))?;
        }
    }
    for arguments in ["init -q", "add -A", "-c user.name=a -c user.email=a commit -qm start"] {
        let status = Command::new("git").current_dir(&source).args(arguments.split(' ')).status()?;
        assert!(status.success(), "{arguments}");
    }
    let store = WorkspaceStore::new(folder.join("store"), GitOptions::default());
    let start = timed("import", || store.import(source.as_str(), None))?;
    timed("import again", || store.import(source.as_str(), None))?;
    let repository = store.open(&start.repository)?;
    let work = folder.join("work");
    let mut workspace = timed("create", || repository.create(&start.commit, &work))?;
    timed("first checkpoint", || take(&mut workspace))?;
    timed("second checkpoint, unchanged", || take(&mut workspace))?;
    let before = disk(repository.path());
    let mut changed_bytes = 0;
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..CHECKPOINTS_TAKEN {
        for _ in 0..CHANGED {
            let (package, file) = (random.below(FOLDERS), random.below(FILES));
            let path = work.join(format!("packages/group{}/package{package}/file{file}.txt", package % 10));
            put(&path, &random.bytes(file_bytes))?;
            changed_bytes += file_bytes;
        }
        let clock = Instant::now();
        last = Some(take(&mut workspace)?);
        times.push(clock.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let used = disk(repository.path()).saturating_sub(before);
    println!(
        "{CHECKPOINTS_TAKEN} checkpoints: median {:.3} s, slowest {:.3} s; changes {changed_bytes} bytes, disk {used} bytes",
        times[times.len() / 2],
        times[times.len() - 1],
    );
    let Some(last) = last else { return Ok(()) };
    put(&work.join("packages/new.txt"), b"1")?;
    timed("restore in place", || repository.restore(&last, &work))?;
    timed("restore to a new folder", || repository.restore(&last, &folder.join("fork")))?;
    Ok(())
}

fn take(workspace: &mut Workspace) -> Result<counterproof_workspace::Snapshot, counterproof_workspace::WorkspaceError> {
    let reference = format!("{CHECKPOINTS}session");
    workspace.snapshot(&SnapshotOptions { reference, include_ignored: Vec::new(), max_bytes: 2 << 30 })
}

fn timed<T, E>(name: &str, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let clock = Instant::now();
    let result = run();
    println!("{name}: {:.3} s", clock.elapsed().as_secs_f64());
    result
}

fn put(path: &Utf8PathBuf, bytes: &[u8]) -> std::io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a file of a measurement")]
    fs::write(path, bytes)
}

/// Used bytes of a folder, as `du` counts them.
fn disk(folder: &camino::Utf8Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.path().symlink_metadata() {
        Ok(found) if found.is_dir() => disk(entry.path()) + found.blocks() * 512,
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// Numbers that are the same in each measurement. The bytes do not compress.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % limit
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length / 8).flat_map(|_| self.next().to_le_bytes()).collect()
    }
}
