//! Byte offsets as lines and columns.

/// A line and a column in a text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Returns the positions of byte offsets, in the order of the offsets. The text is read once for all offsets.
pub fn positions(text: &[u8], offsets: &[usize]) -> Vec<Position> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_unstable_by_key(|&index| offsets[index]);
    let mut positions = vec![Position { line: 1, column: 1 }; offsets.len()];
    let (mut at, mut here) = (0, Position { line: 1, column: 1 });
    for index in order {
        let offset = offsets[index].min(text.len());
        for &byte in &text[at..offset] {
            if byte == b'\n' {
                here = Position { line: here.line + 1, column: 1 };
            } else if byte & 0b1100_0000 != 0b1000_0000 {
                // Every byte of UTF-8 but a continuation starts a character.
                here.column += 1;
            }
        }
        at = offset;
        positions[index] = here;
    }
    positions
}

/// Returns the byte offset of a position. A position after the end of its line or of the text is moved there.
pub(crate) fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 1..position.line {
        let Some(end) = text[start..].find('\n') else { return text.len() };
        start += end + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    start + line.char_indices().nth(position.column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
}
