//! Parses an expression with the `cel` crate. The parser is not trusted: the text is short, the stack is large, the time is
//! limited, and a panic becomes an error.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cel::parser::ParseErrors;

use crate::node::Node;
use crate::resolve::{self, CompileError};

/// Maximum length of an expression, in bytes.
pub const MAX_BYTES: usize = 4096;

/// Stack of the parser thread. The parser recurses about twelve calls for each level of nesting.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Time limit of the parser, which usually takes milliseconds.
const MAX_PARSE_TIME: Duration = Duration::from_secs(20);

/// Parses an expression on a thread of its own, and resolves its names.
pub(crate) fn compile(source: &str, variables: &[&str]) -> Result<Node, CompileError> {
    let whole =
        |message: String, remedy: &str| CompileError { span: 0..source.len(), message, remedy: remedy.to_owned() };
    if source.len() > MAX_BYTES {
        let message = format!("the expression has {} bytes; at most {MAX_BYTES} are allowed", source.len());
        return Err(CompileError { span: 0..0, ..whole(message, "split it into several expressions") });
    }
    if source.trim().is_empty() {
        return Err(whole("the expression is empty".to_owned(), "write a condition"));
    }
    let gave_up = || whole("the expression cannot be parsed".to_owned(), "simplify it");
    let (sender, receiver) = channel();
    let (text, names) = (source.to_owned(), variables.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let work = move || {
        // Sending fails if the receiver has timed out, and then the result is not needed.
        let _ = sender.send(parse(&text, &names));
    };
    let Ok(parser) = thread::Builder::new().name("expression".to_owned()).stack_size(STACK_BYTES).spawn(work) else {
        return Err(gave_up());
    };
    match receiver.recv_timeout(MAX_PARSE_TIME) {
        Ok(parsed) => {
            let _ = parser.join();
            parsed
        }
        // The parser panicked, or it still runs; a thread cannot be stopped.
        Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => Err(gave_up()),
    }
}

fn parse(source: &str, variables: &[String]) -> Result<Node, CompileError> {
    // Without macro expansion, the tree has the macro calls as they are written, and the resolver interprets them.
    let parser = cel::Env::default().parser().enable_ident_escape_syntax(true);
    let (tree, positions) = parser.parse_with_source_info(source).map_err(|errors| syntax(source, &errors))?;
    resolve::resolve(source, positions, variables, &tree)
}

/// Returns the first error of the parser, without its long list of expected tokens.
fn syntax(source: &str, errors: &ParseErrors) -> CompileError {
    let first = errors.errors.iter().min_by_key(|error| error.pos);
    let (position, message) = first.map_or(((1, 1), ""), |error| (error.pos, error.msg.as_str()));
    let start = offset(source, position);
    let length = source[start..].chars().next().map_or(0, char::len_utf8);
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    CompileError {
        span: start..start + length,
        message: format!("syntax error: {message}"),
        remedy: "correct the CEL at this position".to_owned(),
    }
}

/// Returns the byte offset of a line and a column. Both count from 1, and columns count characters.
fn offset(source: &str, (line, column): (isize, isize)) -> usize {
    let before = usize::try_from(line - 1).unwrap_or(0);
    let start: usize = source.split_inclusive('\n').take(before).map(str::len).sum();
    let within = usize::try_from(column - 1).unwrap_or(0);
    source[start..].char_indices().nth(within).map_or(source.len(), |(index, _)| start + index)
}
