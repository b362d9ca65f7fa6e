//! Generators of values of every wire type, for property tests.

use std::collections::BTreeMap;
use std::fmt::Debug;

use counterproof_artifact::{
    Accepted, Answer, AssetKind, Attempt, AttemptOutcome, Backoff, Case, CaseId, Confirmation, Content, ContentType,
    Count, Event, EventBody, EvidenceRef, EvidenceTarget, Extra, FailureClass, FailureMeta, FailureMetaSchema,
    FinalOutput, FinalOutputEvent, Href, Labels, LabelsSchema, Limits, Manifest, ManifestItem, ManifestSchema, Mark,
    Millis, Nullable, Outcome, ProposedAction, Retrieval, RetryPolicy, Review, ReviewMark, ReviewSchema, RiskLevel,
    Run, RunId, RunSchema, RunnerFailure, Sha256Digest, ShardOf, Side, Stats, ToolCall, ToolResult, ToolStatus, Usage,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

pub(crate) fn text() -> impl Strategy<Value = String> {
    "\\PC{0,8}|[\"\\\\\u{0}-\u{1f}退é]{0,4}"
}

/// Generates JSON whose numbers survive a round trip.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((text(), inner), 0..3).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

pub(crate) fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), json_value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

/// Generates unknown fields.
pub(crate) fn extra() -> impl Strategy<Value = Extra> {
    vec(("x-[a-z]{1,3}", json_value()), 0..2).prop_map(|pairs| pairs.into_iter().collect())
}

pub(crate) fn count() -> impl Strategy<Value = Count> {
    (0..=9_007_199_254_740_991_u64).prop_map(Count::from)
}

pub(crate) fn ordinal() -> impl Strategy<Value = Count> {
    (1..100_u64).prop_map(Count::from)
}

pub(crate) fn millis() -> impl Strategy<Value = Millis> {
    let number =
        prop_oneof![any::<u64>().prop_map(Value::from), any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0))];
    number.prop_map(|number| serde_json::from_value(number).unwrap())
}

pub(crate) fn case_id() -> impl Strategy<Value = CaseId> {
    "case[a-z0-9_.-]{0,8}[a-z0-9]".prop_map(|id| id.parse().unwrap())
}

pub(crate) fn run_id() -> impl Strategy<Value = RunId> {
    "[A-Z]{5,9}".prop_map(|id| id.parse().unwrap())
}

pub(crate) fn href() -> impl Strategy<Value = Href> {
    "assets/[a-z0-9 %é]{1,8}".prop_map(|href| href.parse().unwrap())
}

fn digests() -> impl Strategy<Value = Option<BTreeMap<CaseId, Sha256Digest>>> {
    option::of(btree_map(case_id(), digest(), 0..3))
}

pub(crate) fn digest() -> impl Strategy<Value = Sha256Digest> {
    any::<[u8; 4]>().prop_map(|bytes| Sha256Digest::from_bytes(&bytes))
}

pub(crate) fn side() -> impl Strategy<Value = Side> {
    select(&Side::BOTH[..])
}

pub(crate) fn risk_level() -> impl Strategy<Value = RiskLevel> {
    select(&[RiskLevel::High, RiskLevel::Medium, RiskLevel::Low, RiskLevel::Unknown][..])
}

pub(crate) fn content() -> impl Strategy<Value = Content> {
    prop_oneof![text().prop_map(Content::Text), object().prop_map(Content::Json)]
}

pub(crate) fn content_type() -> impl Strategy<Value = ContentType> {
    select(&[ContentType::Text, ContentType::Json][..])
}

pub(crate) fn nullable<T: Clone + Debug + 'static>(
    inner: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Nullable<T>> {
    prop_oneof![Just(Nullable::Absent), Just(Nullable::Null), inner.prop_map(Nullable::Value)].boxed()
}

prop_compose! {
    pub(crate) fn retry_policy()(
        classes in option::of(vec(text(), 0..3)), backoff in option::of(Just(Backoff::Exponential)),
        jitter: Option<bool>, extra in extra(),
    ) -> RetryPolicy {
        RetryPolicy { classes, backoff, jitter, extra }
    }
}

prop_compose! {
    pub(crate) fn limits()(
        max_body_bytes in option::of(count()), max_inline_snippet_bytes in option::of(count()),
        max_payload_inline_bytes in option::of(count()), extra in extra(),
    ) -> Limits {
        Limits { max_body_bytes, max_inline_snippet_bytes, max_payload_inline_bytes, extra }
    }
}

prop_compose! {
    pub(crate) fn stats()(
        cases_total in option::of(count()), cases_completed in option::of(count()),
        cases_failed in option::of(count()), duration_ms in option::of(millis()), extra in extra(),
    ) -> Stats {
        Stats { cases_total, cases_completed, cases_failed, duration_ms, extra }
    }
}

prop_compose! {
    pub(crate) fn shard_of()(
        run_id in run_id(), [index, count, cases_total] in [count(), count(), count()], positions in vec(count(), 0..3),
        extra in extra(),
    ) -> ShardOf {
        ShardOf { run_id, index, count, cases_total, positions, extra }
    }
}

