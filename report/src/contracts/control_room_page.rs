//! The page of the control room.

use std::collections::HashMap;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{group_digits, one_line};
use counterproof_contracts::State;
use counterproof_contracts::control_room::{
    Command, ControlRoom, Item, RollbackSummary, Step, Tier, TierList, VerificationResult, VerificationSummary,
    changes, duration, millis_between,
};
use counterproof_contracts::graph::{Graph, MAX_HTML_NODES};
use counterproof_store::confined_path;
use counterproof_store::write::{INDEX_FILE, STATIC_FOLDER, SiteKind};
use jiff::Timestamp;

use super::graph_page::GraphPage;
use crate::folder::{COMMON_FILES, FolderKind, ReportError, publish_page, write_page};
use crate::site::{encode_path, history_of};

/// The page of the graph next to that of the control room.
const GRAPH_FILE: &str = "graph.html";

const FOLDER: FolderKind = FolderKind {
    name: "a control room",
    site: SiteKind {
        marker: "A control room of Counterproof. The next control room that is written here replaces it. Open index.html.\n",
        entries: &[INDEX_FILE, GRAPH_FILE, STATIC_FOLDER],
        files: &COMMON_FILES,
    },
};

/// What a control room links to.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoomLinks<'a> {
    /// The graph of all contracts, which becomes a page of the same folder unless it is too large for one.
    pub graph: Option<&'a Graph>,
    /// The folder with the evidence of the store.
    pub evidence: Option<&'a Utf8Path>,
}

/// A state for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateView {
    /// The class in the style sheet, in Mermaid and in Graphviz.
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) word: &'static str,
}

impl From<State> for StateView {
    fn from(state: State) -> Self {
        Self { class: state.as_str(), sign: state.sign(), word: state.words() }
    }
}

/// Longest summary or reason, and longest name, in characters.
const MAX_SENTENCE: usize = 240;
const MAX_NAME: usize = 60;

/// The width of the bar of all tiers, and the least width of a part.
const BAR: u64 = 1000;
const LEAST: u64 = 8;

#[derive(Debug, Template)]
#[template(path = "contracts/control_room.html")]
struct ControlRoomPage {
    root: &'static str,
    headline: HeadlineView,
    time: String,
    contracts: String,
    cancelled: String,
    bar: Vec<PartView>,
    tiers: Vec<TierView>,
    has_graph: bool,
    history: Option<String>,
}

#[derive(Debug)]
struct HeadlineView {
    class: &'static str,
    sign: &'static str,
    sentence: String,
}

#[derive(Debug)]
struct PartView {
    class: &'static str,
    x: u64,
    width: u64,
}

#[derive(Debug)]
struct TierView {
    class: &'static str,
    title: &'static str,
    count: String,
    omission: String,
    /// Whether each contract is shown with its reasons.
    is_detailed: bool,
    is_finished: bool,
    has_durations: bool,
    items: Vec<ItemView>,
}

#[derive(Debug)]
struct ItemView {
    /// The id, which is also the end of its anchor.
    id: String,
    key: String,
    /// The link to the row of the graph.
    graph: Option<String>,
    project: String,
    state: StateView,
    /// Empty if the contract has no summary.
    summary: String,
    attention: String,
    verification: Option<VerificationView>,
    changes: String,
    duration: String,
    owner: String,
    since: String,
    age: String,
    rollback: String,
    /// How to restore what the rollback removed, where it is not a command.
    way_back: String,
    /// Names and links of the files with the evidence.
    evidence: Vec<(String, String)>,
    history: Vec<StepView>,
    commands: Vec<Command>,
}

#[derive(Debug)]
struct StepView {
    at: String,
    event: &'static str,
    text: String,
}

#[derive(Debug)]
struct VerificationView {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    reason: String,
}

/// Writes a control room as a page without scripts into the folder `out`, which must be missing, empty or an earlier control
/// room. Returns the path of the page.
pub fn write_control_room(
    room: &ControlRoom,
    links: &RoomLinks<'_>,
    out: &Utf8Path,
) -> Result<Utf8PathBuf, ReportError> {
    let staged = FOLDER.begin(out)?;
    let history = history_of(out);
    let targets = Targets::new(links, out);
    let page = ControlRoomPage::new(room, &targets, history.clone());
    if let Some(graph) = targets.graph {
        let listed = |item: &Item| (item.id.as_str().to_owned(), format!("{INDEX_FILE}#{}", anchor(item)));
        let rooms = room.tiers.iter().flat_map(|list| &list.items).map(listed).collect();
        let page = GraphPage::new(graph).with_room(INDEX_FILE.to_owned(), rooms, history);
        write_page(staged.path(), GRAPH_FILE, &page)?;
    }
    publish_page(staged, out, &page)
}

