//! An incremental UTF-8 check, which decides between the file extensions `.txt` and `.bin`.

/// Decides whether a byte stream is UTF-8.
#[derive(Debug, Default)]
pub(super) struct TextCheck {
    /// An incomplete character at the end of the input so far: at most three bytes.
    incomplete: Vec<u8>,
    invalid: bool,
}

impl TextCheck {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !self.invalid && !self.incomplete.is_empty() && !bytes.is_empty() {
            self.incomplete.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.incomplete) {
                Ok(_) => self.incomplete.clear(),
                Err(error) => self.invalid = error.error_len().is_some(),
            }
        }
        if self.invalid || bytes.is_empty() {
            return;
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            self.invalid = error.error_len().is_some();
            self.incomplete.extend_from_slice(&bytes[error.valid_up_to()..]);
        }
    }

    pub(super) fn is_text(&self) -> bool {
        !self.invalid && self.incomplete.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_text(pieces: &[&[u8]]) -> bool {
        let mut check = TextCheck::default();
        for piece in pieces {
            check.push(piece);
        }
        check.is_text()
    }

    #[test]
    fn pieces_may_split_characters_anywhere() {
        let text = "aé€😀z".as_bytes();
        for cut in 0..=text.len() {
            for other in cut..=text.len() {
                assert!(is_text(&[&text[..cut], &text[cut..other], &text[other..]]), "{cut} {other}");
            }
        }
        assert!(!is_text(&[b"a\xff", b"b"]));
        assert!(!is_text(&[b"a\xc3", b"b"]));
        assert!(!is_text(&[b"a\xc3"]));
    }
}
