//! The request of a sample call: built as a client writes it, and read as the guard reads it.

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical_json::canonical_hash;
use serde_json::Value;

use super::keys::TOOLS_CALL;
use super::{ClientMessage, Scanner, StrictError, ToolCallProblem, read_client_messages};
use crate::policy::{RequestFacts, SampleCall};
use crate::session::MAX_INSPECT_BYTES;

/// Reads the request of a sample call through the reader of the shim and within its limits. Fails if the shim would refuse the call,
/// because parsers disagree on it.
pub fn read_sample(call: &SampleCall<'_>) -> Result<RequestFacts, ToolCallProblem> {
    let (name, args) = (Value::from(call.tool_name), without_space(call.args));
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{TOOLS_CALL}\",\"params\":{{\"name\":{name},\"arguments\":{args}}}}}\n"
    );
    let bytes_in = line.len() as u64;
    if line.len() > MAX_INSPECT_BYTES {
        return read_large(&line);
    }
    let messages = read_client_messages(line.as_bytes())?;
    let Some(ClientMessage::Call(read)) = messages.messages.into_iter().next() else {
        return Err(StrictError::Invalid("the request is no tool call".to_owned()).into());
    };
    let args_hash = read.args_bytes_hash;
    let args = match read.args {
        Err(ToolCallProblem::Unreadable(_)) => {
            return Ok(RequestFacts { args: None, args_hash, bytes_in });
        }
        args => args?,
    };
    let args_hash = canonical_hash(&args);
    if call.is_too_large {
        // Any request that is too large is larger than the limit.
        return Ok(RequestFacts { args: None, args_hash, bytes_in: bytes_in.max(MAX_INSPECT_BYTES as u64 + 1) });
    }
    Ok(RequestFacts { args: Some(args), args_hash, bytes_in })
}

fn read_large(line: &str) -> Result<RequestFacts, ToolCallProblem> {
    let mut scanner = Scanner::default();
    scanner.push(line.as_bytes());
    let found = scanner.finish();
    if let Some(problem) = found.problem {
        return Err(problem);
    }
    let args_hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
    Ok(RequestFacts { args: None, args_hash, bytes_in: line.len() as u64 })
}

/// Removes the space between the tokens of JSON, as clients write it. A request on one line has no line breaks.
fn without_space(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let keeps = is_text || !matches!(character, ' ' | '\t' | '\r' | '\n');
        is_text ^= *character == '"' && !is_escaped;
        is_escaped = is_text && *character == '\\' && !is_escaped;
        keeps
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(args: &str) -> Result<RequestFacts, ToolCallProblem> {
        read_sample(&SampleCall { tool_name: "push", args, is_too_large: false })
    }

    #[test]
    fn the_size_is_that_of_the_request() {
        let request =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push","arguments":{"a":"b \\\" c"}}}"#;
        let facts = read("{ \"a\":\n \"b \\\\\\\" c\" }").unwrap();
        assert_eq!(facts.bytes_in, request.len() as u64 + 1);
        assert_eq!(facts.args, Some(json!({"a": "b \\\" c"})));
    }

    #[test]
    fn a_request_beyond_the_limit_is_not_inspected() {
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_INSPECT_BYTES));
        let facts = read(&large).unwrap();
        assert!(facts.args.is_none() && facts.bytes_in > MAX_INSPECT_BYTES as u64);
        assert_eq!(facts.args_hash, Sha256Digest::from_bytes(large.as_bytes()));
        let facts = read_sample(&SampleCall { tool_name: "push", args: "{}", is_too_large: true }).unwrap();
        assert!(facts.args.is_none() && facts.bytes_in > MAX_INSPECT_BYTES as u64);
    }

    #[test]
    fn arguments_on_which_parsers_disagree_are_refused() {
        let problem = read("{\"p\":1,\"p\":2}").unwrap_err();
        assert_eq!(problem.to_string(), "the key `p` occurs twice in an object");
    }
}