/// Returns the anchor of a contract.
fn anchor(item: &Item) -> String {
    format!("contract-{}", item.id)
}

/// The pages and files that exist.
#[derive(Debug, Default)]
struct Targets<'a> {
    graph: Option<&'a Graph>,
    /// The rows of the graph, by contract.
    rows: HashMap<&'a str, usize>,
    /// The folder with the evidence, and the way to it.
    evidence: Option<(&'a Utf8Path, Utf8PathBuf)>,
}

impl<'a> Targets<'a> {
    fn new(links: &RoomLinks<'a>, out: &Utf8Path) -> Self {
        let graph = links.graph.filter(|graph| (1..=MAX_HTML_NODES).contains(&graph.nodes().len()));
        let nodes = graph.into_iter().flat_map(|graph| graph.nodes().iter().enumerate());
        Self {
            graph,
            rows: nodes.map(|(index, node)| (node.id.as_str(), index)).collect(),
            evidence: links.evidence.and_then(|folder| Some((folder, way(out, folder)?))),
        }
    }

    fn graph_link(&self, item: &Item) -> Option<String> {
        Some(format!("{GRAPH_FILE}#c{}", self.rows.get(item.id.as_str())?))
    }

    /// Returns the names and the links of the files that exist. Their names are evidence, which any program may have written.
    fn evidence_links(&self, item: &Item) -> Vec<(String, String)> {
        let Some((folder, way)) = &self.evidence else { return Vec::new() };
        let existing = item.evidence.iter().filter(|name| confined_path::resolve(folder, name).is_ok());
        let link = |name: &String| {
            let last = name.rsplit('/').next().unwrap_or(name);
            (one_line(last, MAX_NAME), encode_path(way.join(name).as_str()))
        };
        existing.map(link).collect()
    }
}

/// Returns the way from a folder, which need not exist, to another one.
fn way(from: &Utf8Path, to: &Utf8Path) -> Option<Utf8PathBuf> {
    let to = to.canonicalize_utf8().ok()?;
    let parent = from.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let from =
        from.canonicalize_utf8().ok().or_else(|| Some(parent.canonicalize_utf8().ok()?.join(from.file_name()?)))?;
    counterproof_store::relative_path(&from, &to)
}

impl ControlRoomPage {
    fn new(room: &ControlRoom, targets: &Targets<'_>, history: Option<String>) -> Self {
        let filled = || room.tiers.iter().filter(|list| list.count > 0);
        Self {
            root: "",
            headline: HeadlineView::new(room),
            time: time(room.generated_at),
            contracts: match room.contracts {
                1 => "1 contract".to_owned(),
                number => format!("{} contracts", group_digits(number)),
            },
            cancelled: if room.cancelled == 0 { String::new() } else { group_digits(room.cancelled) },
            bar: bar(filled()),
            tiers: filled().map(|list| TierView::new(list, room.generated_at, targets)).collect(),
            has_graph: targets.graph.is_some(),
            history,
        }
    }
}

impl HeadlineView {
    fn new(room: &ControlRoom) -> Self {
        let count = |tier: Tier| room.tier(tier).map_or(0, |list| list.count);
        let (decisions, anomalies) = (count(Tier::NeedsDecision), count(Tier::Anomaly));
        let decide = match decisions {
            0 => "No contract needs a decision".to_owned(),
            1 => "1 contract needs a decision".to_owned(),
            number => format!("{} contracts need a decision", group_digits(number)),
        };
        let sentence = match anomalies {
            0 => decide,
            1 => format!("{decide}; 1 anomaly"),
            number => format!("{decide}; {} anomalies", group_digits(number)),
        };
        let (class, sign) = match (decisions, anomalies) {
            (0, 0) => ("go", "✓"),
            (0, _) => ("stop", "✗"),
            _ => ("open", "?"),
        };
        Self { class, sign, sentence }
    }
}

