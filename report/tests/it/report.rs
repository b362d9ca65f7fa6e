//! The report's pages: complete, and harmless whatever an agent says.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, failure_of, step};
use crate::links::{assert_whole, attributes, files, pages, tags};
use crate::reported::Reported as _;

/// What an agent or a foreign runner could try.
const HOSTILE: &str = "</pre></code></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onclick='x' {{7*7}} \
                       <!-- ]]> javascript:alert(1) \u{202e}desrever\u{0}\u{1b}[31m";

/// A case id that needs care in a link.
const ODD: &str = "worse[a,1]~@=+(x)";

/// A pair with a case of nearly every kind.
pub(crate) fn every_kind() -> Pair {
    use Side::{Baseline, New};
    let found = step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}));
    let looked = answer_of(&json!({"events": found}));
    let refund = |amount: u64, refs: &[&str]| {
        let action = action("a1", "refund", &json!({"order": 1, "amount": amount}), refs);
        answer_of(&json!({"events": found, "proposed_actions": [action]}))
    };
    let body = json!({"body_snippet": "<h1>no", "full_body_saved_to": "assets/broken.body.bin"});
    Pair::empty()
        .with(Baseline, "same", &refund(50, &["c1"]))
        .with(New, "same", &refund(50, &["c1"]))
        .with(Baseline, ODD, &refund(50, &["c1"]))
        .with(New, ODD, &refund(500, &["gone"]))
        .with(Baseline, "changed", &answer_of(&outputs(50)))
        .with(New, "changed", &answer_of(&outputs(500)))
        .with(Baseline, "broken", &looked)
        .with(New, "broken", &failure_of(&body))
        .with_asset(New, "broken.body.bin", b"<h1>no</h1>")
        .with(Baseline, "missing", &looked)
        .with(Baseline, "invalid", &looked)
        .with(New, "invalid", &json!({"schema_version": "case.v1", "status": 7}))
        .selecting("absent")
}

fn outputs(amount: u64) -> Value {
    let text = format!("Hello.\nYour refund of {amount} is on its way.\nGoodbye.");
    json!({"final_output": {"content_type": "text", "content": text}})
}

#[test]
fn every_link_of_every_page_leads_somewhere_within_the_folder() {
    let pair = every_kind();
    let report = pair.report();
    assert!(assert_whole(&report) > 100);
    assert_eq!(case_pages(&report), 7);
}

/// How many cases have a page.
pub(crate) fn case_pages(report: &Utf8Path) -> usize {
    pages(report).keys().filter(|name| name.starts_with("cases")).count()
}

#[test]
fn the_first_page_shows_the_gate_and_lists_the_worst_first() {
    let pair = every_kind().with_field(Side::Baseline, "model", json!("model-baseline")).with_field(
        Side::New,
        "model",
        json!("model-new"),
    );
    let report = pair.report();
    let index = &pages(&report)[Utf8Path::new("index.html")];
    assert!(index.contains("<h1 id=\"decision\">Do not ship: "), "{index}");
    let rows = &index[index.find("id=\"rows\"").unwrap()..];
    let order: Vec<_> = ["not compared", "failed to answer", "worse", "different", "same"]
        .iter()
        .map(|word| rows.find(&format!("</span> {word}</span>")).unwrap_or_else(|| panic!("{word}: {rows}")))
        .collect();
    assert!(order.is_sorted(), "{order:?}");
    assert!(index.contains("model-baseline") && index.contains("model-new"));
}

#[test]
fn one_change_in_many_cases_is_one_group_with_a_list() {
    let found = step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}));
    let refunded = |amount: u64| {
        let refund = action("a1", "refund", &json!({"order": 1, "amount": amount}), &["c1"]);
        answer_of(&json!({"events": found, "proposed_actions": [refund]}))
    };
    let ids: Vec<_> = (0..30).map(|number| format!("case-{number:02}")).collect();
    let pair = ids.iter().fold(Pair::empty(), |pair, id| {
        pair.with(Side::Baseline, id, &refunded(50)).with(Side::New, id, &refunded(500))
    });
    let report = pair.report();
    assert_whole(&report);
    let pages = pages(&report);
    let index = &pages[Utf8Path::new("index.html")];
    assert_eq!(index.matches("class=\"group\"").count(), 1, "{index}");
    assert!(index.contains("30 cases") && index.contains("href=\"lists/pattern-1-1.html\""), "{index}");
    assert!(index.matches("href=\"cases/").count() < ids.len());
    assert!(index.contains("refund amount 50 → 500"), "{index}");
    for list in ["lists/pattern-1-1.html", "lists/different-1.html", "lists/high-risk-1.html"] {
        let page = &pages[Utf8Path::new(list)];
        assert!(ids.iter().all(|id| page.contains(&format!("href=\"../cases/{id}.html\""))), "{list}: {page}");
    }
}

