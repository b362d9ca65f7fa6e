//! The links between reports and their history: from a report to a history that is written later, and back.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_tests::{Sandbox, files_below};

const BASELINE: &str = "runs/baseline/sample-baseline";
const NEW: &str = "runs/new/sample-new";

/// Creates a sandbox with the runs of the checked-in sample.
fn sample() -> Sandbox {
    Sandbox::new().with_sample_runs(".")
}

fn compare(sandbox: &Sandbox, runs: [&str; 2], more: &[&str]) {
    let known = ["compare", runs[0], runs[1], "--no-write-back"];
    let compared = sandbox.run(known.iter().chain(more));
    assert!(matches!(compared.code, Some(0 | 1)), "{compared}");
}

fn read(sandbox: &Sandbox, path: impl AsRef<Utf8Path>) -> String {
    let path = sandbox.path(path.as_ref().as_str());
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn decoded(link: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = link.bytes();
    while let Some(byte) = rest.next() {
        let digits: String = if byte == b'%' { rest.by_ref().take(2).map(char::from).collect() } else { String::new() };
        bytes.push(if digits.is_empty() { byte } else { u8::from_str_radix(&digits, 16).unwrap() });
    }
    String::from_utf8(bytes).unwrap()
}

/// The links of a page: the file that each leads to, relative to the sandbox. Each link is followed to its file and its element.
fn followed(sandbox: &Sandbox, page: &str) -> Vec<Utf8PathBuf> {
    let html = read(sandbox, page);
    let folder = Utf8Path::new(page).parent().unwrap();
    let follow = |link: &str| {
        let (path, id) = link.split_once('#').unwrap_or((link, ""));
        let file = if path.is_empty() { Utf8PathBuf::from(page) } else { folder.join(decoded(path)) };
        assert!(sandbox.path(file.as_str()).is_file(), "{page}: {link}");
        // The first page filters by its address.
        if !id.is_empty() && !id.starts_with("show=") {
            let found = format!(" id=\"{}\"", decoded(id));
            assert!(read(sandbox, &file).contains(&found), "{page}: {link} leads to no element");
        }
        file
    };
    html.split("href=\"").skip(1).map(|rest| follow(rest.split('"').next().unwrap())).collect()
}

/// Two nights with hostile names, and a history that is written after them.
fn nights(history: &str) -> (Sandbox, [String; 2]) {
    let sandbox = sample();
    let folders = ["all nights/1 #?%41", "all nights/2 <b>'"].map(str::to_owned);
    for (folder, runs) in folders.iter().zip([[BASELINE, NEW], [NEW, BASELINE]]) {
        compare(&sandbox, runs, &["--out", folder, "--history", history, "--pages", "all"]);
    }
    let written = sandbox.run(["history", "all nights", "--out", history]);
    assert_eq!(written.code, Some(0), "{written}");
    (sandbox, folders)
}

#[test]
fn a_report_leads_to_a_history_that_is_written_later_and_back() {
    for history in ["all nights/history", "past & future #1/page"] {
        let (sandbox, folders) = nights(history);
        let page = format!("{history}/index.html");
        let whole = |path: &Utf8PathBuf| sandbox.path(path.as_str()).canonicalize_utf8().unwrap();
        let reports: Vec<_> = followed(&sandbox, &page).iter().map(whole).collect();
        for folder in folders {
            assert!(reports.iter().any(|path| path.as_str().contains(&format!("/{folder}/cases/"))), "{reports:?}");
            for (path, _) in files_below(&sandbox.path(&folder)) {
                let is_case = path.starts_with("cases");
                if path == "index.html" || is_case {
                    let leads = followed(&sandbox, &format!("{folder}/{path}"));
                    let to_history = leads.iter().filter(|leads| {
                        let real = sandbox.path(leads.as_str()).canonicalize_utf8().unwrap();
                        real == sandbox.path(&page).canonicalize_utf8().unwrap()
                    });
                    // The first page links the history and the row of the night.
                    assert_eq!(to_history.count(), if is_case { 1 } else { 2 }, "{folder}/{path}: {leads:?}");
                }
            }
        }
    }
}

#[test]
fn without_the_option_only_a_history_next_to_the_report_is_linked() {
    let (sandbox, _) = nights("history");
    let links = |report: &str| read(&sandbox, format!("{report}/index.html")).matches("history/index.html").count();
    compare(&sandbox, [BASELINE, NEW], &["--out", "report"]);
    assert_eq!(links("report"), 2);
    compare(&sandbox, [BASELINE, NEW], &["--out", "elsewhere/report"]);
    assert_eq!(links("elsewhere/report"), 0);
    // An archive is unpacked anywhere.
    compare(&sandbox, [BASELINE, NEW], &["--out", "report", "--archive", "zip"]);
    assert_eq!(links("report"), 0);
}

#[test]
fn a_rendered_report_links_the_same_history() {
    let sandbox = sample();
    let history = ["--history", "past/history", "--pages", "all", "--cases", "cases.json"];
    compare(&sandbox, [BASELINE, NEW], &[&["--out", "first"][..], &history].concat());
    let again = ["report", "first/evaluation.json", "--out", "second", "--baseline", BASELINE, "--new", NEW];
    let rendered = sandbox.run(again.iter().chain(&history));
    assert_eq!(rendered.code, Some(0), "{rendered}");
    assert!(files_below(&sandbox.path("first")) == files_below(&sandbox.path("second")));
    let rendered = sandbox.run(["report", "first/evaluation.json", "--out", "third", "--history", "past/history"]);
    assert_eq!(rendered.code, Some(0), "{rendered}");
    assert!(read(&sandbox, "third/index.html").contains("\"../past/history/index.html\""));
}

#[test]
fn a_folder_that_cannot_have_the_history_is_refused() {
    let sandbox = sample();
    for folder in ["cases.json", "report", "report/history"] {
        let refused = sandbox.run(["compare", BASELINE, NEW, "--history", folder]);
        assert_eq!(refused.code, Some(2), "{folder}: {refused}");
        let message = format!("`{folder}` cannot be the folder of the history of the report `report`");
        assert!(refused.stderr.contains(&message) && refused.stderr.contains("`--history`"), "{refused}");
        assert!(!sandbox.path("report/index.html").exists());
    }
    let refused = sandbox.run(["compare", BASELINE, NEW, "--history", "history", "--archive", "zip"]);
    assert_eq!(refused.code, Some(2), "{refused}");
}