/// Returns the parts of the bar, each wide enough to be seen.
fn bar<'a>(lists: impl Iterator<Item = &'a TierList> + Clone) -> Vec<PartView> {
    let all: u64 = lists.clone().map(|list| list.count).sum();
    let room = BAR.saturating_sub(LEAST * lists.clone().count() as u64);
    let mut x = 0;
    let part = |list: &TierList| {
        // The product of two 64-bit numbers needs more bits.
        let share = u128::from(room) * u128::from(list.count) / u128::from(all.max(1));
        let width = LEAST + u64::try_from(share).unwrap_or_default();
        let part = PartView { class: class(list.tier), x, width };
        x += width;
        part
    };
    lists.map(part).collect()
}

/// Returns the class of a tier in the style sheet, which is also the address of its section.
const fn class(tier: Tier) -> &'static str {
    match tier {
        Tier::NeedsDecision => "decision",
        Tier::Anomaly => "anomaly",
        Tier::Completed => "completed",
        Tier::Running => "running",
        Tier::Queued => "queued",
    }
}

impl TierView {
    fn new(list: &TierList, now: Timestamp, targets: &Targets<'_>) -> Self {
        Self {
            class: class(list.tier),
            title: list.tier.title(),
            count: group_digits(list.count),
            omission: list.omission(list.items.len()),
            is_detailed: matches!(list.tier, Tier::NeedsDecision | Tier::Anomaly),
            is_finished: list.tier == Tier::Completed,
            has_durations: list.tier != Tier::Queued,
            items: list.items.iter().map(|item| ItemView::new(item, now, targets)).collect(),
        }
    }
}

impl ItemView {
    fn new(item: &Item, now: Timestamp, targets: &Targets<'_>) -> Self {
        let text = |text: &str| one_line(text, MAX_SENTENCE);
        let name = |text: &str| one_line(text, MAX_NAME);
        let rollback = item.rollback.as_ref();
        let outcome = |it: &RollbackSummary| match (&it.outcome, &it.message) {
            (Some(outcome), Some(message)) => format!("{}: {}", name(outcome).replace('_', " "), text(message)),
            (one, other) => one.as_deref().or(other.as_deref()).map(text).unwrap_or_default(),
        };
        let restore = rollback.and_then(RollbackSummary::restore_command);
        let attention = item.attention.as_ref().map(|it| &*it.message).unwrap_or_default();
        Self {
            id: item.id.to_string(),
            key: format!("{}@{}", item.id, item.version),
            graph: targets.graph_link(item),
            project: name(&item.project),
            state: item.state.into(),
            // A contract without a summary has its id there.
            summary: if item.summary == item.id.as_str() { String::new() } else { text(&item.summary) },
            attention: text(attention),
            verification: item.verification.as_ref().map(|it| VerificationView::new(it, attention)),
            changes: item.changes.map(changes).unwrap_or_default(),
            duration: item.duration_ms.map(duration).unwrap_or_default(),
            owner: item.owner.as_deref().map(name).unwrap_or_default(),
            since: item.since.map(time).unwrap_or_default(),
            // The time of the data and not of a clock, so that the same data gives the same page.
            age: item.since.map(|since| duration(millis_between(since, now))).unwrap_or_default(),
            rollback: rollback.map(outcome).unwrap_or_default(),
            way_back: rollback
                .and_then(|it| it.way_back.as_deref())
                .filter(|_| restore.is_none())
                .map(text)
                .unwrap_or_default(),
            evidence: targets.evidence_links(item),
            history: item.history.iter().map(step).collect(),
            // Not shortened: a command must be whole.
            commands: restore
                .map(|command| Command { command: command.to_owned(), effect: "restores what the rollback removed" })
                .into_iter()
                .chain(item.commands.iter().cloned())
                .collect(),
        }
    }
}

fn step(step: &Step) -> StepView {
    let text = format!("{} (by {})", one_line(&step.reason, MAX_SENTENCE), one_line(&step.actor, MAX_NAME));
    StepView { at: time(step.at), event: step.event, text }
}

impl VerificationView {
    /// `attention` is the reason that is shown above it.
    fn new(summary: &VerificationSummary, attention: &str) -> Self {
        let (class, sign, word) = match summary.result {
            VerificationResult::Passed => ("completed", "✓", "PASSED"),
            VerificationResult::Failed => ("failed", "✗", "FAILED"),
            VerificationResult::Unknown => ("pending", "?", "unknown"),
        };
        let reason = summary.reason.as_deref().filter(|reason| !attention.starts_with(reason)).unwrap_or_default();
        let reason = one_line(reason, MAX_SENTENCE);
        Self { class, sign, word, reason }
    }
}