#[test]
fn lists_and_case_pages_show_time_size_and_cost_where_the_runs_have_them() {
    let events = |count: u32| -> Vec<Value> {
        let call = |id: u32| step(&format!("c{id}"), "get_order", &json!({"id": id}), &json!({"total": 50}));
        (0..count).flat_map(call).collect()
    };
    let answer = |steps: u32, millis: u32, cost: f64| {
        let attempt =
            json!({"attempt": 1, "started_at": "2026-11-20T00:00:00Z", "latency_ms": millis, "outcome": "ok"});
        let usage = json!({"input_tokens": 1000, "output_tokens": 200, "cost": cost, "currency": "USD"});
        answer_of(&json!({"attempts": [attempt], "events": events(steps), "usage": usage}))
    };
    let pair = Pair::with_answers(&answer(2, 5000, 0.01), &answer(40, 6000, 0.0143));
    let report = pair.report();
    let pages = pages(&report);
    let index = &pages[Utf8Path::new("index.html")];
    for (name, baseline, new, change) in [
        ("duration", "5 s", "6 s", "+20 %"),
        ("steps", "2", "40", "×20"),
        ("tokens", "1200", "1200", "unchanged"),
        ("cost", "0.01 USD", "0.0143 USD", "+43 %"),
    ] {
        let row =
            format!("<th scope=\"row\">{name}</th><td>{baseline}</td><td>{new}</td><td class=\"soft\">{change}</td>");
        assert!(index.contains(&row), "{row}: {index}");
    }
    let data = std::fs::read_to_string(report.join("static/search/0.js")).unwrap();
    assert!(data.contains("\"5\u{a0}s → 6\u{a0}s\""), "{data}");
    let case = &pages[Utf8Path::new("cases/refund_001.html")];
    let cell = |text: &str| format!("<td class=\"figure\"><bdi>{text}</bdi></td>");
    for row in [["0.01 USD", "0.0143 USD"], ["24 ms", "480 ms"], ["5 s", "6 s"]] {
        let pair = row.map(cell).join("\n");
        assert!(case.contains(&pair), "{pair}: {case}");
    }
    assert!(case.contains("<td class=\"figure\">+43 %</td>") && case.contains("<td class=\"figure\">unchanged</td>"));
}

#[test]
fn quantities_that_no_run_reports_are_not_recorded() {
    let pair = every_kind();
    let report = pair.report();
    let index = &pages(&report)[Utf8Path::new("index.html")];
    for name in ["duration", "tokens", "cost"] {
        let row = format!("<th scope=\"row\">{name}</th><td>–</td><td>–</td><td class=\"soft\">not recorded</td>");
        assert!(index.contains(&row), "{row}: {index}");
    }
}

#[test]
fn the_search_data_has_all_searchable_fields() {
    let pair = every_kind().titled("Where is my money?");
    let report = pair.report();
    let data = std::fs::read_to_string(report.join("static/search/0.js")).unwrap();
    for expected in ["\"refund\"", "\"get_order\"", "Where is my money?", "output-changed", "\"unmet\"", "\"failed\""] {
        assert_eq!(data.contains(expected), expected != "\"unmet\"", "{expected}: {data}");
    }
    let index = &pages(&report)[Utf8Path::new("index.html")];
    for choice in ["<option value=\"refund\">refund (2)</option>", "data-find=\"show=failed\""] {
        assert!(index.contains(choice), "{choice}: {index}");
    }
}

