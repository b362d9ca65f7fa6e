//! The crate as another crate uses it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cards;
mod case_page;
#[cfg(unix)]
#[path = "../../../contracts/tests/it/kit.rs"]
#[expect(dead_code, reason = "the tests of contracts use the rest of the kit")]
mod contract_kit;
#[cfg(unix)]
mod contract_pages;
mod exports;
mod first_page;
mod history;
mod hostile;
#[path = "../../../evaluator/tests/it/kit.rs"]
#[expect(dead_code, reason = "the tests of the evaluator use the rest of the kit")]
mod kit;
mod links;
mod outputs;
mod report;
mod report_folder;
mod reported;
mod sarif;
mod test_results;
mod xml;
