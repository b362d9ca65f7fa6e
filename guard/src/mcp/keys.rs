//! The keys and values of messages that decide what a message is.

/// The field of `_meta` that states the protocol revision of a stateless request.
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The method of tool calls.
pub(crate) const TOOLS_CALL: &str = "tools/call";

/// The characters between the tokens of JSON. Other white space makes a text invalid.
pub(super) const JSON_WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Keys of a message and of the parameters of a tool call on which parsers must agree.
const SIGNIFICANT: [&str; 9] =
    ["jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "requestState"];

/// Returns the significant key that a key may be taken for by parsers that ignore case, such as that of Go.
pub(super) fn look_alike(key: &str) -> Option<&'static str> {
    SIGNIFICANT.into_iter().find(|known| *known != key && known.chars().map(folded).eq(key.chars().map(folded)))
}

/// Folds the case of ASCII letters and of the two other characters that Unicode folds to ASCII letters.
const fn folded(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}
