//! Tests of the scanner.

use counterproof_ledger::event::CallStatus;
use proptest::prelude::*;

use super::*;

fn scan(text: &str, piece: usize) -> ScannedMessage {
    let mut scanner = Scanner::default();
    text.as_bytes().chunks(piece.max(1)).for_each(|piece| scanner.push(piece));
    scanner.finish()
}

fn hash(text: &str) -> Sha256Digest {
    Sha256Digest::from_bytes(text.as_bytes())
}

#[test]
fn a_request_is_read_in_pieces_of_any_size() {
    let args = r#"{"path":"/a\"b","list":[1,{"name":"inner","method":"x"}],"id":9}"#;
    let text = format!(
        r#" {{"jsonrpc":"2.0" , "params":{{"arguments":{args},"name":"write\u0041","requestState":"s","inputResponses":{{}},
        "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}},"method":"tools/call","id":"x" }}"#
    );
    for piece in 1..=text.len() {
        let found = scan(&text, piece);
        assert!(found.is_object && found.problem.is_none(), "{piece} {:?}", found.problem);
        assert_eq!(found.method.as_deref(), Some("tools/call"));
        assert_eq!((&*found.tool_name, found.args_hash), ("writeA", Some(hash(args))), "{piece}");
        assert_eq!(found.id, RequestId::parse(br#""x""#));
        assert!(found.is_retry && found.is_stateless && found.response.is_none());
        assert_eq!(found.request_state.as_deref(), Some("s"));
    }
}

#[test]
fn a_response_is_read_in_pieces_of_any_size() {
    let result = r#"{"content":[{"type":"text","text":"a","isError":false}],"isError":true}"#;
    let text = format!(r#"{{"id":7,"result":{result}}}"#);
    for piece in 1..=text.len() {
        let found = scan(&text, piece);
        assert_eq!(found.payload_hash, Some(hash(result)), "{piece}");
        assert!(matches!(found.response, Some(ResponseKind::Failed { status: CallStatus::Error, .. })));
    }
    let found = scan(r#"{"id":7,"error":{"code":-32001,"message":"slow"}}"#, 3);
    let Some(ResponseKind::Failed { status: CallStatus::Timeout, error }) = found.response else { panic!() };
    assert_eq!(error.message, "slow");
    assert_eq!(scan(r#"{"id":7,"method":"x","result":1}"#, 5).response, None, "a request of the server");
}

#[test]
fn keys_that_occur_twice_or_look_alike_are_found() {
    for text in [
        r#"{"id":1,"id":2}"#,
        r#"{"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#,
        r#"{"method":"tools/call","params":{"arguments":{},"arguments":{}}}"#,
        r#"{"Method":"tools/call"}"#,
        r#"{"method":"tools/call","params":{"name":7}}"#,
        r#"{"method":"tools/call","params":{}}"#,
        r#"{"method":"tools/call","params":["a"]}"#,
        r#"{"method":"tools/call","params":{"name":"a","arguments":[1]}}"#,
        r#"{"method":"tools/call","params":{"name":"a","argument\u017f":{}}}"#,
    ] {
        assert!(scan(text, 4).problem.is_some(), "{text}");
    }
    assert_eq!(scan(r#"{"id":1,"params":{"id":1,"x":{"id":1}},"x":1,"x":2}"#, 4).problem, None);
}

#[test]
fn a_message_is_a_call_if_a_parser_takes_it_for_one() {
    for text in [
        r#"{"method":"tools/call"}"#,
        r#"{"method":"tools\/call"}"#,
        r#"{"method":"ping","method":"tools/call"}"#,
        r#"{"method":"tools/call","method":"ping"}"#,
        r#"{"method":"ping","Method":"tools/call","Params":{"name":"a"}}"#,
    ] {
        assert!(scan(text, 3).is_call, "{text}");
    }
    for text in [r#"{"method":"resources/read","ID":1}"#, r#"{"id":1,"result":{"Method":"a","isError":1}}"#] {
        assert!(!scan(text, 3).is_call, "{text}");
    }
}

#[test]
fn a_state_that_is_too_long_to_be_compared_continues_no_call() {
    let text = |state: &str| {
        format!(r#"{{"method":"tools/call","params":{{"name":"a","inputResponses":{{}},"requestState":"{state}"}}}}"#)
    };
    assert!(scan(&text("s"), 1000).is_retry);
    assert!(!scan(&text(&"s".repeat(70_000)), 1000).is_retry);
}

#[test]
fn other_encodings_and_second_values_are_no_json() {
    let utf_16: Vec<u8> = r#"{"method":"tools/call"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf_32: Vec<u8> = r#"{"method":"tools/call"}"#.chars().flat_map(|it| u32::from(it).to_le_bytes()).collect();
    let latin = b"{\"name\":\"\xe9\"}".to_vec();
    for bytes in [
        "\u{feff}{}".as_bytes(),
        &utf_16,
        &utf_32,
        &latin,
        b"[{\"method\":\"tools/call\"}] {}",
        b"{}\r{}",
        b"{},",
        b"{\"a\":\"\n\"}",
        b"{\"a\":\"\\x\"}",
        b"{\"a\":01}",
        b"{\"a\":tru}",
        b"{a:1}",
        b"{\"a\":1,}",
        b"[1,]",
        b"{\"a\" 1}",
        b"[}",
        b"{\"a\":\"\\u00g0\"}",
        b"\"\xc3",
        b"7 7",
    ] {
        for piece in 1..5 {
            let mut scanner = Scanner::default();
            bytes.chunks(piece).for_each(|piece| scanner.push(piece));
            assert!(scanner.finish().syntax.is_some(), "{}", String::from_utf8_lossy(bytes));
        }
    }
    assert_eq!(scan(&"[".repeat(200), 7).syntax, Some(SyntaxError::TooDeep { offset: 127 }));
    assert_eq!(scan("{\"a\":1}\r\n", 3).syntax, None);
}

#[test]
fn text_that_is_no_whole_object_is_not_one() {
    for text in ["[{}]", "{", "7", "", r#"{"a":"#] {
        assert!(!scan(text, 2).is_object, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_pieces_change_nothing(
        bytes in prop::collection::vec(prop::sample::select(br#"{}[]",:\ a1"id""#.to_vec()), 0..60), piece in 1_usize..9
    ) {
        let (mut whole, mut pieces) = (Scanner::default(), Scanner::default());
        whole.push(&bytes);
        bytes.chunks(piece).for_each(|piece| pieces.push(piece));
        let (whole, pieces) = (whole.finish(), pieces.finish());
        prop_assert_eq!(whole.syntax.is_none(), serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
        prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    }

    #[test]
    fn the_syntax_is_that_of_json(
        words in prop::collection::vec(
            prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\"", "\"é\"", "1", "-0.5e+3", "true", "null", " "]), 0..12,
        ), piece in 1_usize..9
    ) {
        let text = words.concat();
        prop_assert_eq!(scan(&text, piece).syntax.is_none(), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{}", text);
    }
}