#[test]
fn a_case_page_has_its_position_and_cases_of_a_pattern_are_a_filter() {
    let answer = |words: &str| answer_of(&json!({"final_output": {"content_type": "text", "content": words}}));
    let mut pair = Pair::empty();
    for id in ["a", "b", "c"] {
        let new = if id == "b" { "Sent." } else { "Sent, and paid." };
        pair = pair.with(Side::Baseline, id, &answer("Sent.")).with(Side::New, id, &answer(new));
    }
    let report = pair.report();
    let pages = pages(&report);
    let page = &pages[Utf8Path::new("cases/b.html")];
    assert!(page.contains("<span id=\"position\" class=\"small soft\">case 2 of 3</span>"), "{page}");
    // The pages of a comparison share the name of its marks.
    let name = |page: &str| attributes(page, "data-report");
    let index = &pages[Utf8Path::new("index.html")];
    let list = &pages[Utf8Path::new("lists/different-1.html")];
    assert!(name(index)[0].len() == 16 && name(index) == name(page) && name(index) == name(list), "{index}");
    assert_eq!(attributes(list, "data-filter"), ["show=different"]);
    let data = std::fs::read_to_string(report.join("static/search/0.js")).unwrap();
    assert!(data.contains("\"pattern-1\""), "{data}");
    assert!(!pages.contains_key(Utf8Path::new("lists/pattern-1-1.html")), "the index shows all of its cases");
}