prop_compose! {
    pub(crate) fn review()(
        marks in vec((case_id(), select(Mark::ALL.to_vec()), extra()), 0..4), extra in extra(),
    ) -> Review {
        let marks = marks.into_iter().map(|(case_id, mark, extra)| ReviewMark { case_id, mark, extra }).collect();
        Review { schema_version: ReviewSchema::V1, marks, extra }
    }
}

prop_compose! {
    pub(crate) fn accepted()(
        at in text(), reason in text(), from_run_id in run_id(), by in option::of(text()), review in option::of(review()),
        extra in extra(),
    ) -> Accepted {
        Accepted { at, reason, from_run_id, by, review, extra }
    }
}

prop_compose! {
    pub(crate) fn confirmation()(
        of in run_id(), against in vec(run_id(), 0..3), index in option::of(count()), count in option::of(count()),
        ends_early: Option<bool>, extra in extra(),
    ) -> Confirmation {
        Confirmation { of, against, index, count, ends_early, extra }
    }
}

prop_compose! {
    pub(crate) fn run()(
        (run_id, version, selected_case_ids) in (run_id(), side(), vec(case_id(), 0..3)),
        [generated_at, base_url, cases_path, out_dir, runner_version] in [text(), text(), text(), text(), text()],
        [cases_path_as_passed, repo_commit, node_version] in [option::of(text()), option::of(text()), option::of(text())],
        dirty: Option<bool>,
        timeout_ms in option::of(millis()),
        (retries, concurrency) in (option::of(count()), option::of(count())),
        (retry_policy, limits, stats) in (option::of(retry_policy()), option::of(limits()), option::of(stats())),
        (case_digests, expectation_digests, cases_digest) in (digests(), digests(), option::of(digest())),
        (shard, group_id) in (option::of(shard_of()), option::of(run_id())),
        (repeat, repeats, accepted) in (option::of(count()), option::of(count()), option::of(accepted())),
        confirmation in option::of(confirmation().boxed()),
        deterministic: Option<bool>,
        extra in extra(),
    ) -> Run {
        Run {
            schema_version: RunSchema::V1, run_id, version, generated_at, base_url, cases_path, cases_path_as_passed, out_dir,
            selected_case_ids, runner_version, repo_commit, dirty, node_version, timeout_ms, retries, concurrency,
            retry_policy, limits, case_digests, expectation_digests, cases_digest, shard, group_id, repeat, repeats, accepted,
            confirmation, deterministic, stats, extra,
        }
    }
}

pub(crate) fn attempt() -> impl Strategy<Value = Attempt> {
    let outcome = prop_oneof![
        Just((AttemptOutcome::Ok, None)),
        option::of(select(&FailureClass::ALL[..])).prop_map(|class| (AttemptOutcome::RunnerError, class)),
    ];
    (ordinal(), text(), option::of(millis()), outcome, extra()).prop_map(
        |(attempt, started_at, latency_ms, (outcome, error_class), extra)| Attempt {
            attempt,
            started_at,
            latency_ms,
            outcome,
            error_class,
            extra,
        },
    )
}

pub(crate) fn evidence_ref() -> impl Strategy<Value = EvidenceRef> {
    let target = prop_oneof![
        text().prop_map(|call_id| EvidenceTarget::ToolResult { call_id }),
        text().prop_map(|doc_id| EvidenceTarget::RetrievalDoc { doc_id }),
        text().prop_map(|id| EvidenceTarget::Event { id }),
        text().prop_map(|id| EvidenceTarget::Asset { id }),
    ];
    (target, extra()).prop_map(|(target, extra)| EvidenceRef { target, extra })
}

prop_compose! {
    pub(crate) fn proposed_action()(
        [action_id, action_type, tool_name] in [text(), text(), text()], params in object(),
        risk_level in risk_level(), risk_tags in vec(text(), 0..2), evidence_refs in vec(evidence_ref(), 0..3),
        extra in extra(),
    ) -> ProposedAction {
        ProposedAction { action_id, action_type, tool_name, params, risk_level, risk_tags, evidence_refs, extra }
    }
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let call = (
        text(),
        option::of(text()),
        text(),
        object(),
        option::of(risk_level()),
        option::of(vec(text(), 0..2)),
        option::of(object()),
        extra(),
    )
        .prop_map(|(call_id, action_id, tool, args, risk_level, risk_tags, annotations, extra)| {
            EventBody::ToolCall(ToolCall { call_id, action_id, tool, args, risk_level, risk_tags, annotations, extra })
        });
    let status = select(&[ToolStatus::Ok, ToolStatus::Error][..]);
    let payload = (option::of(content()), option::of(href()), option::of(digest()));
    let result = (text(), option::of(text()), status, millis(), payload, extra()).prop_map(
        |(call_id, action_id, status, latency_ms, (summary, href, digest), extra)| {
            EventBody::ToolResult(ToolResult {
                call_id,
                action_id,
                status,
                latency_ms,
                payload_summary: summary,
                payload_asset_href: href,
                payload_asset_sha256: digest,
                extra,
            })
        },
    );
    let retrieval = (text(), vec(text(), 0..3), option::of(vec(text(), 0..2)), option::of(href()), extra()).prop_map(
        |(query, doc_ids, snippets_hashes, snippets_asset_href, extra)| {
            EventBody::Retrieval(Retrieval { query, doc_ids, snippets_hashes, snippets_asset_href, extra })
        },
    );
    let output = (content_type(), content(), extra()).prop_map(|(content_type, content, extra)| {
        EventBody::FinalOutput(FinalOutputEvent { content_type, content, extra })
    });
    // Known field names with any value: a later event type may use them differently.
    let field = prop_oneof![Just("call_id".to_owned()), Just("status".to_owned()), "x-[a-z]{1,3}"];
    let unknown = ("later_[a-z]{0,4}", vec((field, json_value()), 0..3))
        .prop_map(|(kind, fields)| EventBody::Unknown { kind, fields: fields.into_iter().collect() });
    (millis(), prop_oneof![call, result, retrieval, output, unknown]).prop_map(|(ts, body)| Event { ts, body })
}

