//! Messages of the protocol: JSON-RPC, one message per line.

use std::io::{self, BufRead, Write};

use serde_json::Value;

/// The revision of the protocol that both sides speak.
pub(super) const REVISION: &str = "2025-11-25";

/// Reads the next message. Returns `None` at the end, and null for a line that is not JSON.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line).unwrap_or_default()))
}

pub(super) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    output.write_all(format!("{message}\n").as_bytes())?;
    output.flush()
}
