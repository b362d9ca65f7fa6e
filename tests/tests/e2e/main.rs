//! End-to-end tests of the programs, one module for each area.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod accept;
#[cfg(unix)]
mod agent_command;
#[cfg(unix)]
mod batch;
mod buckets;
mod check;
#[cfg(unix)]
mod ci_comments;
#[cfg(unix)]
mod ci_files;
#[cfg(unix)]
mod ci_recipes;
#[cfg(unix)]
mod ci_steps;
#[cfg(unix)]
mod closed_pipe;
mod compare;
mod completions;
#[cfg(unix)]
mod conformance;
mod contract_killed;
mod contract_kit;
#[cfg(unix)]
mod contract_limits;
mod contracts;
mod contracts_docs;
mod demo;
mod docs;
#[cfg(unix)]
mod export_run;
mod facts;
mod full_output;
mod gate_situations;
#[cfg(unix)]
mod guard_cassettes;
#[cfg(unix)]
mod guard_decisions;
mod guard_demo;
#[cfg(unix)]
mod guard_events;
#[cfg(unix)]
mod guard_hidden_calls;
#[cfg(unix)]
mod guard_import;
#[cfg(unix)]
mod guard_injection;
#[cfg(unix)]
mod guard_kit;
mod guard_policy;
#[cfg(unix)]
mod guard_process_ends;
mod guard_processes;
#[cfg(unix)]
mod guard_proxy;
#[cfg(unix)]
mod guard_proxy_decisions;
#[cfg(unix)]
mod guard_proxy_faults;
mod guard_proxy_kit;
#[cfg(unix)]
mod guard_run;
#[cfg(unix)]
mod guard_run_ends;
#[cfg(unix)]
mod guard_secrets;
#[cfg(unix)]
mod guard_warnings;
mod help;
mod history_links;
#[cfg(unix)]
mod hostile_names;
mod http_agents;
#[cfg(target_os = "linux")]
mod inherited;
#[cfg(unix)]
mod ledger;
mod ledger_export;
mod malformed;
mod merge;
mod mutate;
#[cfg(unix)]
mod open_files;
#[cfg(target_os = "linux")]
mod pipes;
mod quickstart;
mod replay;
mod report;
#[cfg(target_os = "linux")]
mod report_killed;
mod run;
mod run_confirm;
mod run_connections;
mod run_disk_full;
mod run_pressed;
mod run_resumed;
mod run_resumed_otherwise;
mod run_secrets;
#[cfg(unix)]
mod sessions;
mod shards_taken_over;
#[cfg(unix)]
mod started_agent;
#[cfg(target_os = "linux")]
mod stepping;
#[cfg(target_os = "linux")]
mod tool_loops;
mod workflow_kit;
mod workflows;
mod workflows_continued;
mod writers_killed;
