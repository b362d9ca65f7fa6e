//! Many nights on one page: what is counted, what is linked, and how large it gets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_evaluator::history::{self, History, LeftOut, Place};
use serde_json::json;
use tempfile::TempDir;

/// A night with these cases, whose new run started at a time.
fn night(time: &str, verdicts: impl IntoIterator<Item = Verdict>) -> Evaluation {
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

fn place(folder: &str) -> Place {
    Place { folder: folder.to_owned(), href: Some(format!("../{folder}/index.html")) }
}

struct Written {
    _folder: TempDir,
    out: Utf8PathBuf,
    html: String,
}

fn written(history: &History, left_out: &[LeftOut]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap().join("history");
    history::prepare(&out).unwrap();
    let page = history::write(&out, history, left_out).unwrap();
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
fn nights_stand_in_the_order_of_their_times_and_cases_tell_since_when_they_are_wrong() {
    use Verdict::{Broken, Changed, Regressed, Unchanged};
    let mut history = History::default();
    for (folder, time, verdicts) in [
        ("c", "2026-11-03T02:00:00Z", [Regressed, Unchanged, Broken]),
        // Earlier than it looks: ten at night where it ran was two hours before the first of November in UTC.
        ("a", "2026-11-01T00:00:00+02:00", [Unchanged, Changed, Unchanged]),
        ("d", "2026-11-04T02:00:00Z", [Unchanged, Unchanged, Broken]),
        ("b", "2026-11-01T01:00:00Z", [Regressed, Unchanged, Unchanged]),
    ] {
        history.add(&night(time, verdicts), place(folder)).unwrap();
    }
    let html = written(&history, &[]).html;
    let nights = rows(&html, "evaluations");
    let folders: Vec<_> = nights.iter().map(|row| row.chars().take(13).collect::<String>()).collect();
    assert_eq!(folders, ["2026-11-04T02", "2026-11-03T02", "2026-11-01T01", "2026-11-01T00"]);
    let wrong = rows(&html, "failing");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("case_0002 ✗ failing since 2026-11-03"), "{wrong:?}");
    assert!(wrong[1].starts_with("case_0000 ✓ passing first failure 2026-11-01 failed in 2 of 4 nights"), "{wrong:?}");
    assert!(wrong[1].ends_with("2026-11-01T01:00:00Z\\u{202e}"), "the reason of the first wrong night: {wrong:?}");
    assert!(html.contains("<a href=\"../b/index.html\">2026-11-01</a>"), "{html}");
    assert!(html.contains("&#60;b&#62;") && !html.contains("<b>"), "a reason is text");
    let flips = rows(&html, "flips");
    assert!(
        flips[0].starts_with("case_0000 flips 2 times") && flips[1].starts_with("case_0002 flips 1 time "),
        "{flips:?}"
    );
}

#[test]
fn the_same_comparison_counts_once_and_what_is_left_out_is_told() {
    let mut history = History::default();
    let only = night("2026-11-01T01:00:00Z", [Verdict::Unchanged]);
    history.add(&only, place("report")).unwrap();
    assert_eq!(history.add(&only, place("runs/new/x")).unwrap_err().folder, "report");
    assert_eq!(history.len(), 1);
    let torn = LeftOut { path: "nights/<torn>".into(), why: "it has no end".to_owned() };
    let html = written(&history, &[torn]).html;
    assert!(html.contains("`nights/&#60;torn&#62;` is left out: it has no end"), "{html}");
    assert!(html.contains("No case failed in any evaluation.") && html.contains("1 night, 2026-11-01"), "{html}");
}

#[test]
fn a_year_of_a_thousand_cases_stays_small_and_needs_neither_scripts_nor_styles_of_its_own() {
    let mut history = History::default();
    // Whether a case is wrong in a night hangs on both as if by chance, so that nothing folds together.
    let verdict = |night: u64, case: u64| {
        let mixed = (night.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ case.wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
            .wrapping_mul(0x1656_67B1_9E37_79F9);
        Verdict::ALL[(mixed >> 40) as usize % Verdict::ALL.len()]
    };
    for number in 0..365_u64 {
        let time = format!("2026-{:02}-{:02}T02:00:00Z", number / 31 + 1, number % 31 + 1);
        history
            .add(&night(&time, (0..1000).map(|case| verdict(number, case))), place(&format!("nights/{time}")))
            .unwrap();
    }
    let page = written(&history, &[]);
    let size = page.html.len();
    assert!(size < 5_000_000, "{size}");
    for forbidden in ["style=", "<style", "onclick", "javascript:", "http:", "https:"] {
        assert!(!page.html.contains(forbidden), "{forbidden}");
    }
    // The one script is a file of the folder, and nothing on the page needs it.
    assert_eq!(page.html.matches("<script").count(), page.html.matches("<script src=\"static/").count());
    for link in page.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let is_night = link.starts_with("../nights/");
        assert!(is_night || link.starts_with('#') || page.out.join(link).is_file(), "{link}");
    }
}

#[test]
fn a_folder_of_something_else_is_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap();
    counterproof_store::write::write(&out.join("mine.txt"), b"mine", counterproof_store::write::Durability::Cached)
        .unwrap();
    assert!(history::prepare(out).is_err());
    assert_eq!(out.read_dir_utf8().unwrap().count(), 1);
}
