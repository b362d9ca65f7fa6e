//! The report folder: relocatable, reproducible, and with only the selected pages.

use camino::Utf8Path;
use counterproof_artifact::evaluation::CaseEvaluation;
use counterproof_artifact::{CaseId, Side};
use counterproof_evaluator::{ComparedRun, Request};
use counterproof_report::{PageSelection, ReportError, ReportWriter, encode_path};
use counterproof_store::RunReader;
use counterproof_store::write::{self, Durability};
use serde_json::json;

use crate::kit::{Pair, answer_of};
use crate::links::{assert_whole, files, pages};
use crate::report::{case_pages, every_kind};
use crate::reported::Reported as _;

#[test]
fn the_same_runs_give_the_same_bytes_on_any_path_and_none_is_absolute() {
    let pair = every_kind();
    let (first, second) = (pair.path().join("one"), pair.path().join("a").join("deeper place"));
    pair.report_into(&first).unwrap();
    pair.report_into(&second).unwrap();
    let (first, second) = (files(&first), files(&second));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in first {
        assert!(bytes == second[&name], "{name} differs");
        assert!(!String::from_utf8_lossy(&bytes).contains(pair.path().as_str()), "{name} names this machine's path");
    }
}

#[test]
fn a_report_that_is_moved_is_still_whole() {
    let pair = every_kind();
    let report = pair.report();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = Utf8Path::from_path(elsewhere.path()).unwrap().join("report");
    for (name, bytes) in files(&report) {
        write::create_folder(moved.join(&name).parent().unwrap()).unwrap();
        write::write(&moved.join(&name), &bytes, Durability::Cached).unwrap();
    }
    drop(pair);
    assert_whole(&moved);
}

#[test]
fn a_second_report_removes_all_files_of_the_first() {
    let first = every_kind();
    let out = first.path().join("report");
    first.report_into(&out).unwrap();
    let second = Pair::empty().with(Side::New, "only", &answer_of(&json!({})));
    second.report_into(&out).unwrap();
    let names: Vec<_> = files(&out).into_keys().map(|name| name.to_string()).collect();
    assert!(names.iter().all(|name| !name.contains("broken") && !name.contains("worse")), "{names:?}");
    assert_whole(&out);
}

#[test]
fn a_folder_that_is_no_report_is_not_touched() {
    let pair = every_kind();
    let out = pair.path().join("mine");
    write::create_folder(&out.join("cases")).unwrap();
    write::write(&out.join("cases/thesis.txt"), b"years of work", Durability::Cached).unwrap();
    write::write(&out.join("evaluation.json"), b"{}", Durability::Cached).unwrap();
    assert!(matches!(pair.report_into(&out), Err(ReportError::Foreign { .. })));
    assert_eq!(files(&out).len(), 2);
}

#[test]
fn a_run_within_the_report_folder_is_not_cleared_away() {
    let pair = every_kind();
    let out = pair.report();
    let copies = [Side::Baseline, Side::New].map(|side| out.join("artifacts").join(side.as_str()));
    let before = files(&out);
    let [baseline, new] = copies.map(|copy| ComparedRun::new(RunReader::open(&copy).unwrap()).into());
    let request = Request::new(baseline, new);
    let refused = ReportWriter::create(&out, &request);
    assert!(matches!(refused, Err(ReportError::RunInside { .. })));
    assert_eq!(files(&out).len(), before.len());
}

#[test]
fn neighbours_are_the_nearest_cases_that_have_a_page() {
    let pair = every_kind();
    let out = pair.path().join("report");
    let request = pair.request();
    let report = ReportWriter::create(&out, &request).unwrap().with_pages(PageSelection::Changed);
    let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
    report.finish(&evaluation).unwrap();
    let chosen: Vec<_> = evaluation.cases.iter().filter(|case| PageSelection::Changed.includes(case.verdict)).collect();
    assert!(chosen.len() > 2 && chosen.len() < evaluation.cases.len());
    let pages = pages(&out);
    let link = |case: Option<&&CaseEvaluation>, rel: &str| {
        let of = |id: &CaseId| format!("<a href=\"{}.html\" rel=\"{rel}\">", encode_path(id.as_str()));
        case.map_or_else(String::new, |case| of(&case.case_id))
    };
    for (index, case) in chosen.iter().enumerate() {
        let page = &pages[Utf8Path::new(&format!("cases/{}.html", case.case_id))];
        for (neighbour, rel) in [(index.checked_sub(1), "prev"), (Some(index + 1), "next")] {
            let expected = neighbour.and_then(|place| chosen.get(place));
            assert_eq!(page.matches(&format!("rel=\"{rel}\"")).count(), usize::from(expected.is_some()));
            assert!(page.contains(&link(expected, rel)), "{}: {rel}", case.case_id);
        }
    }
}

#[test]
fn unselected_pages_are_neither_written_nor_linked() {
    let pair = every_kind();
    let request = pair.request();
    for (selection, expected) in [(PageSelection::All, 7), (PageSelection::Changed, 6), (PageSelection::None, 0)] {
        let out = pair.path().join(format!("report-{selection:?}"));
        let report = ReportWriter::create(&out, &request).unwrap().with_pages(selection);
        let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
        report.finish(&evaluation).unwrap();
        assert_whole(&out);
        assert_eq!(case_pages(&out), expected, "{selection:?}");
        let index = std::fs::read_to_string(out.join("index.html")).unwrap();
        let cases = &index[index.find("id=\"rows\"").unwrap()..];
        assert_eq!(cases.matches("href=\"cases/").count(), expected, "{selection:?}");
        assert!(index.contains("absent"), "a case without a page is still listed");
    }
}
