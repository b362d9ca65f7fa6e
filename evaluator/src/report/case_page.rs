//! The page of one case: what is said of it, and everything that this rests on.

use askama::Template;
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

use super::actions::{self, ActionsShown};
use super::cause::{self, CauseShown, FoundShown, SeverityShown};
use super::cells::{self, ValueShown};
use super::events::{self, EventsShown};
use super::failures::{self, AttemptShown, FailureShown};
use super::files::{FileLink, RunFiles};
use super::findings::{self, InvalidShown};
use super::output::{self, OutputShown};
use super::places::{self, Anchors};
use super::reasons::{self, ExpectationShown, ReasonShown};
use super::repeats::{self, RepeatsShown};
use super::replay;
use super::shown::{self, Budget};
use super::verdicts::{self, VerdictShown};
use super::writer::{ReportError, ReportWriter};
use crate::comparison::CaseComparison;
use crate::load::{Artifact, LoadedAnswer};

/// Reasons that are read at once; the others are folded.
const REASONS_OPEN: usize = 6;

/// What the sections of a page are made from.
#[derive(Debug)]
pub(super) struct CaseView<'a> {
    /// The report that the page belongs to.
    pub(super) report: &'a ReportWriter<'a>,
    /// The case.
    pub(super) case: &'a CaseComparison<'a>,
    /// What may still be shown.
    pub(super) budget: Budget,
    /// The ids that are on the page.
    pub(super) anchors: Anchors,
}

impl CaseView<'_> {
    /// What a side has of the case.
    pub(super) const fn artifact(&self, side: Side) -> &Artifact {
        match side {
            Side::Baseline => &self.case.baseline,
            Side::New => &self.case.new,
        }
    }

    /// The files of the run that is shown of a side.
    pub(super) fn files(&self, side: Side) -> &RunFiles<'_> {
        &self.report.files(side)[self.case.shown.of(side)]
    }

    /// True where a row of these lists is noise, or the outputs are: `pointers` are those of what is asked for.
    pub(super) fn is_noise(&self, pointers: &[SidePointer]) -> bool {
        let repeats = self.case.row.repeats.as_ref();
        repeats.is_some_and(|repeats| pointers.first().is_some_and(|pointer| repeats.noise.contains(pointer)))
    }

    /// A side's answer.
    pub(super) fn answer(&self, side: Side) -> Option<&LoadedAnswer> {
        self.artifact(side).answer()
    }

    /// The answer of the one side that has one.
    pub(super) fn only_answer(&self) -> Option<(Side, &LoadedAnswer)> {
        match (self.answer(Side::Baseline), self.answer(Side::New)) {
            (Some(loaded), None) => Some((Side::Baseline, loaded)),
            (None, Some(loaded)) => Some((Side::New, loaded)),
            _ => None,
        }
    }
}

/// The page, ready to be shown.
#[derive(Debug, Template)]
#[template(path = "case/page.html")]
pub(super) struct CasePage {
    root: &'static str,
    case_id: String,
    title: Option<String>,
    verdict: VerdictShown,
    risk: Option<&'static str>,
    facts: Vec<(&'static str, String)>,
    input: Vec<ValueShown>,
    previous: Option<String>,
    next: Option<String>,
    reasons: Vec<ReasonShown>,
    more_reasons: Vec<ReasonShown>,
    cause: Option<CauseShown>,
    found: Vec<FoundShown>,
    severity: Option<SeverityShown>,
    divergence: Option<ReasonShown>,
    absences: Vec<String>,
    invalid: Vec<InvalidShown>,
    failures: Vec<FailureShown>,
    has_answer: bool,
    actions: ActionsShown,
    output: OutputShown,
    expectations: Vec<ExpectationShown>,
    /// What is said of the expectations where both sides meet them all; otherwise empty.
    expectations_summary: String,
    repeats: Option<RepeatsShown>,
    events: EventsShown,
    exact: bool,
    attempts: Vec<AttemptShown>,
    artifacts: Vec<ArtifactShown>,
    /// The command that asks again, to be called in the report's folder; empty where the request was not kept.
    replay: String,
}

/// A side's files.
#[derive(Debug, Clone)]
struct ArtifactShown {
    side: &'static str,
    anchor: String,
    artifact: FileLink,
    run: FileLink,
}

impl CasePage {
    /// The same page with links to the pages before and behind it.
    pub(super) fn between(self, previous: Option<String>, next: Option<String>) -> Self {
        Self { previous, next, ..self }
    }

