//! Arbitrary bytes as the stream of a client.

#[path = "../../../fuzz/src/framing.rs"]
mod framing;

use counterproof_guard::mcp::{Scanner, read_client_message};
use proptest::prelude::*;

/// Text that is nearly a message.
fn nearly_message() -> impl Strategy<Value = Vec<u8>> {
    let tokens = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"id\"",
        "\"method\"",
        "\"tools/call\"",
        "\"params\"",
        "\"name\"",
        "\"arguments\"",
        "\"Method\"",
        "\"result\"",
        "\"error\"",
        "\"a\\u0062\"",
        "\"tools\\/call\"",
        "1",
        "1.5e3",
        "null",
        "true",
        " ",
        "\n",
        "\\",
        "\"",
        "\u{e9}",
    ]);
    let noise = prop::collection::vec(tokens, 0..40).prop_map(|tokens| tokens.concat().into_bytes());
    let member = prop::sample::select(vec![
        r#""id":1"#,
        r#""id":"x""#,
        r#""id":null"#,
        r#""method":"tools/call""#,
        r#""method":"ping""#,
        r#""params":{"name":"a"}"#,
        r#""params":{"name":"a","arguments":{"x":[1,{"id":2}]}}"#,
        r#""params":{"name":7}"#,
        r#""params":[]"#,
        r#""result":{"isError":true}"#,
        r#""result":null"#,
        r#""error":{"code":-1,"message":"m"}"#,
        r#""error":null"#,
        r#""METHOD":"tools/call""#,
        r#""x":{"method":"tools/call"}"#,
    ]);
    let object =
        prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}\n", members.join(",")).into_bytes());
    prop_oneof![noise, object]
}

/// Found by the property below: `serde_json` cannot represent the number, and the grammar allows it.
#[test]
fn a_number_beyond_the_range_of_parsers_is_json_as_a_whole_and_in_pieces() {
    framing::framing(b"\x001.5e3111");
    let mut scanner = Scanner::default();
    scanner.push(b"1.5e3111");
    assert_eq!(scanner.finish().syntax, None);
    assert_eq!(read_client_message("1.5e3111").unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn nearly_messages_are_read_alike_as_a_whole_and_in_pieces(limit: u8, lines in prop::collection::vec(nearly_message(), 1..4)) {
        framing::framing(&[vec![limit], lines.concat()].concat());
    }

    #[test]
    fn arbitrary_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        framing::framing(&bytes);
    }
}
