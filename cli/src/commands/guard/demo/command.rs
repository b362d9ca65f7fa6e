//! `counterproof guard demo`: the arguments, the recording and the comparison.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_demo::{GUARD_CASES, GUARD_PLANTED, GUARD_POLICY, Variant};
use counterproof_store::write::{self, Durability};

use super::recording::{Recording, absolute};
use crate::command_error::CommandError;
use crate::commands::demo_folder::{check_verdicts, compare_runs, prepare};
use crate::shell::quoted;
use crate::streams::Streams;

/// Record and compare two versions of a built-in MCP agent.
///
/// Needs no setup and takes a few seconds. Each case is a run of the agent through `guard shim`, with a policy. The second version of
/// the agent has planted faults: a policy refuses one of its calls, a breaker ends one of its runs, and the server crashes in another.
///
/// Exit code 0: every case got the expected verdict, including the planted faults. 1: a case got another verdict. 2: the output folder
/// is in use. 3: a file could not be read or written, or the agent could not be recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the policy, the ledger, the cases, the runs and the report
    #[arg(long, value_name = "DIR", default_value = "counterproof-guard-demo")]
    out: Utf8PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let out = &args.out;
    let cases_path = out.join("cases.json");
    prepare(out, &cases_path, GUARD_CASES)?;
    let policy = out.join("policy.yaml");
    write::write(&policy, GUARD_POLICY.as_bytes(), Durability::Cached).map_err(CommandError::io)?;
    let recording =
        Recording { ledger: absolute(&out.join("ledger.db"))?, policy: absolute(&policy)?, runs: out.join("runs") };
    let mut record = |variant: Variant| {
        streams.log(format_args!("recording {} runs of the {variant} agent …", GUARD_PLANTED.len()));
        recording.record(variant)
    };
    let [baseline, new] = [record(Variant::Baseline)?, record(Variant::New)?];
    let evaluation = compare_runs(out, cases_path, [baseline, new], streams)?;
    let exit = check_verdicts(out, &evaluation, &GUARD_PLANTED, streams)?;
    if exit == Exit::Done {
        print_next(out, streams);
    }
    Ok(exit)
}

/// Prints how to look at the recorded calls.
fn print_next(out: &Utf8Path, streams: &mut Streams) {
    let [ledger, policy] = ["ledger.db", "policy.yaml"].map(|name| quoted(out.join(name).as_str()).into_owned());
    streams.log("next: look at the recorded calls and at the policy");
    streams.log(format_args!("      counterproof ledger runs --ledger {ledger}"));
    streams.log(format_args!("      counterproof ledger query --decision BLOCK --ledger {ledger}"));
    streams.log(format_args!(
        "      counterproof guard policy explain {policy} --server shop --tool refund_order --args '{{\"amount\": 450}}'"
    ));
    streams.log("      docs/guard-import.md puts the guard in front of your own servers");
}
