//! Reports under kills, concurrent writers and full disks: a reader always finds the old report or the new one, never a mixture.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, Durability};
use counterproof_tests::{Finished, Sandbox, UNSHARE, files_below, program};

use crate::stepping::{resume, stop_when};

const BASELINE: &str = "runs/baseline/sample-baseline";
const NEW: &str = "runs/new/sample-new";

/// Number of kills of each command.
const KILLS: u32 = 40;

/// The file that identifies a report or a history by its content.
const MARKER: &str = "static/about.txt";

/// The files of a report.
type Files = Vec<(Utf8PathBuf, Vec<u8>)>;

/// A command that writes a report, with two inputs that give different reports.
struct Reporter {
    name: &'static str,
    first: &'static [&'static str],
    second: &'static [&'static str],
}

const COMPARE: Reporter = Reporter {
    name: "compare",
    first: &["compare", BASELINE, NEW, "--cases", "cases.json", "--no-write-back"],
    second: &["compare", NEW, BASELINE, "--no-write-back"],
};

const REPORT: Reporter = Reporter {
    name: "report",
    first: &["report", "one/evaluation.json", "--baseline", BASELINE, "--new", NEW, "--cases", "cases.json"],
    second: &["report", "two/evaluation.json", "--baseline", NEW, "--new", BASELINE],
};

const HISTORY: Reporter = Reporter { name: "history", first: &["history", "one"], second: &["history", "one", "two"] };

impl Reporter {
    fn arguments(&self, is_first: bool, out: &str) -> Vec<String> {
        let arguments = if is_first { self.first } else { self.second };
        arguments.iter().chain(&["--out", out]).map(|argument| (*argument).to_owned()).collect()
    }

    #[track_caller]
    fn run(&self, sandbox: &Sandbox, is_first: bool, out: &str) -> Finished {
        let finished = sandbox.run(self.arguments(is_first, out));
        assert!(matches!(finished.code, Some(0 | 1)), "{}: {finished}", self.name);
        finished
    }

    /// The two whole reports. Every report of the command must be equal to one of them.
    fn whole_reports(&self, sandbox: &Sandbox) -> [Files; 2] {
        let reports = [("1", true), ("2", false)].map(|(number, is_first)| {
            let out = format!("whole-{}-{number}", self.name);
            self.run(sandbox, is_first, &out);
            assert_links_resolve(&sandbox.path(&out));
            files_below(&sandbox.path(&out))
        });
        assert!(reports[0] != reports[1], "{}", self.name);
        reports
    }
}

/// The checked-in sample, with the evaluations of two comparisons.
fn sample() -> Sandbox {
    let checked_in = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
    let mut sandbox = Sandbox::new();
    for (path, bytes) in files_below(&checked_in) {
        sandbox = sandbox.with_file(path.as_str(), &String::from_utf8(bytes).unwrap());
    }
    COMPARE.run(&sandbox, true, "one");
    COMPARE.run(&sandbox, false, "two");
    sandbox
}

/// Asserts that every link of every page to a file has its file.
#[track_caller]
fn assert_links_resolve(folder: &Utf8Path) {
    let mut links = 0;
    for (path, bytes) in files_below(folder).into_iter().filter(|(path, _)| path.extension() == Some("html")) {
        let html = String::from_utf8(bytes).unwrap();
        let parts = html.split(" href=\"").skip(1).chain(html.split(" src=\"").skip(1));
        for link in parts.map(|rest| rest.split(['"', '#', '?']).next().unwrap()) {
            if link.is_empty() || link.contains(':') {
                continue;
            }
            links += 1;
            let target = folder.join(&path).parent().unwrap().join(link.replace("&#38;", "&"));
            assert!(target.exists(), "{path}: {link}");
        }
    }
    assert!(links > 0, "{folder} has no links");
}

/// The names in the root of the sandbox that start with `.tmp-`.
fn unfinished(sandbox: &Sandbox) -> Vec<String> {
    let names = sandbox.root().read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned());
    names.filter(|name| name.starts_with(".tmp-")).collect()
}

