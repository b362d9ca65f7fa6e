//! Words of printed shell commands. A reader copies such a command, so it must survive spaces and other special characters.

use std::borrow::Cow;

use camino::Utf8Path;

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    shell_words::quote(word)
}

/// Quotes a path that is an argument of a printed command. A path that looks like an option gets `./` in front.
pub(crate) fn path(path: &Utf8Path) -> String {
    let prefix = if path.as_str().starts_with('-') { "./" } else { "" };
    quoted(&format!("{prefix}{path}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_single_words_and_no_options() {
        let quoted = ["runs/new/r1", "my runs/$1", "--out"].map(|listed| path(Utf8Path::new(listed)));
        assert_eq!(quoted, ["runs/new/r1", "'my runs/$1'", "./--out"]);
    }
}
