//! `counterproof contract graph`: the dependencies of contracts.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_contracts::ContractId;
use counterproof_contracts::graph::{Graph, GraphError, GraphQuery, MAX_HTML_NODES, MAX_NODES};
use counterproof_report::ReportError;
use counterproof_report::contracts::{GraphPageError, write_graph};
use serde_json::json;

use super::project::Project;
use super::run_reporter::Failure;
use crate::report_output::WAIT_OR_CHOOSE;
use crate::streams::Streams;

/// Print the dependencies of contracts as a graph.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// These contracts with everything that they depend on and everything that depends on them; all contracts if there are none
    #[arg(value_name = "ID")]
    ids: Vec<ContractId>,

    /// Format of the graph
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    format: GraphFormat,

    /// Folder of the page, for `--format html`
    #[arg(long, value_name = "DIR", default_value = "contract-graph")]
    out: Utf8PathBuf,
}

/// Values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GraphFormat {
    /// The language of Graphviz
    Dot,
    /// The language of Mermaid
    Mermaid,
    /// A page without scripts, which opens from disk
    Html,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let max_nodes = if args.format == GraphFormat::Html { MAX_HTML_NODES } else { MAX_NODES };
    let graph = Graph::read(&store, &GraphQuery { around: &args.ids, max_nodes })?;
    if project.is_json {
        let nodes = graph.nodes().iter().map(|it| json!({"id": it.id, "version": it.version, "state": it.state}));
        let edges = graph.edges().iter().map(|it| {
            let id = |index: usize| &graph.nodes()[index].id;
            json!({"from": id(it.dependency), "to": id(it.dependent)})
        });
        let document = json!({"nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()});
        project.print(streams, &document, String::new)?;
        return Ok(Exit::Done);
    }
    match args.format {
        GraphFormat::Dot => streams.print_document(&graph.to_dot())?,
        GraphFormat::Mermaid => streams.print_document(&graph.to_mermaid())?,
        GraphFormat::Html => {
            let page = write_graph(&graph, &args.out)?;
            streams.print_line(format_args!("graph: {page}"))?;
        }
    }
    Ok(Exit::Done)
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Store(error) => error.into(),
            other => Failure::refused("graph", other).hint("name the contracts whose part of the graph you need"),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Foreign { .. } => Failure::refused("usage", error).hint("choose another folder"),
            ReportError::Busy { .. } => Failure::refused("locked", error).hint(WAIT_OR_CHOOSE),
            other => Failure::io(other),
        }
    }
}

impl From<GraphPageError> for Failure {
    fn from(error: GraphPageError) -> Self {
        match error {
            GraphPageError::Graph(error) => error.into(),
            GraphPageError::Page(error) => error.into(),
        }
    }
}
