//! `run.json`: what is known of a run before its first request, and after its last.

use counterproof_artifact::{Case, Extra, Outcome, Run, RunSchema, Stats, UntilDecided};
use counterproof_redaction::{Applied, Redactor};
use std::time::Duration;

use camino::Utf8Path;

use crate::agent::Protocol;
use crate::event::Counts;
use crate::folder::relative_path::{absolute, relative};
use crate::policy::concurrency::Concurrency;
use crate::record::selection::Selection;
use crate::settings::run_settings::{PhaseTimeouts, Rounds, Settings};
use crate::settings::target::Target;
use crate::system::checkout::Checkout;
use crate::system::clock::Moment;

/// The field that says that a run was stopped before its end.
const INTERRUPTED: &str = "interrupted";

/// The fields that say how hard the agent is pressed, where the contract has none.
const PACE: [&str; 3] = ["concurrency_auto", "rate", "fail_fast"];

/// The document as it is before the first request.
pub(crate) fn started(
    settings: &Settings,
    selection: &Selection<'_>,
    checkout: Option<&Checkout>,
    (folder, redactor): (&Utf8Path, &Redactor),
    start: Moment,
) -> Run {
    let folder = absolute(folder);
    let mut extra: Extra =
        agent(settings, redactor).into_iter().chain(phases(settings)).chain(pace(settings)).collect();
    redactor.object(&mut extra, &mut Applied::default());
    let text = |text: &str| redactor.text(text, &mut Applied::default());
    Run {
        schema_version: RunSchema::V1,
        run_id: settings.run_id.clone(),
        version: settings.side,
        generated_at: start.iso(),
        base_url: text(&settings.target.recorded()),
        cases_path: text(&relative(&absolute(&settings.cases_path), &folder)),
        out_dir: text(&relative(&absolute(&settings.out), &folder)),
        selected_case_ids: selection.cases.iter().map(|case| case.id.clone()).collect(),
        runner_version: concat!("counterproof ", env!("CARGO_PKG_VERSION")).to_owned(),
        repo_commit: checkout.map(|checkout| checkout.commit.clone()),
        dirty: checkout.map(|checkout| checkout.dirty),
        node_version: None,
        timeout_ms: Some(millis(settings.timeout).into()),
        retries: Some(u64::from(settings.retry.retries).into()),
        concurrency: Some(settings.concurrency.max().get().into()),
        retry_policy: Some(settings.retry.document()),
        limits: Some(settings.limits.document()),
        case_digests: Some(selection.digests.clone()),
        cases_digest: Some(selection.digest),
        shard: selection.shard.clone(),
        group_id: settings.repeat.as_ref().map(|repeat| repeat.group_id.clone()),
        repeat: settings.repeat.as_ref().map(|repeat| u64::from(repeat.number).into()),
        accepted: None,
        repeats: settings.repeat.as_ref().map(|repeat| u64::from(repeat.of).into()),
        until_decided: settings.repeat.as_ref().and_then(|repeat| repeat.until_decided.as_ref()).map(until_decided),
        stats: None,
        extra,
    }
}

fn until_decided(rounds: &Rounds) -> UntilDecided {
    UntilDecided { against: rounds.against.clone(), full_rounds: u64::from(rounds.full).into(), extra: Extra::new() }
}

/// What the agent speaks and what it is told beside the cases, where that is not what every agent is.
fn agent(settings: &Settings, redactor: &Redactor) -> Extra {
    let mut extra = Extra::new();
    if settings.protocol != Protocol::Native {
        extra.insert("protocol".to_owned(), settings.protocol.as_str().into());
        extra.extend(settings.agent.document(redactor));
    }
    if !settings.headers.is_empty() {
        // Their values are kept nowhere.
        let mut names: Vec<_> = settings.headers.iter().map(|header| header.name().as_str()).collect();
        names.sort_unstable();
        extra.insert("request_headers".to_owned(), names.into());
    }
    extra
}

/// The time-outs of an attempt's phases, which only a server has. The address that stands for a name is not mentioned: it is to
/// the name what any other way of resolving it would be.
fn phases(settings: &Settings) -> Extra {
    let Target::Http(_) = &settings.target else { return Extra::new() };
    let PhaseTimeouts { connect, first_byte, idle } = settings.phases;
    let mut phases = Extra::new();
    phases.insert("connect".to_owned(), millis(connect).into());
    if let Some(first_byte) = first_byte {
        phases.insert("first_byte".to_owned(), millis(first_byte).into());
    }
    phases.insert("idle".to_owned(), millis(idle).into());
    [("phase_timeouts_ms".to_owned(), phases.into())].into_iter().collect()
}

/// The document of a run that goes on: as it was started, without what its end added, and as fast as is asked now.
pub(crate) fn restarted(mut started: Run, now: &Run) -> Run {
    started.extra.remove(INTERRUPTED);
    for name in PACE {
        started.extra.remove(name);
    }
    started.extra.extend(
        now.extra
            .iter()
            .filter(|(name, _)| PACE.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Run { stats: None, concurrency: now.concurrency, ..started }
}

/// True for the artifact of a case that was never asked: it is as good as missing.
pub(crate) fn is_unasked(artifact: &Case) -> bool {
    let Outcome::RunnerError(failure) = &artifact.outcome else { return false };
    failure.error_name.as_deref() == Some("not_run")
}

/// What the contract has no field for; what was not asked for is not mentioned.
fn pace(settings: &Settings) -> Extra {
    let auto = matches!(settings.concurrency, Concurrency::Auto { .. });
    let values = [
        auto.then(|| true.into()),
        settings.rate.map(|rate| rate.to_string().into()),
        settings.fail_fast.map(|limit| limit.get().into()),
    ];
    PACE.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The same document with how the run went.
pub(crate) fn ended(run: Run, counts: &Counts, duration: Duration, interrupted: bool) -> Run {
    let stats = Stats {
        cases_total: Some(counts.selected.into()),
        cases_completed: Some(counts.answered.into()),
        cases_failed: Some(counts.failed.into()),
        duration_ms: Some(millis(duration).into()),
        extra: [
            ("cases_retried".to_owned(), counts.retried.into()),
            ("attempts_total".to_owned(), counts.attempts.into()),
        ]
        .into_iter()
        .chain((counts.not_asked > 0).then(|| ("cases_not_run".to_owned(), counts.not_asked.into())))
        .chain((counts.over_budget > 0).then(|| ("cases_over_retry_budget".to_owned(), counts.over_budget.into())))
        .collect(),
    };
    let mut run = Run { stats: Some(stats), ..run };
    if interrupted {
        run.extra.insert(INTERRUPTED.to_owned(), true.into());
    }
    run
}

/// Whole milliseconds, the part behind the point cut off.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
