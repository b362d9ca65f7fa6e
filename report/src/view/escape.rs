//! Escaping for the content of elements, where quotes need no escape; JSON values consist of quotes to about a tenth.
//! Attributes use the escaping of the template engine, which a test verifies for all templates.

use std::fmt::{self, Write};

use askama::filters::Escaper;

/// Escapes `&` and `<`, and `>` for lenient parsers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content;

impl Escaper for Content {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let mut rest = string;
        // Comparing bytes is safe: in UTF-8, none of the three is part of another character.
        while let Some(place) = rest.bytes().position(|byte| matches!(byte, b'&' | b'<' | b'>')) {
            let (plain, special) = rest.split_at(place);
            dest.write_str(plain)?;
            dest.write_str(match special.as_bytes().first() {
                Some(b'&') => "&#38;",
                Some(b'<') => "&#60;",
                _ => "&#62;",
            })?;
            rest = &special[1..];
        }
        dest.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Every template by its path within the templates folder.
    fn templates() -> Vec<(PathBuf, String)> {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates")];
        let mut templates = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "html") {
                    let text = fs::read_to_string(&path).unwrap();
                    templates.push((path, text));
                }
            }
        }
        templates
    }

    fn escaped(text: &str) -> String {
        let mut written = String::new();
        Content.write_escaped_str(&mut written, text).unwrap();
        written
    }

    #[test]
    fn markup_is_escaped_and_quotes_are_not() {
        assert_eq!(escaped("<a href=\"x\">it's &amp;</a>"), "&#60;a href=\"x\"&#62;it's &#38;amp;&#60;/a&#62;");
        assert_eq!(escaped("é€"), "é€");
    }

    #[test]
    fn no_attribute_of_a_template_uses_the_escaping_for_content() {
        let templates = templates();
        assert!(templates.len() > 20, "{templates:?}");
        for (path, template) in templates {
            let mut rest = template.as_str();
            while let Some(place) = rest.find("|e(\"content\")") {
                let before = &rest[..place];
                assert!(
                    !is_within_a_tag(before),
                    "{}: {}",
                    path.display(),
                    before.lines().next_back().unwrap_or_default()
                );
                rest = &rest[place + 1..];
            }
        }
    }

    /// Returns whether the template ends within a tag: outside of template expressions, the last angle bracket is `<`.
    fn is_within_a_tag(template: &str) -> bool {
        let mut html = template.to_owned();
        for (open, close) in [("{#", "#}"), ("{%", "%}"), ("{{", "}}")] {
            while let Some(start) = html.find(open) {
                let end = html[start..].find(close).map_or(html.len(), |end| start + end + close.len());
                html.replace_range(start..end, "");
            }
        }
        html.rfind('<') > html.rfind('>')
    }

    #[test]
    fn an_open_tag_is_recognized() {
        assert!(is_within_a_tag("<p>{% if a > b %}<a href=\"{{ x"));
        assert!(!is_within_a_tag("<p><a href=\"{{ x }}\">{{ y"));
    }
}