/// Returns a time to the minute.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use counterproof_contracts::State;
    use counterproof_contracts::control_room::{Attention, AttentionCode};

    use super::*;

    fn item(text: &str) -> Item {
        Item {
            project: text.to_owned(),
            id: "shop/a".parse().unwrap(),
            version: NonZeroU32::MIN,
            state: State::Failed,
            summary: text.to_owned(),
            since: Some("2026-01-31T12:00:00Z".parse().unwrap()),
            owner: Some(text.to_owned()),
            attention: Some(Attention { code: AttentionCode::Failed, message: text.to_owned() }),
            verification: Some(VerificationSummary {
                result: VerificationResult::Failed,
                reason: Some(text.to_owned()),
            }),
            changes: None,
            duration_ms: Some(1500),
            rollback: Some(RollbackSummary {
                outcome: Some(text.to_owned()),
                message: Some(text.to_owned()),
                way_back: Some(text.to_owned()),
            }),
            evidence: vec![text.to_owned(), "../outside".to_owned()],
            history: vec![Step {
                at: "2026-01-31T12:00:00Z".parse().unwrap(),
                event: "failed",
                actor: text.to_owned(),
                reason: text.to_owned(),
            }],
            commands: vec![Command { command: "counterproof contract approve shop/a@1".to_owned(), effect: "x" }],
        }
    }

    fn room(counts: [u64; 5], text: &str) -> ControlRoom {
        let list =
            |(tier, count): (Tier, u64)| TierList { tier, count, items: vec![item(text); usize::from(count > 0)] };
        ControlRoom {
            generated_at: "2026-01-31T12:30:00Z".parse().unwrap(),
            contracts: counts.iter().sum(),
            cancelled: 0,
            tiers: Tier::ALL.into_iter().zip(counts).map(list).collect(),
        }
    }

    fn page(room: &ControlRoom) -> ControlRoomPage {
        ControlRoomPage::new(room, &Targets::default(), None)
    }

    #[test]
    fn a_text_that_is_not_a_whole_command_is_a_sentence() {
        for (text, is_command) in [
            ("git -C /w stash pop", true),
            ("git stash pop; curl x", false),
            (&*format!("git {}…", "a".repeat(500)), false),
            ("the files are in `x`", false),
        ] {
            let view = ItemView::new(&item(text), Timestamp::UNIX_EPOCH, &Targets::default());
            assert_eq!(view.commands.iter().any(|it| it.command == text), is_command, "{text}");
            assert_eq!(view.way_back.is_empty(), is_command, "{text}");
        }
    }

    #[test]
    fn a_reason_is_shown_once() {
        let view =
            ItemView::new(&item("exit_code == 0: assertion not met"), Timestamp::UNIX_EPOCH, &Targets::default());
        assert_eq!(view.attention, "exit_code == 0: assertion not met");
        assert_eq!(view.verification.unwrap().reason, "");
    }

    #[test]
    fn texts_of_agents_are_escaped() {
        let hostile = "</script><img src=x onerror=x>\u{202e}\" onload='x' {{7*7}}";
        let html = page(&room([1; 5], hostile)).render().unwrap();
        assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains("\" onload"), "{html}");
        assert!(html.contains("\\u{202e}"), "{html}");
        assert!(!html.contains("<script") && !html.contains(" style="), "the policy allows neither");
    }

    #[test]
    fn the_headline_names_what_needs_attention() {
        let headline = |counts| HeadlineView::new(&room(counts, "x"));
        for (counts, class, sentence) in [
            ([0; 5], "go", "No contract needs a decision"),
            ([0, 1, 9, 0, 0], "stop", "No contract needs a decision; 1 anomaly"),
            ([2, 3, 0, 0, 0], "open", "2 contracts need a decision; 3 anomalies"),
        ] {
            let shown = headline(counts);
            assert_eq!((shown.class, shown.sentence.as_str()), (class, sentence));
        }
    }

    #[test]
    fn the_bar_shows_every_tier_that_has_contracts() {
        let shown = page(&room([1, 0, 1_000_000, 0, 1], "x"));
        let widths: Vec<u64> = shown.bar.iter().map(|part| part.width).collect();
        assert_eq!(widths, [8, 983, 8]);
        assert!(shown.bar.last().is_some_and(|last| last.x + last.width <= BAR));
        assert!(page(&room([0; 5], "x")).bar.is_empty());
    }
}
