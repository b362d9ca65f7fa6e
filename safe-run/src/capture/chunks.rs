//! The captured output of a command: the bytes of each stream, and the order and time of the reads.
//!
//! For each read, the order stores the stream, the length and the time. That is enough to decide afterwards which line was
//! complete first, and it costs a few bytes per read, however short the lines are.

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use counterproof_store::spill_buffer::{SpillBuffer, SpillReader};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output; with a terminal, all of the output.
    Stdout,
    Stderr,
}

impl Stream {
    pub const ALL: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "STDOUT",
            Stream::Stderr => "STDERR",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Stream::Stdout => "standard output",
            Stream::Stderr => "standard error",
        }
    }

    /// Writes bytes to the same stream of this process.
    pub fn forward(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Stdout => {
                // Flushed at once: a person watches the command.
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            Stream::Stderr => io::stderr().write_all(bytes),
        }
    }
}

/// The stream, size and time of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) stream: Stream,
    pub(crate) length: u64,
    /// Time since the start of the command.
    pub(crate) at: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Capture {
    bytes: [SpillBuffer; 2],
    /// Two variable-length integers per chunk: microseconds since the previous chunk, then the length with the stream in
    /// its lowest bit.
    order: SpillBuffer,
    /// Time of the last chunk, in microseconds.
    last_at: u64,
}

impl Capture {
    pub(crate) fn push(&mut self, stream: Stream, at: Duration, bytes: &[u8]) -> io::Result<()> {
        // The bytes come first: an order entry without its bytes would make every reader run past the end of the stream.
        self.bytes[stream as usize].write_all(bytes)?;
        self.push_order(Chunk { stream, at, length: bytes.len() as u64 })
    }

    /// Appends a chunk to the order only; the caller writes the bytes through [`Self::bytes_mut`].
    pub(crate) fn push_order(&mut self, chunk: Chunk) -> io::Result<()> {
        // Times are stored as differences, so they must not decrease.
        let at = u64::try_from(chunk.at.as_micros()).unwrap_or(u64::MAX).max(self.last_at);
        let mut entry = Vec::with_capacity(12);
        encode(at - self.last_at, &mut entry);
        encode(chunk.length << 1 | chunk.stream as u64, &mut entry);
        self.last_at = at;
        self.order.write_all(&entry)
    }

    pub(crate) fn bytes(&self, stream: Stream) -> &SpillBuffer {
        &self.bytes[stream as usize]
    }

    pub(crate) fn bytes_mut(&mut self, stream: Stream) -> &mut SpillBuffer {
        &mut self.bytes[stream as usize]
    }

    pub(crate) fn chunks(&self) -> Chunks<'_> {
        Chunks { order: BufReader::new(self.order.reader(0)), at: 0 }
    }
}

/// Appends a variable-length integer: seven bits per byte, the lowest first.
fn encode(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

pub(crate) struct Chunks<'a> {
    order: BufReader<SpillReader<'a>>,
    at: u64,
}

impl Chunks<'_> {
    fn decode(&mut self) -> io::Result<Option<u64>> {
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

    fn chunk(&mut self) -> io::Result<Option<Chunk>> {
        let Some(delay) = self.decode()? else { return Ok(None) };
        // An entry is written at once, so a missing second half means that the capture failed within it.
        let Some(length_and_stream) = self.decode()? else { return Ok(None) };
        self.at += delay;
        let stream = if length_and_stream & 1 == 0 { Stream::Stdout } else { Stream::Stderr };
        Ok(Some(Chunk { stream, length: length_and_stream >> 1, at: Duration::from_micros(self.at) }))
    }
}

impl Iterator for Chunks<'_> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.chunk().transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_are_read_back_in_their_order(chunks in prop::collection::vec((any::<bool>(), 0_usize..300, 0_u64..1 << 40), 0..50)) {
            let mut capture = Capture::default();
            let mut expected = Vec::new();
            let mut now = 0;
            for (is_error, length, delay) in chunks {
                now += delay;
                let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
                let at = Duration::from_micros(now);
                capture.push(stream, at, &vec![b'x'; length]).unwrap();
                expected.push(Chunk { stream, length: length as u64, at });
            }
            prop_assert_eq!(capture.chunks().collect::<Result<Vec<_>, _>>().unwrap(), expected);
        }
    }
}