#[test]
fn a_case_page_shows_old_and_new_values_and_where_evidence_leads() {
    let pair = every_kind();
    let report = pair.report();
    let pages = pages(&report);
    let page = &pages[Utf8Path::new(&format!("cases/{ODD}.html"))];
    for expected in [
        "\"amount\": <mark>50</mark>}",
        "\"amount\": <mark>500</mark>}",
        "href=\"#baseline-event-1\"",
        "unresolved",
        "href=\"../artifacts/new/worse%5Ba%2C1%5D~%40%3D%2B%28x%29.json\"",
        "id=\"baseline-event-1\"",
        "id=\"new-event-1\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let page = &pages[Utf8Path::new("cases/changed.html")];
    assert!(page.contains("Your refund of <del>50</del><ins>500</ins> is on its way."), "{page}");
}

#[test]
fn a_page_has_a_replay_command_only_if_a_request_was_stored() {
    let kept = answer_of(&json!({"request_asset_href": "assets/kept.request.json"}));
    let mut pair = Pair::empty().with_asset(Side::Baseline, "kept.request.json", b"{}");
    for side in Side::BOTH {
        // A link to a request that is not there is none.
        pair = pair.with(side, "kept", &kept).with(side, "not-kept", &answer_of(&json!({})));
    }
    let report = pair.report();
    let pages = pages(&report);
    assert!(
        pages[Utf8Path::new("cases/kept.html")].contains("counterproof replay artifacts/baseline/kept.json</code>")
    );
    assert!(!pages[Utf8Path::new("cases/not-kept.html")].contains("counterproof replay"));
}

#[test]
fn a_truncated_output_links_to_the_whole() {
    let output = |word: &str| {
        let lines: Vec<_> = (0..3_000).map(|line| format!("{word} {line}")).collect();
        answer_of(&json!({"final_output": {"content_type": "text", "content": lines.join("\n")}}))
    };
    let pair = Pair::empty()
        .with(Side::Baseline, "long", &output("old"))
        .with(Side::New, "long", &output("new"))
        .with(Side::Baseline, "short", &answer_of(&outputs(50)))
        .with(Side::New, "short", &answer_of(&outputs(500)));
    let report = pair.report();
    let pages = pages(&report);
    let of = |id: &str| {
        let page = &pages[Utf8Path::new(&format!("cases/{id}.html"))];
        page.split("id=\"output\"").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
    };
    let long = of("long");
    for side in Side::BOTH {
        assert!(long.contains(&format!("href=\"../artifacts/{side}/long.json\"")), "{long}");
    }
    assert!(!of("short").contains("href=\"../artifacts"));
}

#[test]
fn a_message_of_a_reason_is_not_repeated_as_first_divergence_or_cause() {
    let looked = |id: u64| {
        let found = step("c1", "get_order", &json!({"id": id}), &json!({"total": 50}));
        answer_of(&json!({"events": found}))
    };
    let pair = Pair::empty().with(Side::Baseline, "asked", &looked(1)).with(Side::New, "asked", &looked(2));
    let report = pair.report();
    let evaluation = pair.evaluation();
    let row = &evaluation.cases[0];
    let first = row.first_divergence.as_ref().unwrap();
    assert_eq!((&first.message, &first.pointers), (&row.reasons[0].message, &row.reasons[0].pointers));
    let page = &pages(&report)[Utf8Path::new("cases/asked.html")];
    let reasons = page.split("id=\"reasons\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert_eq!(reasons.matches(&first.message).count(), 1, "{page}");
    assert!(page.contains("<span>first divergence</span>") && !page.contains("<h3>First divergence</h3>"));
}

#[test]
fn the_page_shows_where_the_sides_go_separate_ways_to_the_end() {
    let read = |records: &[&str]| {
        let steps = records.iter().enumerate();
        let steps = steps.flat_map(|(index, id)| step(&format!("c{index}"), "read", &json!({"id": id}), &json!({})));
        answer_of(&json!({"events": steps.collect::<Vec<_>>()}))
    };
    let pair = Pair::empty().with(Side::Baseline, "parted", &read(&["A1", "A2", "A3", "B4", "B5"])).with(
        Side::New,
        "parted",
        &read(&["A1", "A9", "A2", "A3", "C4", "C5"]),
    );
    let page = &pages(&pair.report())[Utf8Path::new("cases/parted.html")];
    assert!(page.contains("<h3>Lasting divergence</h3>"), "{page}");
    let shown = pair.evaluation().cases.remove(0).lasting_divergence.unwrap();
    assert_eq!(shown.pointers[1].pointer, "/events/8");
    assert!(page.contains(&shown.message), "{page}");
}

#[test]
fn a_side_without_an_answer_leaves_a_page_complete() {
    let pair = every_kind();
    let report = pair.report();
    let pages = pages(&report);
    let page = |id: &str| &pages[Utf8Path::new(&format!("cases/{id}.html"))];
    assert!(page("broken").contains("assets/broken.body.bin") && page("broken").contains("&#60;h1&#62;no"));
    assert!(page("broken").contains("id=\"baseline-event-1\""), "what the baseline did is shown");
    assert!(page("missing").contains("new has no artifact of this case"));
    assert!(page("invalid").contains("id=\"new-violations\"") && page("invalid").contains("invalid.json, line "));
    assert!(page("absent").contains("neither side has an artifact"));
}

#[test]
fn text_of_an_agent_never_becomes_markup() {
    let mut pair = Pair::empty();
    for (side, id) in [(Side::Baseline, "c1"), (Side::New, "c2")] {
        let mut act = action(HOSTILE, HOSTILE, &json!({HOSTILE: format!("{HOSTILE}{side}")}), &[id, HOSTILE]);
        act["action_type"] = json!(HOSTILE);
        act["risk_tags"] = json!([HOSTILE]);
        let args = json!({HOSTILE: HOSTILE, "long": HOSTILE.repeat(10)});
        let mut events = step(id, HOSTILE, &args, &json!(HOSTILE)).to_vec();
        events.push(json!({"type": HOSTILE, "ts": 2000, HOSTILE: HOSTILE}));
        events
            .push(json!({"type": "retrieval", "ts": 2000, "query": format!("{HOSTILE}{side}"), "doc_ids": [HOSTILE]}));
        let text = format!("{HOSTILE} {side}\nsame\n{HOSTILE}");
        let answer = json!({
            "proposed_actions": [act],
            "events": events,
            "final_output": {"content_type": "text", "content": text},
            "workflow_id": HOSTILE,
        });
        let object = json!({"content_type": "json", "content": {HOSTILE: format!("{HOSTILE}{side}")}});
        let failure = json!({
            "error_name": HOSTILE,
            "error_message": HOSTILE,
            "status_text": HOSTILE,
            "url": format!("http://x/{HOSTILE}"),
            "body_snippet": HOSTILE,
            "full_body_saved_to": "assets/failed.body.bin",
        });
        pair = pair
            .with(side, "hostile", &answer_of(&answer))
            .with(side, "json", &answer_of(&json!({"final_output": object})))
            .with_asset(side, "failed.body.bin", HOSTILE.as_bytes())
            .with(side, "failed", &failure_of(&failure));
    }
    let pair = pair.titled(HOSTILE);
    let report = pair.report();
    assert_whole(&report);
    for (name, page) in pages(&report) {
        let root = if name.components().count() > 1 { "../" } else { "" };
        let own = format!("<script src=\"{root}static/");
        assert_eq!(page.matches("<script").count(), page.matches(&own).count(), "{name}: only the page's own");
        assert!(page.matches(&own).count() <= 4, "{name}: only the page's own");
        for markup in ["<img", "<!--"] {
            assert!(!page.contains(markup), "{name}: {markup}");
        }
        for tag in tags(&page) {
            // Between the values, which may say anything.
            let names: String = tag.split('"').step_by(2).collect();
            for attribute in ["onclick", "onerror", "style"] {
                assert!(!names.contains(attribute), "{name}: {tag}");
            }
        }
        assert!(!page.contains(['\u{202e}', '\u{0}', '\u{1b}']), "{name}: invisible characters are spelled out");
        for attribute in ["onclick", "onerror", "onload"] {
            assert!(attributes(&page, attribute).is_empty(), "{name}: {attribute}");
        }
    }
    let page = &pages(&report)[Utf8Path::new("cases/hostile.html")];
    assert!(page.contains("&#60;script&#62;alert(1)") && page.contains("\\u{202e}"));
    let data = std::fs::read_to_string(report.join("static/search/0.js")).unwrap();
    assert!(data.contains("alert(1)") && !data.contains(['<', '\u{202e}', '\u{0}', '\u{1b}']), "{data}");
}

#[test]
fn assets_are_copied_under_names_that_browsers_do_not_execute() {
    let names = ["x.html", "x.svg", "x.js", "x.xml", "no extension", "a%2e #?é.json", "plain.txt"];
    let mut pair = Pair::empty();
    let mut events = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let [call, mut result] = step(&format!("c{index}"), "fetch", &json!({}), &json!("short"));
        result["payload_asset_href"] = json!(format!("assets/{name}"));
        events.extend([call, result]);
        for side in Side::BOTH {
            pair = pair.with_foreign_asset(side, name, b"<script>alert(1)</script>");
        }
    }
    let answer = answer_of(&json!({"events": events}));
    let pair = pair.with(Side::Baseline, "assets", &answer).with(Side::New, "assets", &answer);
    let report = pair.report();
    assert_whole(&report);
    let copied: Vec<_> = files(&report).into_keys().filter(|name| name.starts_with("artifacts/new")).collect();
    for name in &names[5..] {
        assert!(copied.iter().any(|copy| copy == &format!("artifacts/new/assets/{name}")), "{name}: {copied:?}");
    }
    for name in &names[..5] {
        let copy = format!("artifacts/new/as-text/assets/{name}.txt");
        assert!(copied.iter().any(|found| found == &copy), "{name}: {copied:?}");
    }
}

/// What a reader of a page sees.
#[cfg(unix)]
fn without_tags(page: &str) -> String {
    let after_tags = page.split('<').enumerate().map(|(index, part)| match part.split_once('>') {
        Some((_, text)) if index > 0 => text,
        _ => part,
    });
    after_tags.collect()
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_out_of_the_run_is_not_copied() {
    let mut act = action("a1", "refund", &json!({}), &[]);
    act["evidence_refs"] = json!([{"kind": "asset", "id": "assets/leak.txt"}]);
    let [call, mut result] = step("c1", "fetch", &json!({}), &json!("short"));
    result["payload_asset_href"] = json!("assets/leak.txt");
    let answer = answer_of(&json!({"events": [call, result], "proposed_actions": [act]}));
    let mut pair = Pair::empty().selecting("linked");
    let secret = pair.path().join("secret.txt");
    write::write(&secret, b"top secret", Durability::Cached).unwrap();
    for side in Side::BOTH {
        pair = pair.with(side, "leak", &answer).with_foreign_asset(side, "other.txt", b"-");
        std::os::unix::fs::symlink(&secret, pair.folder(side).join("assets/leak.txt")).unwrap();
        std::os::unix::fs::symlink(&secret, pair.folder(side).join("linked.json")).unwrap();
    }
    let report = pair.report();
    assert_whole(&report);
    for (name, bytes) in files(&report) {
        // A mark around a part of the secret would hide it from a search of the source.
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("top secret") && !without_tags(&text).contains("top secret"), "{name}");
    }
}

#[test]
fn a_huge_answer_has_a_page_of_bounded_size() {
    let answer = |side: Side| {
        let line = format!("a line of {side} that is long enough to fill a page some day\n");
        let rows: Vec<_> = (0..20_000).map(|n| json!({"n": n, "side": side})).collect();
        let step = |n| step(&format!("c{n}"), "list", &json!({"rows": rows[..100]}), &json!({"n": n}));
        answer_of(&json!({
            "events": (0..50).flat_map(step).collect::<Vec<_>>(),
            "proposed_actions": [action("a1", "store", &json!({"rows": rows}), &[])],
            "final_output": {"content_type": "text", "content": line.repeat(20_000)},
        }))
    };
    let [baseline, new] = Side::BOTH.map(answer);
    let pair = Pair::empty().with(Side::Baseline, "huge", &baseline).with(Side::New, "huge", &new);
    let report = pair.report();
    assert_whole(&report);
    let size = pages(&report)[Utf8Path::new("cases/huge.html")].len();
    assert!(size < 5_000_000, "{size}");
}

/// The page of the only case.
fn case_page(pair: &Pair) -> String {
    pages(&pair.report())[&Utf8PathBuf::from(format!("cases/{CASE}.html"))].clone()
}

/// A call with these annotations.
fn annotated(annotations: &Value) -> Value {
    let [mut call, result] = step("c1", "shop.buy", &json!({"sku": "lamp"}), &json!({"paid": 1}));
    call["annotations"] = annotations.clone();
    answer_of(&json!({"events": [call, result]}))
}

#[test]
fn annotations_of_equal_calls_are_shown_once_or_those_of_both_sides() {
    let page = |old: &Value, new: &Value| case_page(&Pair::with_answers(&annotated(old), &annotated(new)));
    let (money, stock) = (json!({"tags": ["money"]}), json!({"tags": ["stock"]}));
    let differing = page(&money, &stock);
    assert!(differing.contains("annotations of new") && differing.contains("annotations of baseline"), "{differing}");
    let one_sided = page(&json!({}), &stock);
    assert!(one_sided.contains("annotations of new"), "{one_sided}");
    let equal = page(&money, &money);
    assert!(equal.contains("annotations") && !equal.contains("annotations of"), "{equal}");
}

#[test]
fn calls_that_a_policy_in_observe_mode_would_refuse_are_for_review() {
    let observed = |action: &str| json!({"observed": {"action": action, "rule_id": "no-buy", "reason_code": "NO"}});
    let review = |annotations: &Value| {
        let pair = Pair::with_answers(&annotated(&json!({})), &annotated(annotations));
        pair.evaluation().gate.review.into_iter().find(|item| item.code == "would-be-refused")
    };
    let item = review(&observed("BLOCK")).unwrap();
    assert_eq!(item.message, "1 call would be refused: shop.buy (no-buy)");
    assert_eq!((item.pointers[0].side, item.pointers[0].pointer.as_str()), (Side::New, "/events/0"));
    for annotations in [observed("ALLOW"), json!({"observed": "BLOCK"}), json!({"tags": ["money"]})] {
        assert!(review(&annotations).is_none(), "{annotations}");
    }
}

#[test]
fn a_recorded_run_has_its_status_instead_of_an_answer() {
    let attempt = json!([{"attempt": 1, "started_at": "2026-11-20T00:00:00Z", "latency_ms": 12, "outcome": "ok"}]);
    let recorded = |content: Value| {
        let output = json!({"content_type": "json", "content": content});
        answer_of(&json!({"attempts": attempt, "recorded_run": {"sources": []}, "final_output": output}))
    };
    let failed = recorded(json!({"status": "FAILED", "agent": "exit code 1"}));
    let page = case_page(&Pair::with_answers(&recorded(json!({"status": "SUCCEEDED"})), &failed));
    assert!(page.contains("✗</span> FAILED (agent: exit code 1)"), "{page}");
    assert!(page.contains("✓</span> SUCCEEDED") && !page.contains("answered"), "{page}");
}
