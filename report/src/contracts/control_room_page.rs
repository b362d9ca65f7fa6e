//! The page of the control room.

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{group_digits, one_line};
use counterproof_contracts::State;
use counterproof_contracts::control_room::{
    Command, ControlRoom, Item, MAX_TEXT, RollbackSummary, Tier, TierList, VerificationResult, VerificationSummary,
    changes, duration, millis_between,
};
use counterproof_store::write::{INDEX_FILE, STATIC_FOLDER, SiteKind};
use jiff::Timestamp;

use crate::folder::{COMMON_FILES, FolderKind, ReportError, publish_page};

const FOLDER: FolderKind = contract_folder(
    "a control room",
    "A control room of Counterproof. The next control room that is written here replaces it. Open index.html.\n",
);

/// The static files of a page of contracts.
const FILES: [(&str, &str); 3] =
    [COMMON_FILES[0], ("contracts.css", include_str!("../../../templates/static/contracts.css")), COMMON_FILES[1]];

/// A folder with one page about contracts.
pub(super) const fn contract_folder(name: &'static str, marker: &'static str) -> FolderKind {
    FolderKind { name, site: SiteKind { marker, entries: &[INDEX_FILE, STATIC_FOLDER], files: &FILES } }
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
    key: String,
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
    way_back: String,
    commands: Vec<Command>,
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
pub fn write_control_room(room: &ControlRoom, out: &Utf8Path) -> Result<Utf8PathBuf, ReportError> {
    publish_page(FOLDER.begin(out)?, out, &ControlRoomPage::new(room))
}

impl ControlRoomPage {
    fn new(room: &ControlRoom) -> Self {
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
            tiers: filled().map(|list| TierView::new(list, room.generated_at)).collect(),
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
            (0, 0) => ("passed", "✓"),
            (0, _) => ("failed", "✗"),
            _ => ("undecided", "?"),
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
    fn new(list: &TierList, now: Timestamp) -> Self {
        Self {
            class: class(list.tier),
            title: list.tier.title(),
            count: group_digits(list.count),
            omission: list.omission(list.items.len()),
            is_detailed: matches!(list.tier, Tier::NeedsDecision | Tier::Anomaly),
            is_finished: list.tier == Tier::Completed,
            has_durations: list.tier != Tier::Queued,
            items: list.items.iter().map(|item| ItemView::new(item, now)).collect(),
        }
    }
}

impl ItemView {
    fn new(item: &Item, now: Timestamp) -> Self {
        let text = |text: &str| one_line(text, MAX_SENTENCE);
        let name = |text: &str| one_line(text, MAX_NAME);
        let rollback = item.rollback.as_ref();
        let outcome = |it: &RollbackSummary| match (&it.outcome, &it.message) {
            (Some(outcome), Some(message)) => format!("{}: {}", name(outcome).replace('_', " "), text(message)),
            (one, other) => one.as_deref().or(other.as_deref()).map(text).unwrap_or_default(),
        };
        Self {
            key: format!("{}@{}", item.id, item.version),
            project: name(&item.project),
            state: item.state.into(),
            // A contract without a summary has its id there.
            summary: if item.summary == item.id.as_str() { String::new() } else { text(&item.summary) },
            attention: item.attention.as_ref().map(|it| text(&it.message)).unwrap_or_default(),
            verification: item.verification.as_ref().map(VerificationView::new),
            changes: item.changes.map(changes).unwrap_or_default(),
            duration: item.duration_ms.map(duration).unwrap_or_default(),
            owner: item.owner.as_deref().map(name).unwrap_or_default(),
            since: item.since.map(time).unwrap_or_default(),
            // The time of the data and not of a clock, so that the same data gives the same page.
            age: item.since.map(|since| duration(millis_between(since, now))).unwrap_or_default(),
            rollback: rollback.map(outcome).unwrap_or_default(),
            // Not shortened: a command must be whole.
            way_back: rollback
                .and_then(|it| it.way_back.as_deref())
                .map(|text| one_line(text, MAX_TEXT))
                .unwrap_or_default(),
            commands: item.commands.clone(),
        }
    }
}

impl VerificationView {
    fn new(summary: &VerificationSummary) -> Self {
        let (class, sign, word) = match summary.result {
            VerificationResult::Passed => ("completed", "✓", "PASSED"),
            VerificationResult::Failed => ("failed", "✗", "FAILED"),
            VerificationResult::Unknown => ("pending", "?", "unknown"),
        };
        let reason = summary.reason.as_deref().map(|reason| one_line(reason, MAX_SENTENCE)).unwrap_or_default();
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
            commands: vec![Command {
                command: "counterproof contract approve shop/a@1 --reason …".to_owned(),
                effect: "x",
            }],
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

    #[test]
    fn texts_of_agents_are_escaped() {
        let hostile = "</script><img src=x onerror=x>\u{202e}\" onload='x' {{7*7}}";
        let html = ControlRoomPage::new(&room([1; 5], hostile)).render().unwrap();
        assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains("\" onload"), "{html}");
        assert!(html.contains("\\u{202e}"), "{html}");
        assert!(!html.contains("<script") && !html.contains(" style="), "the policy allows neither");
    }

    #[test]
    fn the_headline_names_what_needs_attention() {
        let headline = |counts| HeadlineView::new(&room(counts, "x"));
        for (counts, class, sentence) in [
            ([0; 5], "passed", "No contract needs a decision"),
            ([0, 1, 9, 0, 0], "failed", "No contract needs a decision; 1 anomaly"),
            ([2, 3, 0, 0, 0], "undecided", "2 contracts need a decision; 3 anomalies"),
        ] {
            let shown = headline(counts);
            assert_eq!((shown.class, shown.sentence.as_str()), (class, sentence));
        }
    }

    #[test]
    fn the_bar_shows_every_tier_that_has_contracts() {
        let page = ControlRoomPage::new(&room([1, 0, 1_000_000, 0, 1], "x"));
        let widths: Vec<u64> = page.bar.iter().map(|part| part.width).collect();
        assert_eq!(widths, [8, 983, 8]);
        assert!(page.bar.last().is_some_and(|last| last.x + last.width <= BAR));
        assert!(ControlRoomPage::new(&room([0; 5], "x")).bar.is_empty());
    }
}