    /// The page of a case, without its neighbours; the files that it links to are copied on the way.
    pub(super) fn of(report: &ReportWriter<'_>, case: &CaseComparison<'_>) -> Result<Self, ReportError> {
        let view = CaseView { report, case, budget: Budget::of_page(), anchors: Anchors::default() };
        let artifacts = Side::BOTH.map(|side| artifact(&view, side)).into_iter().collect::<Result<Vec<_>, _>>()?;
        // What is linked to comes before the links, which name only what is on the page.
        let invalid = findings::show(&view);
        let failures = failures::show(&view)?;
        let output = output::show(&view)?;
        let events = events::show(&view)?;
        let actions = actions::show(&view)?;
        // A failure has a section of its own, which says the same and more.
        let divergence = case.row.first_divergence.as_ref().filter(|_| failures.is_empty());
        let mut reasons = reasons::show(&view);
        let more_reasons = reasons.split_off(reasons.len().min(REASONS_OPEN));
        let divergence = divergence.map(|divergence| reasons::divergence(&view, divergence));
        let divergence = reasons::mark_first(&mut reasons, divergence);
        Ok(Self {
            root: "../",
            case_id: case.row.case_id.to_string(),
            title: case.row.title.as_deref().map(shown::visible),
            verdict: verdicts::show(case.row.verdict),
            risk: verdicts::risk(case.row.risk_level),
            facts: facts(&view),
            input: input(&view),
            previous: None,
            next: None,
            cause: cause::show(&view).map(|found| found.beside(&reasons)),
            reasons,
            more_reasons,
            found: cause::findings(&view),
            severity: cause::severity(case.row.severity.as_ref()),
            divergence,
            absences: Side::BOTH.into_iter().filter_map(|side| reasons::absence(side, view.artifact(side))).collect(),
            invalid,
            failures,
            has_answer: Side::BOTH.into_iter().any(|side| view.answer(side).is_some()),
            actions,
            output,
            expectations: reasons::expectations(&case.row.expectations),
            expectations_summary: reasons::all_met(&case.row.expectations),
            repeats: repeats::show(&view),
            events,
            exact: case.differences.as_ref().is_none_or(|differences| differences.exact),
            attempts: failures::attempts(&view),
            replay: replay::command(&view)?,
            artifacts,
        })
    }
}

fn artifact(view: &CaseView<'_>, side: Side) -> Result<ArtifactShown, ReportError> {
    let files = view.files(side);
    let id = &view.case.row.case_id;
    Ok(ArtifactShown {
        side: side.as_str(),
        anchor: view.anchors.add(places::artifact(side)),
        artifact: files.artifact(id, view.report.pages.stem(id))?,
        run: files.run()?,
    })
}

fn facts(view: &CaseView<'_>) -> Vec<(&'static str, String)> {
    let workflow = Side::BOTH.into_iter().find_map(|side| view.artifact(side).envelope()?.workflow_id.as_deref());
    let spec = view.case.spec;
    let suite = spec.and_then(|spec| spec.suite.as_deref());
    let tags = spec.map(|spec| spec.metadata.tags.join(", ")).filter(|tags| !tags.is_empty());
    [("workflow", workflow), ("suite", suite), ("tags", tags.as_deref())]
        .into_iter()
        .filter_map(|(name, fact)| Some((name, shown::visible(fact?))))
        .collect()
}

fn input(view: &CaseView<'_>) -> Vec<ValueShown> {
    let Some(spec) = view.case.spec else { return Vec::new() };
    let mut values = vec![cells::text("user", &spec.input.user, &view.budget)];
    values.extend(spec.input.context.as_ref().map(|context| cells::value("context", context, &view.budget)));
    if !spec.input.extra.is_empty() {
        values.push(cells::value("more fields", &spec.input.extra, &view.budget));
    }
    values
}
