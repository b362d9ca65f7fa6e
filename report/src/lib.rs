//! Renders the comparison of two runs: a folder of static pages that open from disk without a server, a network or scripts,
//! its exports for other programs, its facts for databases, and the history of many comparisons. Nothing about a case is decided
//! here.
//!
//! Each case page is rendered by the worker that compared the case, which then drops it; the index is written from the
//! evaluation at the end. A page is a view of display-ready values plus a template of loops and conditions. Views never
//! touch the output folder: they collect references to run files, and the writer copies those files afterwards.
//!
//! ```text
//! view ← folder, files ← site ← case, index, exports, copies ← writer
//! view, folder               ← history ← facts
//! contracts: the control room and the dependency graph
//! session: one page of a session
//! guarded: one page of the guarded runs of a ledger
//!
//! index.html  lists/<list>-<page>.html  cases/<caseId>.html  static/  artifacts/{baseline,new}/…
//! evaluation.json  summary.md  junit.xml  ctrf.json  results.sarif
//! ```

mod case;
#[cfg(unix)]
pub mod contracts;
mod copies;
mod exports;
pub mod facts;
mod files;
mod folder;
mod guarded;
pub mod history;
mod index;
mod page_queue;
pub mod session;
mod site;
mod view;
mod writer;

pub use copies::Copies;
pub use exports::{CaseLocation, ReportContext, ReportUrl, ReportUrlError, SUMMARY_UP_TO_BYTES, summary};
pub use exports::{ctrf, junit, sarif, test_results};
pub use folder::{ReportError, clear};
pub use guarded::{GuardedCall, GuardedRun, Outcome, write_guarded_runs};
pub use site::PageSelection;
pub use site::encode_path;
pub use writer::ReportWriter;
