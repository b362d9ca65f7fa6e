//! What a command printed, as it was seen: the bytes of each stream, and in which order and when its pieces came.
//!
//! Of a piece the order keeps the stream, the length and the time. That is enough to tell later which line was complete
//! before which, and costs a few bytes a read however short the lines are.

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use super::Spool;

/// One of the two streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output; with a terminal, all of the output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Both.
    pub const ALL: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    /// As the ledger calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "STDOUT",
            Stream::Stderr => "STDERR",
        }
    }

    /// As a sentence calls it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Stream::Stdout => "standard output",
            Stream::Stderr => "standard error",
        }
    }
}

/// A piece of one stream, as one read gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: Stream,
    /// In bytes.
    pub(crate) length: u64,
    /// Since the command was started.
    pub(crate) at: Duration,
}

/// What a command printed.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    spools: [Spool; 2],
    order: Spool,
    last: u64,
}

impl Tape {
    /// Takes what one read gave.
    pub(crate) fn push(&mut self, stream: Stream, at: Duration, bytes: &[u8]) -> io::Result<()> {
        self.spools[stream as usize].write_all(bytes)?;
        self.note(Piece { stream, at, length: bytes.len() as u64 })
    }

    /// Takes the order alone of a piece whose bytes are in the stream's spool.
    pub(crate) fn note(&mut self, piece: Piece) -> io::Result<()> {
        let at = u64::try_from(piece.at.as_micros()).unwrap_or(u64::MAX).max(self.last);
        let mut entry = Vec::with_capacity(12);
        number(at - self.last, &mut entry);
        number(piece.length << 1 | piece.stream as u64, &mut entry);
        self.last = at;
        self.order.write_all(&entry)
    }

    /// The bytes of a stream.
    pub(crate) fn spool(&self, stream: Stream) -> &Spool {
        &self.spools[stream as usize]
    }

    /// The same, to be written.
    pub(crate) fn spool_mut(&mut self, stream: Stream) -> &mut Spool {
        &mut self.spools[stream as usize]
    }

    /// All pieces in the order in which they came.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces { order: BufReader::new(self.order.reader(0)), at: 0 }
    }
}

/// Seven bits a byte, the lowest first.
fn number(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

/// See [`Tape::pieces`].
pub(crate) struct Pieces<'a> {
    order: BufReader<super::Reader<'a>>,
    at: u64,
}

impl Pieces<'_> {
    /// `None` at the end.
    fn number(&mut self) -> io::Result<Option<u64>> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            if self.order.read(&mut byte)? == 0 {
                return Ok(None);
            }
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(value));
            }
            shift += 7;
        }
    }

    fn piece(&mut self) -> io::Result<Option<Piece>> {
        let Some(later) = self.number()? else { return Ok(None) };
        let Some(what) = self.number()? else { return Ok(None) };
        self.at += later;
        let stream = if what & 1 == 0 { Stream::Stdout } else { Stream::Stderr };
        Ok(Some(Piece { stream, length: what >> 1, at: Duration::from_micros(self.at) }))
    }
}

impl Iterator for Pieces<'_> {
    type Item = io::Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        self.piece().transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_come_back_in_their_order(pieces in prop::collection::vec((any::<bool>(), 0_usize..300, 0_u64..1 << 40), 0..50)) {
            let mut tape = Tape::default();
            let mut expected = Vec::new();
            let mut now = 0;
            for (is_error, length, later) in pieces {
                now += later;
                let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
                let at = Duration::from_micros(now);
                tape.push(stream, at, &vec![b'x'; length]).unwrap();
                expected.push(Piece { stream, length: length as u64, at });
            }
            prop_assert_eq!(tape.pieces().collect::<Result<Vec<_>, _>>().unwrap(), expected);
        }
    }
}
