//! The history page: its counts, its links and its size.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};
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
    let case_pages = ["case_0000.html".to_owned()].into();
    let href = Some(format!("../{folder}/index.html"));
    EvaluationSource { folder: folder.to_owned(), href, case_pages, model: None }
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
    body.split("<tr").skip(1).map(text).collect()
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
    assert!(evaluations[0].contains("2026-11-03"), "the previous night: {evaluations:?}");
    assert!(html.contains("<h1 id=\"now\">1 case is failing now</h1>"), "{html}");
    let failing = rows(&html, "failing");
    assert_eq!(failing.len(), 1, "{failing:?}");
    assert!(
        failing[0].starts_with("case_0002 ✗ failed to answer since 2026-11-03 failed in 2 of 4 = = ✗ ✗"),
        "{failing:?}"
    );
    let recovered = rows(&html, "recovered");
    assert_eq!(recovered.len(), 1, "{recovered:?}");
    assert!(recovered[0].starts_with("case_0000 = same failed in 2 of 4, 2 changes"), "{recovered:?}");
    assert!(recovered[0].ends_with("2026-11-01T01:00:00Z\\u{202e}"), "the reason of the first failure: {recovered:?}");
    assert!(html.contains("No case changed three times between failing and passing."), "{html}");
    // A case leads to its page in that night where it has one, and else to the report of the night.
    assert!(html.contains("href=\"../c/cases/case_0000.html\" title=\"2026-11-03: worse\""), "{html}");
    assert!(html.contains("href=\"../c/index.html\" title=\"2026-11-03: failed to answer\""), "{html}");
    assert!(html.contains("<title>case_0000: worse, 2026-11-03</title>"), "{html}");
    assert!(html.contains("&#60;b&#62;") && !html.contains("<b>2026"), "a reason is text");
}

/// An evaluation with one case, which looks worse in the only run of new.
fn unconfirmed(time: &str) -> Evaluation {
    let mut unconfirmed = evaluation(time, [Verdict::Regressed]);
    unconfirmed.cases[0].unconfirmed = true;
    unconfirmed.gate.outcome = GateOutcome::Passed;
    unconfirmed
}

#[test]
fn an_unconfirmed_pass_is_not_an_all_clear() {
    let mut history = History::default();
    history.add(&unconfirmed("2026-11-01T01:00:00Z"), source("a")).unwrap();
    let html = written(&history, &[]).html;
    assert!(html.contains("<h1 id=\"now\">1 case is failing now, none confirmed</h1>"), "{html}");
    assert!(html.contains("verdict-card open") && !html.contains("</span> passed</span>"), "{html}");
    assert!(html.contains("The gate passed in 0 of 1 night, and unconfirmed in 1."), "{html}");
    assert!(html.contains("case_0000: worse, unconfirmed, 2026-11-01"), "{html}");
}

#[test]
fn the_model_and_the_commit_are_named_where_they_change() {
    let mut history = History::default();
    for (day, commit, model) in [(1, "aaaaaaaaaa", "m-1"), (2, "aaaaaaaaaa", "m-1"), (3, "bbbbbbbbbb", "m-1")] {
        let mut night = evaluation(&format!("2026-11-0{day}T01:00:00Z"), [Verdict::Unchanged]);
        night.new.repo_commit = Some(commit.to_owned());
        history.add(&night, EvaluationSource { model: Some(model.to_owned()), ..source(&day.to_string()) }).unwrap();
    }
    let html = written(&history, &[]).html;
    let counts =
        ["<code>m-1</code>", "<code>aaaaaaaa</code>", "<code>bbbbbbbb</code>"].map(|part| html.matches(part).count());
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn every_count_is_that_of_the_evaluation() {
    let verdict = |night: usize, case: usize| Verdict::ALL[(case * case + 7 * night + case) % Verdict::ALL.len()];
    for cases in [20, 120] {
        let mut history = History::default();
        let nights: Vec<_> = (1..=9).map(|night| format!("2026-11-0{night}T02:00:00Z")).collect();
        for (night, time) in nights.iter().enumerate() {
            history.add(&evaluation(time, (0..cases).map(|case| verdict(night, case))), source(time)).unwrap();
        }
        let html = written(&history, &[]).html;
        let evaluations = rows(&html, "evaluations");
        let columns: Vec<_> = html.split("<p class=\"failed\" title=\"").skip(1).collect();
        for (night, column) in columns.iter().enumerate() {
            use Verdict as V;
            let count =
                |verdicts: &[Verdict]| (0..cases).filter(|case| verdicts.contains(&verdict(night, *case))).count();
            for (word, verdicts) in [
                ("worse", &[V::Regressed][..]),
                ("failed to answer", &[V::Broken, V::StillBroken]),
                ("not compared", &[V::Invalid, V::Missing, V::Added, V::NotComparable]),
                ("different", &[V::Changed, V::Undecided]),
                ("noise", &[V::Noisy]),
                ("better", &[V::Improved, V::Recovered]),
                ("same", &[V::Unchanged]),
            ] {
                let expected = format!(" {} {word} ", count(verdicts));
                let row = format!("{} ", evaluations[nights.len() - 1 - night]);
                assert!(row.contains(&expected), "{expected:?}: {row}");
            }
            let failing = count(&[V::Regressed, V::Broken, V::StillBroken, V::Invalid, V::Missing]);
            assert!(column.starts_with(&format!("{failing} of {cases} cases fail\"")), "{failing}: {column}");
        }
        // Each case is in one of the tables, and has one row that links lead to.
        assert_eq!(columns.len(), nights.len());
        assert_eq!(html.matches("<tr id=\"case-case_").count(), cases);
    }
}

#[test]
fn texts_of_a_night_are_never_markup() {
    let trick = "</title></svg><script>x()</script>\" onload='y()' \u{202e}";
    let mut history = History::default();
    let mut night = evaluation("2026-11-01T01:00:00Z", [Verdict::Regressed, Verdict::Unchanged]);
    night.new.repo_commit = Some(trick.to_owned());
    night.new.generated_at = trick.to_owned();
    night.cases[0].reasons[0].message = trick.to_owned();
    let named = EvaluationSource { model: Some(trick.to_owned()), ..source("a") };
    history.add(&night, named).unwrap();
    let skipped = SkippedPath { path: trick.into(), reason: trick.to_owned() };
    let html = written(&history, &[skipped]).html;
    // The tags of the template alone.
    assert!(!html.contains("<script") && !html.contains("</svg><") && !html.contains("\" onload"), "{html}");
    assert!(!html.contains('\u{202e}'), "{html}");
    assert!(html.matches("\\u{202e}").count() >= 4, "{html}");
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
    assert!(html.contains("No case fails in the last night that includes it.") && html.contains("1 night, 2026-11-01"));
    assert!(html.contains("No case fails in the only night, but its gate failed"), "{html}");
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
