//! The page of a graph: a drawing of small graphs, and a table of all contracts.

use std::collections::HashMap;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{group_digits, one_line};
use counterproof_contracts::State;
use counterproof_contracts::graph::{Edge, Graph, GraphError, MAX_HTML_NODES, Node};

use super::control_room_page::StateView;
use super::graph_drawing::{Drawing, draw};
use crate::folder::{COMMON_FILES, FolderKind, ReportError, publish_page};
use crate::site::{history_of, page_next_to};

const MAX_SUMMARY: usize = 200;

const MAX_LINKS: usize = 10;

/// Levels of the list. Deeper contracts have the same indentation, so that the list fits a narrow page.
const MAX_INDENT: usize = 8;

/// Dependencies that a contract names in the list.
const MAX_NAMES: usize = 3;

/// Contracts of a list that is not folded.
const MAX_OPEN_LIST: usize = 300;

const FOLDER: FolderKind = FolderKind::of_page(
    "a graph of contracts",
    "A graph of contracts of Counterproof. The next graph that is written here replaces it. Open index.html.\n",
    &COMMON_FILES,
);

#[derive(Debug, Template)]
#[template(path = "contracts/graph.html")]
pub(super) struct GraphPage {
    root: &'static str,
    /// The links to the control room and to the history.
    room: Option<String>,
    history: Option<String>,
    title: String,
    /// Which part of the graph it is. Empty for the whole graph.
    part: String,
    /// The number of contracts of each state that occurs.
    counts: Vec<(StateView, String)>,
    drawing: Option<Drawing>,
    /// The contracts, each after and below one that it depends on.
    list: Vec<ListedView>,
    is_list_folded: bool,
    rows: Vec<RowView>,
}

/// A contract of the indented list.
#[derive(Debug)]
struct ListedView {
    index: usize,
    indent: usize,
    /// What it depends on, such as `a, b and 2 more`. May be empty.
    after: String,
}

#[derive(Debug)]
struct RowView {
    index: usize,
    id: String,
    version: u32,
    state: StateView,
    layer: usize,
    dependencies: LinksView,
    dependents: LinksView,
    /// Empty if the contract has no summary.
    summary: String,
    is_selected: bool,
    /// The link to its entry in the control room.
    room: Option<String>,
}

/// Links to other contracts of the table.
#[derive(Debug, Default)]
struct LinksView {
    links: Vec<(usize, String)>,
    /// A note on those without a link. Empty if there are none.
    more: String,
}

/// A page of a graph that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum GraphPageError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Page(#[from] ReportError),
}

/// Writes a graph as a page without scripts into the folder `out`, which must be missing, empty or an earlier graph. Returns the
/// path of the page.
pub fn write_graph(graph: &Graph, out: &Utf8Path) -> Result<Utf8PathBuf, GraphPageError> {
    let (found, limit) = (graph.nodes().len() as u64, MAX_HTML_NODES);
    if graph.nodes().len() > limit {
        return Err(GraphPageError::Graph(GraphError::TooLarge { found, limit }));
    }
    let staged = FOLDER.begin(out)?;
    let room = page_next_to(out, "control-room");
    Ok(publish_page(staged, out, &GraphPage { room, history: history_of(out), ..GraphPage::new(graph) })?)
}

impl GraphPage {
    /// The page of the graph in the folder of a control room. `rooms` has the links of its contracts.
    pub(super) fn with_room(
        mut self,
        room: String,
        mut rooms: HashMap<String, String>,
        history: Option<String>,
    ) -> Self {
        for row in &mut self.rows {
            row.room = rooms.remove(&row.id);
        }
        Self { room: Some(room), history, ..self }
    }

    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes();
        let count = |state: State| nodes.iter().filter(|node| node.state == state).count();
        let counts = State::ALL.into_iter().map(|state| (state, count(state))).filter(|(_, count)| *count > 0);
        let mut dependencies: Vec<LinksView> = nodes.iter().map(|_| LinksView::default()).collect();
        let mut dependents: Vec<LinksView> = nodes.iter().map(|_| LinksView::default()).collect();
        // In one pass: a search for each contract would visit all dependencies each time.
        for &Edge { dependency, dependent } in graph.edges() {
            dependencies[dependent].push(dependency, &nodes[dependency]);
            dependents[dependency].push(dependent, &nodes[dependent]);
        }
        let lists = dependencies.into_iter().zip(dependents);
        let selected: Vec<&str> = nodes.iter().filter(|node| node.is_selected).map(|node| node.id.as_str()).collect();
        Self {
            root: "",
            room: None,
            history: None,
            title: match nodes.len() {
                1 => "1 contract".to_owned(),
                number => format!("{} contracts", group_digits(number as u64)),
            },
            part: part(&selected),
            counts: counts.map(|(state, count)| (state.into(), group_digits(count as u64))).collect(),
            drawing: if nodes.is_empty() { None } else { draw(graph) },
            list: list(graph),
            is_list_folded: nodes.len() > MAX_OPEN_LIST,
            rows: nodes.iter().zip(lists).enumerate().map(|(index, (node, lists))| row(index, node, lists)).collect(),
        }
    }
}