/// Returns the number of the whole report that is in the folder; `None` where there is no folder.
#[track_caller]
fn report_in(folder: &Utf8Path, whole: &[Files; 2]) -> Option<usize> {
    if !folder.exists() {
        return None;
    }
    let mut files = files_below(folder);
    files.retain(|(path, _)| path != "notes.txt");
    let found = whole.iter().position(|whole| *whole == files);
    assert!(found.is_some(), "a mixture: {:#?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>());
    found
}

fn start(sandbox: &Sandbox, arguments: &[String]) -> Child {
    sandbox.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn inode(folder: &Utf8Path) -> Option<u64> {
    folder.symlink_metadata().ok().map(|found| found.ino())
}

/// Kills the command at moments that are spread over its length, half of them where the report is published.
fn assert_kills_leave_a_whole_report(reporter: &Reporter) {
    let sandbox = sample();
    let whole = reporter.whole_reports(&sandbox);
    let report = sandbox.path("report");
    let begun = Instant::now();
    reporter.run(&sandbox, true, "report");
    let length = begun.elapsed().min(Duration::from_secs(2));
    std::fs::remove_dir_all(&report).unwrap();

    let mut before = None;
    let mut outcomes = BTreeSet::new();
    for number in 0..KILLS {
        let is_first = number % 2 == 0;
        let was = inode(&report);
        let mut child = start(&sandbox, &reporter.arguments(is_first, "report"));
        // The golden ratio spreads the moments without large gaps.
        let moment = length.mul_f64((f64::from(number) * 0.618_033_988_75).fract());
        if number % 4 < 2 {
            sleep(moment);
        } else {
            while inode(&report) == was && child.try_wait().unwrap().is_none() {
                std::hint::spin_loop();
            }
            sleep(moment / 500);
        }
        kill(child);
        let after = report_in(&report, &whole);
        assert!(after == before || after == Some(usize::from(!is_first)), "{}: {before:?} → {after:?}", reporter.name);
        outcomes.insert((after == before, unfinished(&sandbox).is_empty()));
        before = after;
        if number == KILLS / 4 && after.is_some() {
            write::write(&report.join("notes.txt"), b"mine", Durability::Cached).unwrap();
        }
    }
    assert!(outcomes.len() >= 3, "{}: the kills struck at too few different moments: {outcomes:?}", reporter.name);
    reporter.run(&sandbox, true, "report");
    assert_eq!((report_in(&report, &whole), unfinished(&sandbox)), (Some(0), Vec::new()));
    assert_eq!(std::fs::read(report.join("notes.txt")).unwrap(), b"mine", "{}", reporter.name);
    assert_links_resolve(&report);
}

#[test]
fn a_killed_compare_leaves_the_old_report_or_the_new_one() {
    assert_kills_leave_a_whole_report(&COMPARE);
}

#[test]
fn a_killed_report_leaves_the_old_report_or_the_new_one() {
    assert_kills_leave_a_whole_report(&REPORT);
}

#[test]
fn a_killed_history_leaves_the_old_page_or_the_new_one() {
    assert_kills_leave_a_whole_report(&HISTORY);
}

#[test]
fn a_second_writer_into_one_folder_is_refused_and_the_first_one_is_whole() {
    let sandbox = sample();
    for reporter in [COMPARE, REPORT, HISTORY] {
        let whole = reporter.whole_reports(&sandbox);
        let out = format!("busy-{}", reporter.name);
        let report = sandbox.path(&out);
        let staging = sandbox.path(&format!(".tmp-replace-{out}"));
        let stopped = (0..50).any(|_| {
            let mut child = start(&sandbox, &reporter.arguments(true, &out));
            let is_writing = stop_when(&child, || staging.exists() && !report.exists());
            if is_writing {
                let second = sandbox.run(reporter.arguments(false, &out));
                assert!(!matches!(second.code, Some(0 | 1)), "{second}");
                let expected = format!(
                    "error: another process is writing a {} to `{out}`",
                    match reporter.name {
                        "history" => "history",
                        _ => "report",
                    }
                );
                assert!(second.stderr.contains(&expected), "{second}");
                assert!(staging.exists() && !report.exists());
                resume(&child);
            }
            child.wait().unwrap();
            assert_eq!(report_in(&report, &whole), Some(0), "{}", reporter.name);
            std::fs::remove_dir_all(&report).unwrap();
            is_writing
        });
        assert!(stopped, "{} was never stopped in time", reporter.name);
    }
}

#[test]
fn writers_that_start_together_leave_one_whole_report() {
    let sandbox = sample();
    let whole = COMPARE.whole_reports(&sandbox);
    for _ in 0..10 {
        let children = [true, false, true, false].map(|is_first| {
            let mut command = sandbox.command(COMPARE.arguments(is_first, "report"));
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let ends = children.map(|child| child.wait_with_output().unwrap());
        assert!(ends.iter().any(|end| matches!(end.status.code(), Some(0 | 1))), "{ends:?}");
        for end in ends.iter().filter(|end| !matches!(end.status.code(), Some(0 | 1))) {
            let message = String::from_utf8_lossy(&end.stderr);
            assert!(message.contains("another process is writing a report to `report`"), "{message}");
        }
        assert!(report_in(&sandbox.path("report"), &whole).is_some());
        assert_eq!(unfinished(&sandbox), Vec::<String>::new());
    }
}

#[test]
fn a_folder_with_nothing_but_unfinished_files_is_taken_over() {
    let sandbox = sample();
    for reporter in [COMPARE, REPORT, HISTORY] {
        let whole = reporter.whole_reports(&sandbox);
        // Before its publication, and between its first renames in a folder that cannot be renamed itself.
        for (number, published) in [None, Some("index.html")].into_iter().enumerate() {
            let out = format!("left-{}-{number}", reporter.name);
            let unfinished = [".tmp-counterproof-AbCdEf", ".tmp-replace.lock", ".tmp-replace/static/report.js"];
            let put = |name: &str, bytes: &[u8]| {
                let path = sandbox.path(&out).join(name);
                write::create_folder(path.parent().unwrap()).unwrap();
                write::write(&path, bytes, Durability::Cached).unwrap();
            };
            unfinished.into_iter().chain(published).for_each(|name| put(name, b"half"));
            let (_, marker) = whole[0].iter().find(|(path, _)| path == MARKER).unwrap();
            put(&format!(".tmp-replace/{MARKER}"), marker);
            reporter.run(&sandbox, true, &out);
            assert!(files_below(&sandbox.path(&out)) == whole[0], "{}", reporter.name);
        }
    }
}

#[test]
fn a_folder_of_the_user_with_the_name_of_an_unfinished_report_is_left_unchanged() {
    let sandbox = sample();
    for reporter in [COMPARE, REPORT, HISTORY] {
        for staged in ["page.html", "static/about.txt", "static/report.js"] {
            let out = format!("mine-{}-{}", reporter.name, staged.replace('/', "-"));
            let sandbox = Sandbox::within(sandbox.root());
            let sandbox = ["index.html", "cases/thesis.html", &format!(".tmp-replace/{staged}")]
                .iter()
                .fold(sandbox, |sandbox, name| sandbox.with_file(&format!("{out}/{name}"), "mine"));
            let before = files_below(&sandbox.path(&out));
            assert_eq!(before.len(), 3);
            let refused = sandbox.run(reporter.arguments(true, &out));
            assert_eq!(refused.code, Some(2), "{}: {refused}", reporter.name);
            assert!(files_below(&sandbox.path(&out)) == before, "{}", reporter.name);
        }
    }
}

/// Runs a shell script in a mount namespace with an empty file system in the folder `small`, which is copied to `copy` at the
/// end. An error means that no file system may be mounted.
fn on_small_disk(sandbox: &Sandbox, options: &str, script: &str) -> Result<(Option<i32>, String), String> {
    let prepared = format!(
        "rm -rf copy; mkdir -p small copy && mount -t tmpfs -o {options} none small || exit 99\n\
         program() {{ {} \"$@\"; }}\n{script}\ncode=$?\nrm -rf small/fill; cp -r small/. copy/; exit $code",
        program().display()
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", UNSHARE, "sh", "--mount", "--map-root-user", "sh", "-c", &prepared])
        .current_dir(sandbox.root());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || said.contains("unshare:") {
        return Err(said);
    }
    Ok((output.status.code(), said))
}

/// Fills the disk in several steps around the size of a report: each time, the old report must stay whole.
#[test]
fn a_full_disk_leaves_the_old_report_whole() {
    let bytes = "head -c 100000000 /dev/zero > small/fill/bytes; truncate -s -$free small/fill/bytes";
    let inodes = "n=0; while touch small/fill/$n; do n=$((n + 1)); done; \
        for i in $(seq 1 $free); do rm small/fill/$((n - i)); done";
    for (options, fill, free) in
        [("size=4m", bytes, &[0, 4096, 65_536, 131_072][..]), ("size=64m,nr_inodes=400", inodes, &[0, 1, 2, 5, 30])]
    {
        for reporter in [COMPARE, REPORT, HISTORY] {
            let sandbox = sample();
            // As deep as `small/report`, since pages have links to the runs.
            let whole = [("a/whole", true), ("b/whole", false)].map(|(out, is_first)| {
                reporter.run(&sandbox, is_first, out);
                files_below(&sandbox.path(out))
            });
            for free in free {
                let command = |is_first| reporter.arguments(is_first, "small/report").join(" ");
                let script = format!(
                    "program {}; mkdir small/fill; free={free}; {{ {fill}; }} 2> /dev/null; program {}",
                    command(true),
                    command(false)
                );
                let (code, said) = match on_small_disk(&sandbox, options, &script) {
                    Ok(ended) => ended,
                    Err(said) => {
                        println!("skipped: a file system may not be mounted here: {said}");
                        return;
                    }
                };
                let found = report_in(&sandbox.path("copy/report"), &whole);
                let what = format!("{} with {options} and {free} free: {code:?} {said}", reporter.name);
                if matches!(code, Some(0 | 1)) {
                    assert_eq!(found, Some(1), "{what}");
                    continue;
                }
                assert_eq!((code, found), (Some(3), Some(0)), "{what}");
                assert!(said.contains("No space left on device"), "{what}");
                let left = sandbox.path("copy").read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path());
                let left: Vec<_> = left.filter(|path| path.file_name().unwrap().starts_with(".tmp-")).collect();
                assert_eq!(left, Vec::<Utf8PathBuf>::new(), "{what}");
            }
        }
    }
}