pub(crate) fn final_output() -> impl Strategy<Value = FinalOutput> {
    (content_type(), content(), option::of(text()), option::of(vec(text(), 0..2)), extra()).prop_map(
        |(content_type, content, output_hash, redactions_applied, extra)| FinalOutput {
            content_type,
            content,
            output_hash,
            redactions_applied,
            extra,
        },
    )
}

prop_compose! {
    pub(crate) fn runner_failure()(
        class in select(&FailureClass::ALL[..]), url in text(), attempt in ordinal(),
        (timeout_ms, latency_ms) in (option::of(millis()), option::of(millis())),
        (status, has_status) in (100..=599_u64, any::<bool>()),
        [status_text, error_name, error_message] in [option::of(text()), option::of(text()), option::of(text())],
        body in option::of((option::of(text()), href())), meta in nullable(href()), extra in extra(),
    ) -> RunnerFailure {
        let (body_snippet, full_body_saved_to) = match body {
            Some((snippet, href)) => (snippet, Some(href)),
            None => (None, None),
        };
        RunnerFailure {
            class, url, attempt, timeout_ms, latency_ms,
            status: (has_status || class == FailureClass::HttpError).then(|| status.into()),
            status_text, error_name, error_message, body_snippet, full_body_saved_to,
            full_body_meta_saved_to: meta, extra,
        }
    }
}

prop_compose! {
    pub(crate) fn usage()(
        [input_tokens, output_tokens, cached_tokens] in [option::of(count()), option::of(count()), option::of(count())],
        cost in option::of(0.0..1e6_f64), currency in option::of(text()), extra in extra(),
    ) -> Usage {
        Usage { input_tokens, output_tokens, cached_tokens, cost, currency, extra }
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let answer = (vec(proposed_action(), 0..3), vec(event(), 0..5), final_output()).prop_map(
        |(proposed_actions, events, final_output)| Outcome::Ok(Answer { proposed_actions, events, final_output }),
    );
    let outcome = prop_oneof![2 => answer, 1 => runner_failure().prop_map(Outcome::RunnerError)];
    (case_id(), side(), option::of(text()), option::of(vec(attempt(), 0..3)), option::of(usage()), outcome, extra())
        .prop_map(|(case_id, version, workflow_id, attempts, usage, outcome, extra)| Case {
            case_id,
            version,
            workflow_id,
            attempts,
            usage,
            outcome,
            extra,
        })
}

prop_compose! {
    pub(crate) fn failure_meta()(
        case_id in option::of(case_id()), version in option::of(side()), class in option::of(text()),
        (content_type, encoding, bytes_total) in (nullable(text()), nullable(text()), nullable(count())),
        bytes_written in option::of(count()), truncated: Option<bool>, sha256 in option::of(digest()),
        headers in option::of(object()), note in option::of(text()), extra in extra(),
    ) -> FailureMeta {
        FailureMeta {
            schema_version: FailureMetaSchema::V1, case_id, version, class, content_type, encoding, bytes_written,
            bytes_total, truncated, sha256, headers, note, extra,
        }
    }
}

prop_compose! {
    pub(crate) fn labels()(solved in btree_map(case_id(), any::<bool>(), 0..4), extra in extra()) -> Labels {
        Labels { schema_version: LabelsSchema::V1, solved, extra }
    }
}

prop_compose! {
    pub(crate) fn manifest_item()(
        asset_id in text(), href in href(), case_id in option::of(case_id()), side in option::of(side()),
        kind in select(&[
            AssetKind::FullBody, AssetKind::FailureMeta, AssetKind::FullPayload, AssetKind::RetrievalSnippets,
            AssetKind::Other,
        ][..]),
        size_bytes in count(), sha256 in option::of(digest()), extra in extra(),
    ) -> ManifestItem {
        ManifestItem { asset_id, href, kind, case_id, side, size_bytes, sha256, extra }
    }
}

prop_compose! {
    pub(crate) fn manifest()(generated_at in text(), items in vec(manifest_item(), 0..4), extra in extra()) -> Manifest {
        Manifest { schema_version: ManifestSchema::V1, generated_at, items, extra }
    }
}
