//! Carriage returns within a line. JSON allows them between tokens, and some servers end a line there: they would read other
//! messages than the guard.

/// Looks for carriage returns in a line that comes in pieces.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LineEnds {
    /// The last byte so far was a carriage return, which may belong to the end of the line.
    ends_with_return: bool,
    has_other: bool,
}

impl LineEnds {
    /// Reads the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.has_other |= self.ends_with_return && piece != b"\n";
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        let first = memchr::memchr(b'\r', text);
        self.ends_with_return = first.is_some() && text.ends_with(b"\r");
        self.has_other |= first.is_some_and(|at| at + 1 < text.len());
    }

    /// True if a carriage return is anywhere but at the end of the line.
    pub(super) const fn has_other(self) -> bool {
        self.has_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_is_found_unless_it_ends_the_line() {
        for (line, expected) in [
            ("{}\n", false),
            ("{}\r\n", false),
            ("{}\r", false),
            ("{}", false),
            ("{\r}\n", true),
            ("\r{}\n", true),
            ("{}\r\r\n", true),
            ("{}\r \r\n", true),
        ] {
            for size in 1..=line.len() {
                let mut ends = LineEnds::default();
                line.as_bytes().chunks(size).for_each(|piece| ends.push(piece));
                assert_eq!(ends.has_other(), expected, "{line:?} in pieces of {size}");
            }
        }
    }
}
