//! `run.json` with the selected cases and their digests: the document before the first request, after a resume, and after the last request.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Confirmation, Extra, Run, RunSchema, Sha256Digest, ShardOf, Stats};
use counterproof_cases::{CaseSpec, cases_digest};
use counterproof_redaction::{Applied, Redactor};

use crate::agent::Protocol;
use crate::environment::{Checkout, Moment, whole_millis};
use crate::event::Counts;
use crate::folder::{FAILED_RUN, absolute, relative};
use crate::policy::{Concurrency, RunShard};
use crate::settings::{ConfirmationPlan, PhaseTimeouts, Settings, Target};

/// The field that marks a run that was stopped before its end.
const INTERRUPTED: &str = "interrupted";

/// The field that marks a run of a selection of the cases, which no command makes the baseline without a word.
const SELECTION: &str = "selection";

/// The fields of the pace, which are not in the contract.
const PACE: [&str; 3] = ["concurrency_auto", "rate", "fail_fast"];

/// The inputs of the document of a run that has not sent a request yet.
pub(crate) struct NewRun<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) selection: &'a Selection<'a>,
    pub(crate) checkout: Option<&'a Checkout>,
    pub(crate) folder: &'a Utf8Path,
    pub(crate) redactor: &'a Redactor,
    pub(crate) start: Moment,
}

impl NewRun<'_> {
    pub(crate) fn document(&self) -> Run {
        let Self { settings, selection, checkout, redactor, .. } = *self;
        let folder = absolute(self.folder);
        let mut extra: Extra =
            agent_fields(settings, redactor).into_iter().chain(phases(settings)).chain(pace(settings)).collect();
        // After all parts are in: any option of the agent can contain a secret.
        redactor.object(&mut extra, &mut Applied::default());
        let text = |text: &str| redactor.text(text, &mut Applied::default());
        let repeat = settings.repeat.as_ref();
        Run {
            schema_version: RunSchema::V1,
            run_id: settings.run_id.clone(),
            version: settings.side,
            generated_at: self.start.iso(),
            base_url: text(&settings.target.recorded()),
            // Relative paths, so that a run folder can be moved to another machine.
            cases_path: text(&relative(&absolute(&settings.cases_path), &folder)),
            // A copy of the folder must not name places of this machine, so an absolute path is left out.
            cases_path_as_passed: (!settings.cases_path.is_absolute()).then(|| text(settings.cases_path.as_str())),
            out_dir: text(&relative(&absolute(&settings.out), &folder)),
            selected_case_ids: selection.cases.iter().map(|case| case.id.clone()).collect(),
            runner_version: concat!("counterproof ", env!("CARGO_PKG_VERSION")).to_owned(),
            repo_commit: checkout.map(|checkout| checkout.commit.clone()),
            dirty: checkout.map(|checkout| checkout.dirty),
            node_version: None,
            timeout_ms: Some(whole_millis(settings.timeout).into()),
            retries: Some(u64::from(settings.retry.retries).into()),
            concurrency: Some(settings.concurrency.max().get().into()),
            retry_policy: Some(settings.retry.document()),
            limits: Some(settings.limits.document()),
            case_digests: Some(selection.digests.clone()),
            expectation_digests: Some(selection.expectation_digests.clone()),
            cases_digest: Some(selection.digest),
            shard: selection.shard.clone(),
            group_id: repeat.map(|repeat| repeat.group_id.clone()),
            repeat: repeat.map(|repeat| u64::from(repeat.number).into()),
            accepted: None,
            repeats: repeat.map(|repeat| u64::from(repeat.of).into()),
            confirmation: settings.confirmation.as_ref().map(confirmation),
            deterministic: settings.deterministic.then_some(true),
            stats: None,
            extra,
        }
    }
}

fn confirmation(plan: &ConfirmationPlan) -> Confirmation {
    Confirmation {
        of: plan.of.clone(),
        against: plan.against.clone(),
        index: Some(u64::from(plan.index).into()),
        count: Some(u64::from(plan.count).into()),
        ends_early: plan.ends_early.then_some(true),
        extra: Extra::new(),
    }
}

/// Returns the protocol, the agent's options and the header names, as far as they differ from the defaults.
fn agent_fields(settings: &Settings, redactor: &Redactor) -> Extra {
    let mut extra = Extra::new();
    if settings.protocol != Protocol::Native {
        extra.insert("protocol".to_owned(), settings.protocol.as_str().into());
        extra.extend(settings.agent.document(redactor));
    }
    if settings.is_selection {
        extra.insert(SELECTION.to_owned(), true.into());
    }
    if !settings.headers.is_empty() {
        // Names only: the values are secrets.
        let mut names: Vec<_> = settings.headers.iter().map(|header| header.name().as_str()).collect();
        // Sorted, because a resume compares the field: the order of the options is not a change.
        names.sort_unstable();
        extra.insert("request_headers".to_owned(), names.into());
    }
    extra
}

