//! Histories as agents send them: repeated, parallel, resumed, compacted.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::CommandLine;

fn asked(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall::new(Some(id.to_owned()), name.to_owned(), arguments.to_owned())
}

fn answered(calls: &mut AnsweredCalls, api: Api, body: &Value) -> Vec<SessionEvent> {
    calls.answered(api, body.to_string().as_bytes())
}

fn tools(events: &[SessionEvent]) -> Vec<(&str, &str)> {
    let tools = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCall(call) => Some((call.call_id.as_deref()?, call.result.content.as_deref()?)),
        _ => None,
    });
    tools.collect()
}

/// A turn of the Chat protocol: the message that asks for one call, and its answer.
fn turn(id: &str, arguments: &str, answer: &str) -> [Value; 2] {
    let call = json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": answer}),
    ]
}

#[test]
fn a_call_is_recorded_once_however_often_the_history_repeats_it() {
    let mut calls = AnsweredCalls::new("s");
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for number in 0..5 {
        let request = json!({"messages": messages});
        let events = answered(&mut calls, Api::OpenaiChat, &request);
        assert_eq!(events.len(), usize::from(number > 0), "{number}");
        // The same request again, after a 429.
        assert!(answered(&mut calls, Api::OpenaiChat, &request).is_empty());
        let id = format!("call_{number}");
        calls.asked(&[asked(&id, "read", "{\"path\":\"a\"}")], Timestamp::UNIX_EPOCH);
        messages.extend(turn(&id, "{\"path\":\"a\"}", &format!("text {number}")));
    }
    let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": messages}));
    assert_eq!(tools(&events), [("call_4", "text 4")]);
    let EventBody::ToolCall(call) = &events[0].body else { panic!("{events:?}") };
    assert_eq!((call.tool_name.as_str(), &call.arguments), ("read", &json!({"path": "a"})));
    assert_eq!((call.result.success, call.result.truncated, call.latency_ms), (Some(true), Some(false), None));
    let key = SessionEvent::reconstructed("s/call_4", Timestamp::UNIX_EPOCH, events[0].body.clone());
    assert_eq!(events[0], key);
}

#[test]
fn parallel_calls_are_recorded_in_the_order_of_their_answers() {
    let mut calls = AnsweredCalls::new("s");
    calls.asked(
        &[asked("a", "read", "{}"), asked("b", "read", ""), asked("c", "read", "not JSON")],
        Timestamp::UNIX_EPOCH,
    );
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": [{"type": "text", "text": id}]});
    let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": [tool("b"), tool("a")]}));
    assert_eq!(tools(&events), [("b", "b"), ("a", "a")]);
    let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": [tool("b"), tool("a"), tool("c")]}));
    assert_eq!(tools(&events), [("c", "c")]);
    let EventBody::ToolCall(call) = &events[0].body else { panic!("{events:?}") };
    assert_eq!(call.arguments, json!("not JSON"));
}

#[test]
fn calls_of_a_resumed_conversation_are_not_recorded() {
    let mut calls = AnsweredCalls::new("s");
    let history: Vec<Value> = turn("old", "{}", "text").into();
    assert!(answered(&mut calls, Api::OpenaiChat, &json!({"messages": history})).is_empty());
    calls.asked(&[asked("new", "read", "{}")], Timestamp::UNIX_EPOCH);
    let history: Vec<Value> = history.into_iter().chain(turn("new", "{}", "text")).collect();
    assert_eq!(tools(&answered(&mut calls, Api::OpenaiChat, &json!({"messages": history}))), [("new", "text")]);
}

#[test]
fn an_id_that_is_used_again_is_another_call() {
    let mut calls = AnsweredCalls::new("s");
    let (mut messages, mut ids) = (Vec::new(), Vec::new());
    for number in 0..3 {
        calls.asked(&[asked("call_0", "read", "{}")], Timestamp::UNIX_EPOCH);
        messages.extend(turn("call_0", "{}", &number.to_string()));
        if number == 2 {
            // A compaction moves all messages.
            messages.remove(0);
        }
        let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": messages}));
        assert_eq!(tools(&events), [("call_0", number.to_string().as_str())]);
        ids.push(events[0].event_id.clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn one_id_in_two_conversations_at_a_time_belongs_to_the_call_of_its_history() {
    let mut calls = AnsweredCalls::new("s");
    calls.asked(&[asked("call_0", "read", "{\"path\": \"first\"}")], Timestamp::UNIX_EPOCH);
    calls.asked(&[asked("call_0", "read", "{\"path\": \"second\"}")], Timestamp::UNIX_EPOCH);
    for path in ["first", "second"] {
        // The agent writes the arguments in its own form.
        let messages = turn("call_0", &json!({"path": path}).to_string(), path);
        let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": messages}));
        let EventBody::ToolCall(call) = &events[0].body else { panic!("{events:?}") };
        assert_eq!((&call.arguments["path"], call.result.content.as_deref()), (&json!(path), Some(path)));
    }
}

#[test]
fn tool_results_of_anthropic_are_read() {
    let mut calls = AnsweredCalls::new("s");
    calls.asked(
        &[asked("t1", "Bash", "{\"command\":\"ls\"}"), asked("t2", "Read", "{}"), asked("t3", "Read", "{}")],
        Timestamp::UNIX_EPOCH,
    );
    let request = json!({"messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "Exit code 2\nls: no", "is_error": true},
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "a"}, {"type": "image"},
            {"type": "text", "text": "b"}]},
        {"type": "tool_result", "tool_use_id": "t3"},
        {"type": "text", "text": "and now?"}]}]});
    let events = answered(&mut calls, Api::AnthropicMessages, &request);
    assert_eq!(tools(&events), [("t1", "Exit code 2\nls: no"), ("t2", "a\n[image]\nb"), ("t3", "")]);
    let EventBody::ToolCall(call) = &events[0].body else { panic!("{events:?}") };
    assert_eq!((call.result.success, call.result.error.as_deref()), (Some(false), Some("Exit code 2\nls: no")));
    let EventBody::Command(command) = &events[1].body else { panic!("{events:?}") };
    assert_eq!(command.command, Some(CommandLine::Shell("ls".to_owned())));
    assert_eq!((command.exit_code, command.call_id.as_deref()), (Some(2), Some("t1")));
    assert_ne!(events[0].event_id, events[1].event_id);
}

