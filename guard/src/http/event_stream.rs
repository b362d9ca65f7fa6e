//! Reads server-sent events as their bytes pass: the data of each event, and whether the stream can be resumed.
//!
//! The format is that of the HTML standard, section 9.2.6. Lines end with CR, LF or both. An empty line ends an event. The data of
//! several lines is joined by line feeds.

use super::message_buffer::{CollectedMessage, MessageBuffer};

/// Longest name of a field that is recognised. Other fields are skipped.
const FIELD_BYTES: usize = 5;

/// Reads events from pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    part: LinePart,
    /// The start of the current line, while it may be the name of a field.
    name: Vec<u8>,
    /// The data of the current event, if it has any.
    data: Option<MessageBuffer>,
    after_cr: bool,
    has_started: bool,
    /// True once an event had an id, by which a client can resume the stream.
    pub(super) has_ids: bool,
}

/// The part of a line that comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LinePart {
    #[default]
    Name,
    /// The optional space before a value.
    DataStart,
    Data,
    Skipped,
}

impl EventStream {
    /// Reads a piece, and calls `event` with the data of each event that ends in it.
    pub(super) fn push(&mut self, piece: &[u8], mut event: impl FnMut(CollectedMessage)) {
        let mut rest = piece;
        if !std::mem::replace(&mut self.has_started, true) {
            // A byte order mark. A mark that is split between pieces is not removed. Servers do not send one.
            rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
        }
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match self.part {
                LinePart::Data | LinePart::Skipped => {
                    let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                    if let (LinePart::Data, Some(data)) = (self.part, &mut self.data) {
                        data.push(&rest[..end]);
                    }
                    rest = &rest[end..];
                    if let Some(&end) = rest.first() {
                        self.end_line(end, &mut event);
                        rest = &rest[1..];
                    }
                }
                LinePart::DataStart => {
                    self.part = LinePart::Data;
                    rest = rest.strip_prefix(b" ").unwrap_or(rest);
                }
                LinePart::Name => {
                    rest = &rest[1..];
                    match first {
                        b'\r' | b'\n' => self.end_line(first, &mut event),
                        b':' => self.start_value(),
                        _ if self.name.len() == FIELD_BYTES => self.part = LinePart::Skipped,
                        _ => self.name.push(first),
                    }
                }
            }
        }
    }

    fn start_value(&mut self) {
        self.has_ids |= self.name == b"id";
        self.part = LinePart::Skipped;
        if self.name == b"data" {
            self.start_data();
            self.part = LinePart::DataStart;
        }
    }

    fn start_data(&mut self) {
        match &mut self.data {
            Some(data) => data.push(b"\n"),
            None => self.data = Some(MessageBuffer::default()),
        }
    }

    fn end_line(&mut self, end: u8, event: &mut impl FnMut(CollectedMessage)) {
        self.after_cr = end == b'\r';
        if self.part == LinePart::Name {
            match &*self.name {
                b"" => self.data.take().into_iter().for_each(|mut data| event(data.take())),
                b"data" => self.start_data(),
                _ => {}
            }
        }
        self.name.clear();
        self.part = LinePart::Name;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let mut stream = EventStream::default();
        let mut found = Vec::new();
        for piece in pieces {
            stream.push(piece, |message| match message {
                CollectedMessage::Whole(bytes) => found.push(String::from_utf8(bytes).unwrap()),
                CollectedMessage::Scanned { length, .. } => found.push(format!("{length} bytes")),
            });
        }
        (found, stream.has_ids)
    }

    #[test]
    fn the_data_of_events_is_read_with_all_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let text =
                ["event: message", "data: {\"a\":", "data:1}", "", ": comment", "", "data", "", "datax: 1", "", ""]
                    .join(end);
            assert_eq!(events(&[text.as_bytes()]), (vec!["{\"a\":\n1}".to_owned(), String::new()], false), "{end:?}");
        }
    }

    #[test]
    fn an_event_id_makes_a_stream_resumable() {
        assert_eq!(events(&[b"id: 7\ndata: x\n\n"]), (vec!["x".to_owned()], true));
        assert_eq!(events(&[b"data: x\n"]), (Vec::new(), false));
    }

    #[test]
    fn data_beyond_the_limit_is_scanned_and_not_held() {
        let long = format!("data: {{\"id\":1,\"result\":\"{}\"}}\n\n", "x".repeat(3 << 20));
        let pieces: Vec<&[u8]> = long.as_bytes().chunks(1 << 16).collect();
        assert_eq!(events(&pieces).0, [format!("{} bytes", long.len() - "data: \n\n".len())]);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_the_pieces(
            lines in prop::collection::vec(prop::sample::select(vec!["data: a", "data:b", "data", "id:1", "", "", ":c", "x"]), 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
            size in 1_usize..9,
        ) {
            let text = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect::<Vec<_>>().concat();
            // CR before LF is one line end in both readings.
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(events(&pieces), events(&[text.as_bytes()]));
        }
    }
}
