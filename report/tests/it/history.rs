//! The history page: its counts, its links and its size.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_report::history::{EvaluationSource, History, HistoryFolder, SkippedPath};
use serde_json::json;
use tempfile::TempDir;

/// An evaluation with one case per verdict, whose new run started at a time.
fn evaluation(time: &str, verdicts: impl IntoIterator<Item = Verdict>) -> Evaluation {
    let case = |(number, verdict): (usize, Verdict)| {
        let reason = format!("<b>{verdict}</b> at {time}\u{202e}");
        json!({"case_id": format!("case_{number:04}"), "verdict": verdict,
               "reasons": [{"code": "output-changed", "message": reason, "pointers": []}]})
    };
    let run = |id: &str| json!({"run_id": id, "generated_at": time, "runner_version": "x", "cases_selected": 1});
    serde_json::from_value(json!({
        "schema_version": "evaluation.v1", "evaluator_version": "x", "baseline": run("good"),
        "new": run(&format!("n{}", time.replace([':', '+'], "-"))), "counts": {},
        "gate": {"passed": false, "outcome": "failed", "rules": []},
        "cases": verdicts.into_iter().enumerate().map(case).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn source(folder: &str) -> EvaluationSource {
    EvaluationSource { folder: folder.to_owned(), href: Some(format!("../{folder}/index.html")) }
}

struct Written {
    _folder: TempDir,
    out: Utf8PathBuf,
    html: String,
}

fn written(history: &History, skipped: &[SkippedPath]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap().join("history");

    let page = HistoryFolder::begin(&out).unwrap().write(history, skipped).unwrap();
    let html = std::fs::read_to_string(page).unwrap();
    Written { _folder: folder, out, html }
}

/// The rows of the table under a heading, their tags taken away.
fn rows(html: &str, heading: &str) -> Vec<String> {
    let section = html.split(&format!("<h2 id=\"{heading}\">")).nth(1).unwrap();
    let body = section.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let text = |row: &str| {
        let texts: Vec<_> =
            row.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim()).collect();
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    };
    body.split("<tr>").skip(1).map(text).collect()
}

#[test]
fn evaluations_are_sorted_by_time_and_cases_show_since_when_they_fail() {
    use Verdict::{Broken, Changed, Regressed, Unchanged};
    let mut history = History::default();
    for (folder, time, verdicts) in [
        ("c", "2026-11-03T02:00:00Z", [Regressed, Unchanged, Broken]),
        // 22:00 on 31 October in UTC, so the first of the four.
        ("a", "2026-11-01T00:00:00+02:00", [Unchanged, Changed, Unchanged]),
        ("d", "2026-11-04T02:00:00Z", [Unchanged, Unchanged, Broken]),
        ("b", "2026-11-01T01:00:00Z", [Regressed, Unchanged, Unchanged]),
    ] {
        history.add(&evaluation(time, verdicts), source(folder)).unwrap();
    }
    let html = written(&history, &[]).html;
    let evaluations = rows(&html, "evaluations");
    let folders: Vec<_> = evaluations.iter().map(|row| row.chars().take(13).collect::<String>()).collect();
    assert_eq!(folders, ["2026-11-04T02", "2026-11-03T02", "2026-11-01T01", "2026-11-01T00"]);
    let failing = rows(&html, "failing");
    assert_eq!(failing.len(), 2, "{failing:?}");
    assert!(failing[0].starts_with("case_0002 ✗ failing since 2026-11-03"), "{failing:?}");
    assert!(failing[1].starts_with("case_0000 ✓ passing first failure 2026-11-01 failed in 2 of 4 "), "{failing:?}");
    assert!(failing[1].ends_with("2026-11-01T01:00:00Z\\u{202e}"), "the reason of the first failure: {failing:?}");
    assert!(html.contains("<a href=\"../b/index.html\">2026-11-01</a>"), "{html}");
    assert!(html.contains("&#60;b&#62;") && !html.contains("<b>"), "a reason is text");
    let flips = rows(&html, "flips");
    assert!(
        flips[0].starts_with("case_0000 flips 2 failed in") && flips[1].starts_with("case_0002 flips 1 failed in"),
        "{flips:?}"
    );
}

#[test]
fn a_comparison_counts_once_and_skipped_folders_are_named() {
    let mut history = History::default();
    let only = evaluation("2026-11-01T01:00:00Z", [Verdict::Unchanged]);
    history.add(&only, source("report")).unwrap();
    assert_eq!(history.add(&only, source("runs/new/x")).unwrap_err().folder, "report");
    assert_eq!(history.len(), 1);
    let torn = SkippedPath { path: "nights/<torn>".into(), reason: "it has no end".to_owned() };
    let html = written(&history, &[torn]).html;
    assert!(html.contains("skipped `nights/&#60;torn&#62;`: it has no end"), "{html}");
    assert!(html.contains("No case failed in any evaluation.") && html.contains("1 evaluation, 2026-11-01"), "{html}");
}

#[test]
fn a_year_of_a_thousand_cases_stays_small_without_scripts_and_inline_styles() {
    let mut history = History::default();
    // Pseudo-random verdicts, so that adjacent evaluations do not merge into one stretch.
    let verdict = |evaluation: u64, case: u64| {
        let mixed = (evaluation.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ case.wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
            .wrapping_mul(0x1656_67B1_9E37_79F9);
        Verdict::ALL[(mixed >> 40) as usize % Verdict::ALL.len()]
    };
    for number in 0..365_u64 {
        let time = format!("2026-{:02}-{:02}T02:00:00Z", number / 31 + 1, number % 31 + 1);
        history
            .add(&evaluation(&time, (0..1000).map(|case| verdict(number, case))), source(&format!("nights/{time}")))
            .unwrap();
    }
    let page = written(&history, &[]);
    let size = page.html.len();
    assert!(size < 5_000_000, "{size}");
    for forbidden in ["style=", "<style", "onclick", "javascript:", "http:", "https:"] {
        assert!(!page.html.contains(forbidden), "{forbidden}");
    }
    // Any script is a file of the folder.
    assert_eq!(page.html.matches("<script").count(), page.html.matches("<script src=\"static/").count());
    for link in page.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let is_report = link.starts_with("../nights/");
        assert!(is_report || link.starts_with('#') || page.out.join(link).is_file(), "{link}");
    }
}

#[test]
fn a_folder_with_other_content_is_never_changed() {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap();
    counterproof_store::write::write(&out.join("mine.txt"), b"mine", counterproof_store::write::Durability::Cached)
        .unwrap();
    assert!(HistoryFolder::begin(out).is_err());
    assert_eq!(out.read_dir_utf8().unwrap().count(), 1);
}
