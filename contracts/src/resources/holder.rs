//! The record of a holder.

use camino::Utf8PathBuf;
use counterproof_store::lock_registry::Record;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Claim;

/// The version of the format of records.
const FORMAT: u32 = 1;

/// Who holds resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The contract that is executed.
    pub contract: String,
    /// Who executes it.
    pub owner: String,
    /// The process. In another container, the number means another process.
    pub pid: u32,
    pub since: Timestamp,
}

/// The content of a record.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    holder: Holder,
    claims: Vec<Claim>,
}

/// A holder that lives, as its record says. The record is text of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingHolder {
    pub record: Utf8PathBuf,
    /// The holder and its claims; `None` if the record cannot be read, for example because another version wrote it.
    pub known: Option<(Holder, Vec<Claim>)>,
}

impl LivingHolder {
    /// Reads a record.
    pub(super) fn new(record: Record) -> Self {
        let content = record.content.ok().and_then(|bytes| serde_json::from_slice::<Content>(&bytes).ok());
        let known = content.filter(|content| content.format == FORMAT);
        Self { record: record.path, known: known.map(|content| (content.holder, content.claims)) }
    }

    /// The claims. A holder whose record cannot be read has unknown ones.
    pub fn claims(&self) -> Option<&[Claim]> {
        self.known.as_ref().map(|(_, claims)| claims.as_slice())
    }

    /// The ports among the claims.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.claims().unwrap_or_default().iter().filter_map(|claim| match claim {
            Claim::Port { port } => Some(*port),
            _ => None,
        })
    }

    pub fn holder(&self) -> Option<&Holder> {
        self.known.as_ref().map(|(holder, _)| holder)
    }
}

/// Returns the bytes of a record.
pub(super) fn content(holder: Holder, claims: Vec<Claim>) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(&Content { format: FORMAT, holder, claims })?;
    bytes.push(b'\n');
    Ok(bytes)
}
