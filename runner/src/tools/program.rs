//! A tool that is a command: arguments on standard input, the result on standard output.

use counterproof_safe_run::Ending;
use counterproof_store::write::WriteError;
use serde_json::{Map, Value};

use super::{ToolContext, ToolOutput};
use crate::body_sink::BodyBytes;
use crate::exchange::{Exchange, ProgramEnd};
use crate::failure::{Fault, Reason};
use crate::process::AgentProgram;

/// Runs the command for one call. The inner error is a command that cannot be run.
pub(super) async fn call(
    program: &AgentProgram,
    arguments: &Map<String, Value>,
    context: &ToolContext<'_>,
) -> Result<Result<ToolOutput, Fault>, WriteError> {
    let request = Value::Object(arguments.clone()).to_string();
    let exchange = program.exchange(request.as_bytes(), context.limits, context.destination).await?;
    Ok(output(exchange))
}

fn output(exchange: Exchange) -> Result<ToolOutput, Fault> {
    let Exchange { response, program, fault, .. } = exchange;
    let stdout = match response.map(|response| response.body.bytes) {
        Some(BodyBytes::Memory(bytes)) => bytes,
        _ => Vec::new(),
    };
    match (fault, program) {
        (None, _) => Ok(ToolOutput::ok(value(&stdout))),
        (Some(Fault { reason: Reason::ResponseTimeout, .. }), _) => {
            Ok(ToolOutput::error("the tool did not answer in time".into()))
        }
        (Some(fault), Some(ProgramEnd { stderr, ending: Some(Ending::Exited(1..) | Ending::Killed(_)), .. })) => {
            let said = if stdout.trim_ascii().is_empty() { stderr } else { stdout };
            let silent = said.trim_ascii().is_empty();
            Ok(ToolOutput::error(if silent {
                fault.message.replace("the agent", "the tool").into()
            } else {
                value(&said)
            }))
        }
        (Some(fault), _) => {
            Err(Fault { message: fault.message.replace("the agent's program", "its command"), ..fault })
        }
    }
}

/// Returns output as JSON if it is JSON, else as text without the line break at its end.
fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(bytes);
        text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text)).into()
    })
}