/// Returns the phase time-outs, which apply to servers only.
fn phases(settings: &Settings) -> Extra {
    // Resolve rules are not recorded, because name resolution is not recorded either.
    let Target::Http(_) = &settings.target else { return Extra::new() };
    let PhaseTimeouts { connect, first_byte, idle } = settings.phases;
    let mut phases = Extra::new();
    phases.insert("connect".to_owned(), whole_millis(connect).into());
    if let Some(first_byte) = first_byte {
        phases.insert("first_byte".to_owned(), whole_millis(first_byte).into());
    }
    phases.insert("idle".to_owned(), whole_millis(idle).into());
    [("phase_timeouts_ms".to_owned(), phases.into())].into_iter().collect()
}

/// Returns the settings of the pace that differ from the defaults.
fn pace(settings: &Settings) -> Extra {
    let auto = matches!(settings.concurrency, Concurrency::Auto { .. });
    let values = [
        auto.then(|| true.into()),
        settings.rate.map(|rate| rate.to_string().into()),
        settings.fail_fast.map(|limit| limit.get().into()),
    ];
    PACE.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the document of a resumed run: as it was started, without the fields of its end, and with the new pace.
pub(crate) fn resumed(mut started: Run, now: &Run) -> Run {
    started.extra.remove(INTERRUPTED);
    started.extra.remove(FAILED_RUN);
    // All are removed first: an option that the resume leaves out no longer applies.
    for name in PACE {
        started.extra.remove(name);
    }
    let pace = now.extra.iter().filter(|(name, _)| PACE.contains(&name.as_str()));
    started.extra.extend(pace.map(|(name, value)| (name.clone(), value.clone())));
    Run { stats: None, concurrency: now.concurrency, ..started }
}

/// How a run ended.
pub(crate) struct RunEnd<'a> {
    pub(crate) counts: &'a Counts,
    pub(crate) duration: Duration,
    pub(crate) interrupted: bool,
    pub(crate) failed: bool,
}

/// Returns the document with the statistics of the run.
pub(crate) fn finished(run: Run, end: &RunEnd<'_>) -> Run {
    let counts = end.counts;
    let mut extra = Extra::new();
    extra.insert("cases_retried".to_owned(), counts.retried.into());
    extra.insert("attempts_total".to_owned(), counts.attempts.into());
    if counts.skipped > 0 {
        extra.insert("cases_not_run".to_owned(), counts.skipped.into());
    }
    if counts.over_budget > 0 {
        extra.insert("cases_over_retry_budget".to_owned(), counts.over_budget.into());
    }
    let stats = Stats {
        cases_total: Some(counts.selected.into()),
        cases_completed: Some(counts.answered.into()),
        cases_failed: Some(counts.failed.into()),
        duration_ms: Some(whole_millis(end.duration).into()),
        extra,
    };
    let mut run = Run { stats: Some(stats), ..run };
    if end.interrupted {
        run.extra.insert(INTERRUPTED.to_owned(), true.into());
    }
    if end.failed {
        run.extra.insert(FAILED_RUN.to_owned(), true.into());
    }
    run
}

/// The selected cases of a run.
pub(crate) struct Selection<'a> {
    /// In the order of the cases file.
    pub(crate) cases: Vec<&'a CaseSpec>,
    pub(crate) digests: BTreeMap<CaseId, Sha256Digest>,
    pub(crate) expectation_digests: BTreeMap<CaseId, Sha256Digest>,
    /// The digest over all cases of the run, cases of other shards included.
    pub(crate) digest: Sha256Digest,
    pub(crate) shard: Option<ShardOf>,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(all: &'a [CaseSpec], shard: Option<&RunShard>) -> Self {
        let all: Vec<_> = all.iter().map(|case| (case, case.input_digest())).collect();
        let digest = cases_digest(all.iter().map(|(case, digest)| (&case.id, digest)));
        let is_selected = |case: &CaseSpec| shard.is_none_or(|shard| shard.shard.contains(&case.id));
        // Numbered before the selection: a merge restores the order of the whole run from these positions.
        let selected: Vec<_> = all.iter().enumerate().filter(|(_, (case, _))| is_selected(case)).collect();
        let shard = shard.map(|shard| ShardOf {
            run_id: shard.run_id.clone(),
            index: u64::from(shard.shard.index()).into(),
            count: u64::from(shard.shard.count()).into(),
            cases_total: all.len().into(),
            positions: selected.iter().map(|(position, _)| (*position).into()).collect(),
            extra: Extra::new(),
        });
        Self {
            cases: selected.iter().map(|(_, (case, _))| *case).collect(),
            digests: selected.iter().map(|(_, (case, digest))| (case.id.clone(), *digest)).collect(),
            expectation_digests: selected
                .iter()
                .map(|(_, (case, _))| (case.id.clone(), case.expectation_digest()))
                .collect(),
            digest,
            shard,
        }
    }
}
