//! The page of a graph: a drawing of small graphs, and a table of all contracts.

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{group_digits, one_line};
use counterproof_contracts::State;
use counterproof_contracts::graph::{Edge, Graph, GraphError, MAX_HTML_NODES, Node};

use super::control_room_page::{StateView, contract_folder};
use super::graph_drawing::{Drawing, draw};
use crate::folder::{FolderKind, ReportError, publish_page};

const MAX_SUMMARY: usize = 200;

const MAX_LINKS: usize = 10;

const FOLDER: FolderKind = contract_folder(
    "a graph of contracts",
    "A graph of contracts of Counterproof. The next graph that is written here replaces it. Open index.html.\n",
);

#[derive(Debug, Template)]
#[template(path = "contracts/graph.html")]
struct GraphPage {
    root: &'static str,
    title: String,
    /// Which part of the graph it is. Empty for the whole graph.
    part: String,
    /// The number of contracts of each state that occurs.
    counts: Vec<(StateView, String)>,
    drawing: Option<Drawing>,
    rows: Vec<RowView>,
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
    Ok(publish_page(FOLDER.begin(out)?, out, &GraphPage::new(graph))?)
}

impl GraphPage {
    fn new(graph: &Graph) -> Self {
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
            title: match nodes.len() {
                1 => "1 contract".to_owned(),
                number => format!("{} contracts", group_digits(number as u64)),
            },
            part: part(&selected),
            counts: counts.map(|(state, count)| (state.into(), group_digits(count as u64))).collect(),
            drawing: if nodes.is_empty() { None } else { draw(graph) },
            rows: nodes.iter().zip(lists).enumerate().map(|(index, (node, lists))| row(index, node, lists)).collect(),
        }
    }
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
    fn an_empty_graph_has_a_page() {
        let html = GraphPage::new(&graph_of(&[], "x").unwrap()).render().unwrap();
        assert!(html.contains("0 contracts") && !html.contains("<table") && !html.contains("<svg"), "{html}");
    }
}
