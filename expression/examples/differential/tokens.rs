//! Random sequences of tokens, most of which are no expressions.

use fastrand::Rng;

use crate::generate::Tree;

const TOKENS: &[&str] = &[
    "output", "output", "output.n", "output.s", ".n", ".m", ".", "(", "(", ")", ")", "[", "]", "{", "}", ",", ":", "?",
    "!", "-", "--", "+", "*", "/", "%", "==", "!=", "<", "<=", ">", "in", "&&", "||", "|", "&", "=", "0", "1", "007",
    "0x1F", "1u", "1.5", ".5", "1.", "1e3", "1e", "'a'", "\"b\"", "'\\n'", "'\\q'", "r'\\q'", "b'x'", "'''y'''", "'",
    "null", "true", "size", "has", "`n`", "//", "if", "\n",
];

/// Returns up to eight tokens, with or without spaces.
pub(crate) fn tokens(rng: &mut Rng) -> Tree {
    let separator = if rng.bool() { " " } else { "" };
    let tokens: Vec<_> = (0..rng.usize(1..=8)).map(|_| rng.choice(TOKENS).copied().unwrap_or_default()).collect();
    Tree::Leaf(tokens.join(separator))
}
