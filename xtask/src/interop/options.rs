//! The parts of the task, and their options.

use super::{cel, litellm, mcp, postgres};
use crate::step::Failure;

/// Options of `cargo xtask interop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of random expressions
    #[arg(long, default_value_t = 20_000)]
    expressions: u32,
    /// Number that the random expressions follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Parts to run [default: all parts]
    #[arg(value_enum)]
    parts: Vec<Part>,
}

/// A part of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Both OpenAI protocols against litellm's mock server.
    Litellm,
    /// The conformance tests of CEL.
    Conformance,
    /// Random expressions, compared with Google's implementation of CEL.
    Differential,
    /// Clients and servers of the Model Context Protocol, with the guard between them and without it.
    Mcp,
    /// The conformance suite of the Model Context Protocol, with the proxy of the guard and without it.
    McpConformance,
    /// The ledger in a PostgreSQL database.
    Postgres,
}

impl Default for Options {
    fn default() -> Self {
        Self { expressions: 20_000, seed: 1, parts: Vec::new() }
    }
}

/// Runs the parts.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let wanted = |part| options.parts.is_empty() || options.parts.contains(&part);
    if wanted(Part::Conformance) {
        cel::conformance()?;
    }
    if wanted(Part::Differential) {
        cel::differential(options.expressions, options.seed)?;
    }
    if wanted(Part::Litellm) {
        litellm::run()?;
    }
    if wanted(Part::Mcp) {
        mcp::run()?;
    }
    if wanted(Part::McpConformance) {
        mcp::conformance()?;
    }
    if wanted(Part::Postgres) {
        postgres::run()?;
    }
    Ok(())
}
