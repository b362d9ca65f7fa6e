//! The built-in agent: a small shop's support desk that speaks the wire protocol over HTTP, in two variants.
//!
//! A request names a case; the playbook of that case uses the shop's tools and writes down every step; the server sends
//! the steps back. Nothing is random and no clock is read, so the same case gives the same bytes every time. The variant
//! [`Variant::New`] differs in eight of the ten cases, and the baseline has an outage in another: see [`PLANTED`].
//!
//! This crate knows neither the runner nor the evaluator: it is the agent's side of the wire.
//!
//! ```no_run
//! use counterproof_demo::{Variant, start};
//!
//! # async fn example() -> std::io::Result<()> {
//! let agent = start(Variant::Baseline).await?;
//! println!("POST a case to {}/run-case", agent.base_url());
//! # Ok(()) }
//! ```

mod cases;
mod playbook;
mod server;
mod shop;
mod trace;
mod variant;

pub use cases::{CASES, PLANTED, Planted};
pub use server::{Agent, serve, start};
pub use variant::{UnknownVariant, Variant};
