//! Errors about documents: an excerpt of the source, and a document of another kind than the one that a command takes.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use camino::Utf8Path;
use counterproof_artifact::escape_invisible;
use counterproof_store::read_file;
use counterproof_validation::{Excerpt, Position};
use serde_json::Value;

/// Returns the schema version of a document that names another kind, such as `run.v1` where `case.` is expected. `None` if the
/// file is not such a document: then the error of the parser explains more.
pub(crate) fn other_kind(path: &Utf8Path, expected_prefix: &str) -> Option<String> {
    // Read again, because the parser that failed does not keep the document.
    let document: Value = serde_json::from_slice(&read_file::read(path, read_file::MAX_LARGE_BYTES).ok()?).ok()?;
    let version = document.get("schema_version")?.as_str()?;
    // A version without the form `kind.vN` names no kind. It may be any text, so it is not repeated.
    let is_kind = version.split_once(".v").is_some_and(|(kind, number)| {
        kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_')
            && number.parse::<u32>().is_ok()
    });
    (is_kind && !version.starts_with(expected_prefix)).then(|| version.to_owned())
}

/// Converts an excerpt to a snippet with a label at the marked span. Invisible and control characters are spelled out, and the span is moved accordingly.
pub(crate) fn snippet(excerpt: &Excerpt, label: &str) -> Snippet<'static, Annotation<'static>> {
    let lines = |text: &str| {
        // A tab has no fixed width, and would move the marks below it.
        let lines: Vec<String> = text.replace('\t', "    ").split('\n').map(escape_invisible).collect();
        lines.join("\n")
    };
    let mut source = lines(&excerpt.text[..excerpt.span.start]);
    let start = source.len();
    source.push_str(&lines(&excerpt.text[excerpt.span.clone()]));
    let end = source.len();
    source.push_str(&lines(&excerpt.text[excerpt.span.end..]));
    Snippet::source(source)
        .line_start(excerpt.first_line)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(start..end).label(label.to_owned()))
}

/// Renders the lines around a span of a text, for an error message. `position` is the position of the span in its file.
pub(crate) fn render_excerpt(text: &str, span: Range<usize>, position: Position) -> String {
    let excerpt = Excerpt::around(text.as_bytes(), span, position);
    // Without styles: the message that the excerpt becomes part of is escaped as a whole.
    Renderer::plain().render(&[Group::with_level(Level::ERROR).element(snippet(&excerpt, ""))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_line_numbers_of_the_file() {
        let rendered = render_excerpt("one = 1\ntow = 2\n", 8..11, Position { line: 6, column: 1 });
        insta::assert_snapshot!(rendered, @"
          |
        5 | one = 1
        6 | tow = 2
          | ^^^
        ");
    }
}
