//! The report as a folder of static pages: what a person opens from disk, without a server, a network or scripts.
//!
//! Each case is rendered by the worker that compared it and is then forgotten; the index is written from the evaluation
//! at the end. A page is a view model of values that are ready to be shown, and a template that only loops and chooses:
//! nothing about a case is decided here.
//!
//! ```text
//! index.html  lists/<verdict>-<page>.html  cases/<caseId>.html  static/  artifacts/{baseline,new}/…
//! evaluation.json  summary.md  junit.xml  results.sarif
//! ```

mod actions;
mod beside;
mod case_page;
mod case_rows;
mod cause;
mod cells;
mod changes;
mod diff_lines;
mod endings;
mod escape;
mod events;
mod failures;
mod files;
mod findings;
mod folder;
pub mod history;
mod index;
mod lists;
mod marks;
mod moved;
mod names;
mod neighbours;
mod output;
mod overview;
mod places;
mod reasons;
mod repeats;
mod replay;
mod runs;
mod search;
mod shown;
mod verdicts;
mod writer;

pub use beside::{CasePlace, ReportUrl, SUMMARY_UP_TO_BYTES, Surroundings, UrlError, summary};
pub use names::encode_path;
pub use writer::{PageSelection, ReportError, ReportWriter};
