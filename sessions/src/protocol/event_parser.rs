//! Server-sent events, read from pieces that end anywhere: within a character, a line or a line end.

use memchr::memchr2;

/// Reads events as the HTML standard defines them. Fields other than `data` are skipped: the protocols repeat the name
/// of an event in its data.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    /// The lines of data of the event whose end has not come, joined by line feeds.
    data: Option<Vec<u8>>,
    after_cr: bool,
    has_started: bool,
}

impl EventParser {
    /// Reads a piece, and passes the data of each event that ends in it.
    pub(super) fn push(&mut self, mut piece: &[u8], mut on_data: impl FnMut(&[u8])) {
        if std::mem::take(&mut self.after_cr) && piece.first() == Some(&b'\n') {
            piece = &piece[1..];
        }
        while let Some(end) = memchr2(b'\r', b'\n', piece) {
            if self.line.is_empty() {
                self.end_line(&piece[..end], &mut on_data);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&piece[..end]);
                self.end_line(&line, &mut on_data);
            }
            let is_crlf = piece[end] == b'\r' && piece.get(end + 1) == Some(&b'\n');
            self.after_cr = piece[end] == b'\r' && end + 1 == piece.len();
            piece = &piece[end + 1 + usize::from(is_crlf)..];
        }
        self.line.extend_from_slice(piece);
    }

    /// Reads the end of the stream. An event without its empty line counts, as servers leave it out after the last one.
    pub(super) fn finish(&mut self, mut on_data: impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        self.end_line(&line, &mut on_data);
        self.end_line(b"", &mut on_data);
    }

    /// The data of the event that has started, as far as it came.
    pub(super) fn pending_data(&self) -> &[u8] {
        match (&self.data, data_of(&self.line)) {
            (None, Some(data)) => data,
            (data, _) => data.as_deref().unwrap_or_default(),
        }
    }

    fn end_line(&mut self, mut line: &[u8], on_data: &mut impl FnMut(&[u8])) {
        if !std::mem::replace(&mut self.has_started, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                on_data(&data);
            }
            return;
        }
        let Some(value) = data_of(line) else { return };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }
}

fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(b""),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let (mut parser, mut found) = (EventParser::default(), Vec::new());
        let mut add = |data: &[u8]| found.push(String::from_utf8(data.to_vec()).unwrap());
        for piece in pieces {
            parser.push(piece, &mut add);
        }
        parser.finish(&mut add);
        found
    }

    #[test]
    fn events_are_read_with_all_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let lines =
                ["\u{feff}event: x", "data: {\"a\":", "data:1}", "", ": comment", "", "data", "", "datax: 1", "id: 2"];
            let text = lines.join(end) + end + end + "data:  [DONE]";
            assert_eq!(events(&[text.as_bytes()]), ["{\"a\":\n1}", "", " [DONE]"], "{end:?}");
        }
    }

    #[test]
    fn pending_data_is_that_of_the_event_that_has_started() {
        let mut parser = EventParser::default();
        parser.push(b"data: a\n\ndata: [DO", |_| {});
        assert_eq!(parser.pending_data(), b"[DO");
        parser.push(b"NE]\n", |_| {});
        assert_eq!(parser.pending_data(), b"[DONE]");
        parser.push(b"\n", |_| {});
        assert_eq!(parser.pending_data(), b"");
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_the_pieces(
            lines in prop::collection::vec(prop::sample::select(vec!["data: é", "data:b", "data", "id:1", "", "", ":c", "x"]), 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
            size in 1_usize..9,
        ) {
            let text = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect::<Vec<_>>().concat();
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(events(&pieces), events(&[text.as_bytes()]));
        }
    }
}
