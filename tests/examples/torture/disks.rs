//! Writing commands on a file system that is nearly full or has few inodes. Needs the right to mount one.

use std::process::Command;

use counterproof_tests::Sandbox;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::kills::{WRITERS, reference};
use crate::prepared::{agent, prepare};
use crate::process::finish;
use crate::snapshot::copy;

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    let disk = attempt.sandbox.path("disk");
    counterproof_store::write::create_folder(&disk).map_err(|error| Fault::new(error.to_string()))?;
    let mounted = Mounted::new(disk.as_str(), "size=64m")?;
    let inner = Sandbox::within(&disk);
    let outcome = fill(attempt, &mounted, &inner);
    if outcome.is_err() {
        // The file system disappears at the end of the attempt.
        copy(disk.as_std_path(), attempt.sandbox.path("disk-at-the-fault").as_std_path())?;
    }
    outcome
}

/// Runs a command while the file system is nearly full, and again with room.
fn fill(attempt: &mut Attempt, mounted: &Mounted, inner: &Sandbox) -> Outcome {
    prepare(inner)?;
    let writer = (attempt.random.u8(..4) > 0).then(|| &WRITERS[attempt.random.usize(..WRITERS.len())]);
    if let Some(writer) = writer {
        writer.make_old(inner)?;
    }
    mounted.shrink(attempt)?;
    if let Some(writer) = writer {
        let reference = reference(writer)?;
        let ended = finish(writer.command(inner)?)?;
        ended.ended_properly()?;
        writer.is_whole(inner, &reference, &ended)?;
        if ended.code == Some(3) {
            let is_named = ["No space left", "quota", "os error 28"].iter().any(|text| ended.stderr.contains(text));
            ensure!(is_named, "{} does not say that the disk is full: {}", writer.name, ended.stderr);
        }
        mounted.remount("size=64m,nr_inodes=100000")?;
        return writer.succeeds(inner, &reference);
    }
    let url = agent().base_url();
    let run = |last: [&str; 2]| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url];
        finish(inner.command(fixed.into_iter().chain(last)))
    };
    run(["--run-id", "full"])?.ended_properly()?;
    mounted.remount("size=64m,nr_inodes=100000")?;
    let has_started = inner.path("runs/new/full").exists();
    run(if has_started { ["--resume", "full"] } else { ["--run-id", "full"] })?.has_code(0)?;
    finish(inner.command(["validate", "runs/new/full"]))?.has_code(0)
}

/// A small file system in memory. It disappears with this value.
struct Mounted {
    folder: String,
}

impl Mounted {
    fn new(folder: &str, options: &str) -> Result<Self, Fault> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none", folder]).output();
        let works = mount.is_ok_and(|output| output.status.success());
        if !works {
            return Err(Fault::Skipped("a file system may not be mounted here".to_owned()));
        }
        Ok(Self { folder: folder.to_owned() })
    }

    fn remount(&self, options: &str) -> Outcome {
        let options = format!("remount,{options}");
        let output = Command::new("mount").args(["-o", &options, &self.folder]).output()?;
        ensure!(output.status.success(), "remount: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Leaves room for a random number of blocks or inodes.
    fn shrink(&self, attempt: &mut Attempt) -> Outcome {
        let output = Command::new("stat").args(["-f", "-c", "%b %f %S %c %d", &self.folder]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [blocks, free, size, inodes, free_inodes] = numbers[..] else {
            return Err(Fault::new(format!("stat -f printed `{text}`")));
        };
        if attempt.random.bool() {
            let bytes = (blocks - free + attempt.random.u64(..60)) * size;
            self.remount(&format!("size={bytes}"))
        } else {
            self.remount(&format!("size=64m,nr_inodes={}", inodes - free_inodes + attempt.random.u64(..40)))
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}