/// Orders the contracts as a list in which each one is after and below a dependency of the layer before it.
fn list(graph: &Graph) -> Vec<ListedView> {
    let nodes = graph.nodes();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut names: Vec<(Vec<&str>, usize)> = vec![(Vec::new(), 0); nodes.len()];
    let mut has_place = vec![false; nodes.len()];
    for &Edge { dependency, dependent } in graph.edges() {
        let (first, count) = &mut names[dependent];
        *count += 1;
        if first.len() < MAX_NAMES {
            first.push(nodes[dependency].id.as_str());
        }
        if !has_place[dependent] && nodes[dependency].depth + 1 == nodes[dependent].depth {
            has_place[dependent] = true;
            below[dependency].push(dependent);
        }
    }
    // Without recursion: a chain can have thousands of contracts.
    let mut open: Vec<usize> = (0..nodes.len()).rev().filter(|&index| !has_place[index]).collect();
    let mut listed = Vec::with_capacity(nodes.len());
    while let Some(index) = open.pop() {
        let (first, count) = &names[index];
        let after = match count - first.len() {
            0 => first.join(", "),
            more => format!("{} and {more} more", first.join(", ")),
        };
        listed.push(ListedView { index, indent: nodes[index].depth.min(MAX_INDENT), after });
        open.extend(below[index].iter().rev());
    }
    listed
}

/// Names the contracts around which the part is.
fn part(selected: &[&str]) -> String {
    match selected {
        [] => String::new(),
        [last] => format!("The part around {last}"),
        [first @ .., last] if selected.len() <= MAX_LINKS => format!("The part around {} and {last}", first.join(", ")),
        more => format!("The part around {} contracts", more.len()),
    }
}

fn row(index: usize, node: &Node, (dependencies, dependents): (LinksView, LinksView)) -> RowView {
    let is_described = node.summary != node.id.as_str();
    RowView {
        index,
        id: node.id.to_string(),
        version: node.version.get(),
        state: node.state.into(),
        layer: node.depth + 1,
        dependencies: dependencies.finished(node.outside_dependencies),
        dependents: dependents.finished(0),
        summary: if is_described { one_line(&node.summary, MAX_SUMMARY) } else { String::new() },
        is_selected: node.is_selected,
        room: None,
    }
}

impl LinksView {
    fn push(&mut self, index: usize, node: &Node) {
        self.links.push((index, node.id.to_string()));
    }

    /// Limits the links, and notes those that are missing.
    fn finished(mut self, outside: usize) -> Self {
        let more = self.links.len().saturating_sub(MAX_LINKS);
        self.links.truncate(MAX_LINKS);
        self.more = match (more, outside) {
            (0, 0) => String::new(),
            (more, 0) => format!("and {more} more"),
            (0, outside) => format!("{outside} outside of this part"),
            (more, outside) => format!("and {more} more, {outside} outside of this part"),
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::test_graphs::graph_of;

    #[test]
    fn texts_of_contracts_are_escaped() {
        let hostile = "</script><img src=x onerror=x>\u{202e}\" onload='x' {{7*7}}";
        let html = GraphPage::new(&graph_of(&[vec![], vec![0]], hostile).unwrap()).render().unwrap();
        assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains("\" onload"), "{html}");
        assert!(html.contains("\\u{202e}") && html.contains("{{7*7}}"), "{html}");
        assert!(!html.contains("<script") && !html.contains(" style="), "the policy allows neither");
    }

    #[test]
    fn a_cell_has_a_limited_number_of_links() {
        let wide: Vec<Vec<usize>> = std::iter::once(vec![]).chain((1..15).map(|_| vec![0])).collect();
        let page = GraphPage::new(&graph_of(&wide, "x").unwrap());
        assert_eq!((page.rows[0].dependents.links.len(), page.rows[0].dependents.more.as_str()), (10, "and 4 more"));
        let finished = LinksView::default().finished(2);
        assert_eq!(finished.more, "2 outside of this part");
    }

    #[test]
    fn a_large_graph_is_a_table_that_says_so() {
        let page = GraphPage::new(&graph_of(&vec![vec![]; 400], "x").unwrap());
        let html = page.render().unwrap();
        assert!(
            html.contains("is not drawn. The table has all contracts.") && !html.contains("<svg class=\"graph"),
            "{html}"
        );
        assert_eq!(html.matches("<tr id=").count(), 400);
    }

    #[test]
    fn the_list_has_each_contract_once_below_a_dependency() {
        let listed = |dependencies: &[Vec<usize>]| -> Vec<(usize, usize, String)> {
            let page = GraphPage::new(&graph_of(dependencies, "x").unwrap());
            let short = |text: &str| text.replace("shop/c", "");
            page.list.iter().map(|it| (it.index, it.indent, short(&it.after))).collect()
        };
        let shown = |index, indent, after: &str| (index, indent, after.to_owned());
        // A contract that depends on two layers is below the later one.
        assert_eq!(
            listed(&[vec![], vec![0], vec![0, 1], vec![]]),
            [shown(0, 0, ""), shown(2, 1, "000"), shown(3, 2, "000, 001"), shown(1, 0, "")]
        );
        let chain: Vec<Vec<usize>> = (0..5_000_usize).map(|index| index.checked_sub(1).into_iter().collect()).collect();
        let listed = listed(&chain[..500]);
        assert_eq!((listed.len(), listed[499].1), (500, MAX_INDENT));
        assert_eq!(list(&graph_of(&chain, "x").unwrap()).len(), 5_000);
    }

    #[test]
    fn an_empty_graph_has_a_page() {
        let html = GraphPage::new(&graph_of(&[], "x").unwrap()).render().unwrap();
        assert!(html.contains("0 contracts") && !html.contains("<table") && !html.contains("<svg"), "{html}");
    }
}