#[test]
fn items_of_the_responses_api_are_read() {
    let mut calls = AnsweredCalls::new("s");
    let shell = "{\"type\":\"exec\",\"command\":[\"ls\"]}";
    calls.asked(
        &[asked("f", "shell", "{\"command\":[\"ls\"]}"), asked("l", "local_shell_call", shell)],
        Timestamp::UNIX_EPOCH,
    );
    calls.asked(&[asked("c", "apply_patch", "*** Begin"), asked("o", "read", "{}")], Timestamp::UNIX_EPOCH);
    let request = json!({"input": [
        {"type": "function_call", "call_id": "f", "name": "shell", "arguments": "{\"command\":[\"ls\"]}"},
        {"type": "function_call_output", "call_id": "f", "output": "{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"},
        {"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "l", "output": "x\nexit code 1"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "done"}]},
        {"type": "function_call_output", "call_id": "o", "output": {"content": "no", "success": false}}]});
    let events = answered(&mut calls, Api::OpenaiResponses, &request);
    let found: Vec<_> = tools(&events).into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, ["f", "l", "c", "o"]);
    let commands = events.iter().filter_map(|event| match &event.body {
        EventBody::Command(command) => Some((command.exit_code, command.stdout.as_deref())),
        _ => None,
    });
    assert_eq!(commands.collect::<Vec<_>>(), [(Some(0), Some("x")), (Some(1), Some("x\nexit code 1"))]);
    let EventBody::ToolCall(last) = &events[5].body else { panic!("{events:?}") };
    assert_eq!((last.result.success, last.result.content.as_deref()), (Some(false), Some("no")));
    assert!(answered(&mut calls, Api::OpenaiResponses, &json!({"input": "hello"})).is_empty());
}

#[test]
fn waiting_calls_are_bounded() {
    let mut calls = AnsweredCalls::new("s");
    for number in 0..MAX_WAITING + 10 {
        calls.asked(&[asked(&number.to_string(), "read", "{}")], Timestamp::UNIX_EPOCH);
    }
    assert_eq!(calls.waiting.len(), MAX_WAITING);
    calls.asked(&[asked("large", "write", &"x".repeat(MAX_WAITING_BYTES - 10))], Timestamp::UNIX_EPOCH);
    assert!(calls.waiting.len() < 10 && calls.waiting_bytes <= MAX_WAITING_BYTES);
}

proptest! {
    #[test]
    fn each_answered_call_is_recorded_exactly_once(
        turns in prop::collection::vec((1_usize..4, any::<bool>(), any::<bool>()), 1..12),
    ) {
        let mut calls = AnsweredCalls::new("s");
        let (mut messages, mut found, mut expected) = (vec![json!({"role": "user", "content": "go on"})], Vec::new(), Vec::new());
        for (turn, (parallel, says_more, is_sent_twice)) in turns.into_iter().enumerate() {
            let ids: Vec<String> = (0..parallel).map(|number| format!("{turn}-{number}")).collect();
            calls.asked(&ids.iter().map(|id| asked(id, "read", "{}")).collect::<Vec<_>>(), Timestamp::UNIX_EPOCH);
            messages.push(json!({"role": "assistant", "content": "same"}));
            messages.extend(ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": "same"})));
            if says_more {
                messages.push(json!({"role": "user", "content": "go on"}));
            }
            expected.extend(ids);
            for _ in 0..=usize::from(is_sent_twice) {
                let events = answered(&mut calls, Api::OpenaiChat, &json!({"messages": messages}));
                found.extend(tools(&events).into_iter().map(|(id, _)| id.to_owned()));
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn hostile_bodies_do_no_harm(body in "[\\[\\]{}\":,a-z0-9]{0,40}|\\{\"messages\":\\[(\\{\\}|1|null|\\{\"content\":\\[1,\\{\"type\":\"tool_result\"\\}\\]\\})\\]\\}") {
        let mut calls = AnsweredCalls::new("s");
        calls.asked(&[asked("a", "shell", "{}")], Timestamp::UNIX_EPOCH);
        for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::AnthropicMessages] {
            let _ = calls.answered(api, body.as_bytes());
        }
    }
}
