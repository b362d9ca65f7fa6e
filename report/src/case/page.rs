//! The page of one case: its verdict with the reasons, the evidence for them, and the command that sends the request again.

use askama::Template;
use counterproof_artifact::Side;
use counterproof_evaluator::CaseComparison;

use super::actions::{self, ActionsView};
use super::answer_card::{self, AnswerCard};
use super::arguments::{self, ArgumentsView};
use super::cells::{self, ValueView};
use super::chat::{self, ChatView, ItemBody};
use super::context::{self, CaseContext};
use super::failures::{self, AttemptView, FailureView, InvalidArtifactView};
use super::issue_text::{self, IssueInput};
use super::output::{self, OutputView};
use super::reasons::{self, ExpectationView, FindingView, ReasonView, RootCauseView, SeverityView};
use super::repeats::{self, RepeatsView, UsageView};
use super::run_picker::RunPicker;
use super::steps::{self, StepsView};
use super::waterfall::{self, WaterfallView};
use super::why::{self, WhyView};
use crate::files::{CopyFailures, FileCopy, FileLink, copy_name};
use crate::folder::shard_count;
use crate::site::{Site, case_anchor};
use crate::view::display;

#[derive(Debug, Template)]
#[template(path = "case/page.html")]
pub(crate) struct CasePage {
    root: &'static str,
    /// The name under which the browser stores marks.
    report: String,
    /// The number of scripts with the data of all cases.
    shards: usize,
    /// The position in the order of the baseline.
    position: String,
    case_id: String,
    title: Option<String>,
    /// The list of the cases of the same word.
    list: String,
    /// The nights of the case in the history; `None` without one.
    history: Option<String>,
    card: AnswerCard,
    picker: RunPicker,
    chat: ChatView,
    arguments: ArgumentsView,
    waterfall: Option<WaterfallView>,
    facts: Vec<(&'static str, String)>,
    input: Vec<ValueView>,
    previous: Option<String>,
    next: Option<String>,
    why: WhyView,
    cause: Option<RootCauseView>,
    findings: Vec<FindingView>,
    severity: Option<SeverityView>,
    /// The first divergence and the lasting one, each with its title.
    divergences: Vec<(&'static str, ReasonView)>,
    /// One sentence per side without an answer and without a runner error.
    absences: Vec<String>,
    invalid: Vec<InvalidArtifactView>,
    failures: Vec<FailureView>,
    has_answer: bool,
    actions: ActionsView,
    output: OutputView,
    expectations: Vec<ExpectationView>,
    /// A summary where both sides meet all expectations; otherwise empty.
    expectations_summary: String,
    repeats: Option<RepeatsView>,
    usage: Option<UsageView>,
    steps: StepsView,
    exact: bool,
    attempts: Vec<AttemptView>,
    artifacts: Vec<ArtifactView>,
    /// The replay command, to be run in the report folder; empty where the request was not recorded.
    replay: String,
    /// The case as Markdown.
    issue: String,
}

#[derive(Debug, Clone)]
struct ArtifactView {
    side: &'static str,
    anchor: String,
    artifact: FileLink,
    run: FileLink,
}

impl CasePage {
    /// The page of a case without links to its neighbours, and the run files that it links to. Files in `failures` are shown as
    /// missing.
    pub(crate) fn new(
        site: &Site<'_>,
        case: &CaseComparison<'_>,
        failures: &CopyFailures,
        picker: RunPicker,
    ) -> (Self, Vec<FileCopy>) {
        let context = CaseContext::new(site, case, failures);
        let page = Self::from_context(&context, picker);
        (page, context.into_copies())
    }

    fn from_context(context: &CaseContext<'_>, picker: RunPicker) -> Self {
        let row = &context.case.row;
        // Targets are built before the sections that link to them, because a link only names an id that exists.
        let artifacts = Side::BOTH.into_iter().map(|side| artifact(context, side)).collect();
        let invalid = failures::violations(context);
        let failures = failures::failures(context);
        let output = output::view(context);
        let steps = steps::view(context);
        let actions = actions::view(context);
        let card = answer_card::view(context, !picker.note.is_empty());
        let chat = chat::view(context);
        // A runner error has a separate section, which includes the divergence.
        let divergence = row.first_divergence.as_ref().filter(|_| failures.is_empty());
        let mut reasons = reasons::reasons(context);
        let divergence = divergence.map(|divergence| reasons::divergence(context, divergence));
        let divergence = reasons::mark_first(&mut reasons, divergence);
        let lasting = row.lasting_divergence.as_ref().map(|lasting| reasons::divergence(context, lasting));
        let mut divergences: Vec<_> = [("First divergence", divergence), ("Lasting divergence", lasting)]
            .into_iter()
            .filter_map(|(title, divergence)| Some((title, divergence?)))
            .collect();
        // The first difference of single runs is often chance. Over several runs, noise is known and is never the first.
        if row.repeats.is_none() {
            divergences.reverse();
        }
        let cause = reasons::root_cause(context).map(|cause| cause.without_repetition(&reasons));
        let why = why::view(reasons, card.label.word);
        let replay = replay_command(context);
        let asked = row.story.asked.as_deref().unwrap_or_default();
        let (case_id, page) = (row.case_id.to_string(), context.site.case_page(&row.case_id));
        let issue = IssueInput { case_id: &case_id, asked, runs: runs(context), page, replay: &replay };
        let issue = display::visible(&issue_text::markdown(&issue, &card, &why));
        Self {
            // Relative, because a report opens in any folder and behind any address.
            root: "../",
            report: context.site.name.clone(),
            shards: shard_count(context.site.pages.count()),
            position: position(context),
            case_id,
            title: row.title.as_deref().map(display::visible),
            list: format!("../lists/{}-1.html", card.label.class()),
            history: context.site.in_history(&case_anchor(&row.case_id)).map(|href| format!("../{href}")),
            arguments: arguments::view(context, &chat.writing_tools),
            waterfall: waterfall::view(context),
            card,
            picker,
            chat,
            facts: facts(context),
            input: input(context),
            previous: None,
            next: None,
            cause,
            why,
            findings: reasons::findings(context),
            severity: reasons::severity(row.severity.as_ref()),
            divergences,
            absences: absences(context),
            invalid,
            failures,
            has_answer: Side::BOTH.into_iter().any(|side| context.answer(side).is_some()),
            actions,
            output,
            expectations: reasons::expectations(&row.expectations),
            expectations_summary: reasons::all_met(&row.expectations),
            repeats: repeats::repeats(context),
            usage: repeats::usage_table(context),
            steps,
            exact: context.case.differences.as_ref().is_none_or(|differences| differences.exact),
            attempts: failures::attempts(context),
            replay,
            issue,
            artifacts,
        }
    }

    /// The same page with links to its neighbours.
    pub(crate) fn with_neighbours(self, previous: Option<String>, next: Option<String>) -> Self {
        Self { previous, next, ..self }
    }
}

fn artifact(context: &CaseContext<'_>, side: Side) -> ArtifactView {
    ArtifactView {
        side: side.as_str(),
        anchor: context.anchors.add(context::artifact(side)),
        artifact: context.artifact_file(side),
        run: context.run_file(side),
    }
}

fn position(context: &CaseContext<'_>) -> String {
    let number = |number: usize| display::number(number as u64);
    format!("case {} of {}", number(context.case.index + 1), number(context.site.pages.count()))
}

/// Both runs by their models, or else their ids.
fn runs(context: &CaseContext<'_>) -> String {
    let Some(documents) = context.site.documents() else { return String::new() };
    let name = |side: Side| {
        let run = documents.get(side);
        run.model().unwrap_or(run.run_id.as_str())
    };
    format!("{} → {}", name(Side::Baseline), name(Side::New))
}

fn absences(context: &CaseContext<'_>) -> Vec<String> {
    Side::BOTH.into_iter().filter_map(|side| reasons::absence(side, context.artifact(side))).collect()
}

fn facts(context: &CaseContext<'_>) -> Vec<(&'static str, String)> {
    let workflow = Side::BOTH.into_iter().find_map(|side| context.artifact(side).envelope()?.workflow_id.as_deref());
    let spec = context.case.spec;
    let suite = spec.and_then(|spec| spec.suite.as_deref());
    let tags = spec.map(|spec| spec.metadata.tags.join(", ")).filter(|tags| !tags.is_empty());
    [("workflow", workflow), ("suite", suite), ("tags", tags.as_deref()), ("baseline marked as", mark(context))]
        .into_iter()
        .filter_map(|(name, fact)| Some((name, display::visible(fact?))))
        .collect()
}

/// The mark that a person gave to the case when the baseline was accepted.
fn mark(context: &CaseContext<'_>) -> Option<&'static str> {
    let review = context.site.documents()?.baseline.accepted.as_ref()?.review.as_ref()?;
    let marked = review.marks.iter().find(|marked| marked.case_id == context.case.row.case_id)?;
    Some(marked.mark.as_str())
}

fn input(context: &CaseContext<'_>) -> Vec<ValueView> {
    let Some(spec) = context.case.spec else { return Vec::new() };
    let mut values = vec![cells::text("user", &spec.input.user, &context.budget)];
    // After the words of the user, which are read first.
    values.extend(spec.input.context.as_ref().map(|value| cells::value("context", value, &context.budget)));
    if !spec.input.extra.is_empty() {
        values.push(cells::value("more fields", &spec.input.extra, &context.budget));
    }
    values
}

/// The replay command for new, or for baseline if only baseline has a recorded request; empty if neither has one.
pub(crate) fn replay_command(context: &CaseContext<'_>) -> String {
    for side in [Side::New, Side::Baseline] {
        let Some(request) = context.artifact(side).envelope().and_then(|case| case.request.as_ref()) else { continue };
        // `replay` finds the request through the artifact, so the copy must have the recorded name.
        if copy_name(request) != request.as_str() || context.asset(side, request.as_str()).href.is_none() {
            continue;
        }
        let files = context.files(side);
        let artifact = files.artifact_path(context.site.pages.stem(&context.case.row.case_id));
        // A run does not record the arguments of a program, because they may be secrets.
        let program = if files.uses_program() { " --agent-cmd '…'" } else { "" };
        return format!("counterproof replay {}{program}", shell_words::quote(&artifact));
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use camino::Utf8Path;
    use counterproof_evaluator::{ComparedRun, Request, compare, pair};
    use counterproof_store::RunReader;

    use super::*;
    use crate::files::copy_files;

    #[test]
    fn a_page_says_which_file_could_not_be_copied_and_why() {
        let runs = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs/runs");
        let open = |folder: &str| ComparedRun::new(RunReader::open(&runs.join(folder)).unwrap()).into();
        let request = Request::new(open("baseline/sample-baseline"), open("new/sample-new"));
        let ids = pair(&request.baseline, &request.new).unwrap();
        let site = Site::with_runs(ids, &request.baseline, &request.new);
        let pages = Mutex::new(Vec::new());
        let page = |case: &CaseComparison<'_>| -> Result<(), Infallible> {
            let (page, copies) = CasePage::new(&site, case, &CopyFailures::default(), RunPicker::default());
            let artifact = site.files(Side::New)[0].artifact_path(site.pages.stem(&case.row.case_id));
            let Some(copy) = copies.into_iter().find(|copy| copy.target == artifact) else { return Ok(()) };
            // A folder cannot be copied.
            let directory = tempfile::tempdir().unwrap();
            let out = Utf8Path::from_path(directory.path()).unwrap();
            let failures = copy_files(out, [FileCopy { source: out.to_owned(), ..copy }]).unwrap();
            let (page_without, copies) = CasePage::new(&site, case, &failures, RunPicker::default());
            assert!(copies.iter().all(|copy| copy.target != artifact));
            let link = format!("../{}\"", crate::encode_path(&artifact));
            pages.lock().unwrap().push((page.render().unwrap(), page_without.render().unwrap(), link));
            Ok(())
        };
        compare(&request, page).unwrap();
        let pages = pages.into_inner().unwrap();
        assert!(!pages.is_empty());
        for (with, without, link) in pages {
            assert!(with.contains(&link) && !with.contains("could not be copied"), "{with}");
            assert!(!without.contains(&link) && without.contains("<strong>could not be copied: "), "{without}");
        }
    }
}
