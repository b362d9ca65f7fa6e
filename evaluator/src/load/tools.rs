//! The tools of a case, which the report's search uses.

use std::collections::BTreeSet;

use counterproof_artifact::EventBody;

use crate::load::Artifact;
use crate::values::text;

/// Characters of a tool's name.
const LONGEST_NAME: usize = 80;

/// Most tools per case. An agent that uses more invents their names.
const MOST_TOOLS: usize = 64;

/// Returns the names of the tools that answers called or proposed, sorted.
pub(crate) fn tool_names<'a>(artifacts: impl IntoIterator<Item = &'a Artifact>) -> Vec<String> {
    let answers = artifacts.into_iter().filter_map(Artifact::answer);
    let names: BTreeSet<&str> = answers
        .flat_map(|loaded| {
            let called = loaded.answer.events.iter().filter_map(|event| match &event.body {
                EventBody::ToolCall(call) => Some(call.tool.as_str()),
                _ => None,
            });
            called.chain(loaded.answer.proposed_actions.iter().map(|action| action.tool_name.as_str()))
        })
        .collect();
    names.into_iter().take(MOST_TOOLS).map(|name| text::one_line(name, LONGEST_NAME)).collect()
}
