//! How far results can be trusted: the error rates of the statistics, false alarms and power of the built program over simulated
//! nights, and on real runs its rankings and causes, what it shows of planted faults, and its false alarms.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod error_rates;
mod night;
mod plants;
mod redeals;
#[path = "../../../evaluator/tests/it/simulation.rs"]
mod simulation;
mod simulations;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum};
use counterproof_bench::{Outcome, arguments, corpus, machine, release_program};

#[derive(Debug, Parser)]
#[command(name = "trust")]
struct Args {
    /// Sections to run [default: simulations, corpus if `--corpus` is given, and redeals if `--same-agent` is]
    #[arg(value_enum)]
    sections: Vec<Section>,

    /// Folder of the corpus of real runs
    #[arg(long, value_name = "DIR")]
    corpus: Option<Utf8PathBuf>,

    /// Run folders of one agent, separated by commas, that are dealt out anew as baseline and new; can be repeated
    #[arg(long, value_name = "RUN,RUN…")]
    same_agent: Vec<String>,

    /// Program to measure [default: builds it in release mode]
    #[arg(long, value_name = "FILE")]
    program: Option<Utf8PathBuf>,

    /// Number of simulated nights per row
    #[arg(long, value_name = "N", default_value_t = 400)]
    nights: u32,

    /// Simulate only the rows whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// The error rates of the statistics, in a few minutes. The tests check the same simulations with fewer nights.
    ErrorRates,
    /// False alarms and power over nights of synthetic agents.
    Simulations,
    /// Severity, flags, divergence and causes on real runs, and faults and harmless changes put into them.
    Corpus,
    /// Re-deals of the runs of one agent, named by `--same-agent`.
    Redeals,
}

fn main() -> Outcome {
    let args = Args::parse_from(std::iter::once("trust".to_owned()).chain(arguments()));
    println!("machine: {}", machine());
    if args.sections.contains(&Section::ErrorRates) {
        error_rates::print()?;
        if args.sections.len() == 1 {
            return Ok(());
        }
    }
    if args.sections.contains(&Section::Corpus) && args.corpus.is_none() {
        return Err("the section `corpus` needs `--corpus`".into());
    }
    if args.sections.contains(&Section::Redeals) && args.same_agent.is_empty() {
        return Err("the section `redeals` needs `--same-agent`".into());
    }
    let program = args.program.map_or_else(|| release_program("counterproof", "counterproof"), Ok)?;
    let is_selected = |section| args.sections.is_empty() || args.sections.contains(&section);
    if is_selected(Section::Simulations) {
        simulations::run(&program, args.nights, args.only.as_deref())?;
    }
    if is_selected(Section::Corpus)
        && let Some(folder) = &args.corpus
    {
        corpus::run(&program, folder)?;
        plants::run(&program, folder)?;
    }
    if is_selected(Section::Redeals) && !args.same_agent.is_empty() {
        redeals::run(&program, &args.same_agent)?;
    }
    Ok(())
}
