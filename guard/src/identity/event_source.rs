//! This process as a source of events.

use counterproof_ledger::event::EventSource;
use uuid::Uuid;

/// Returns the source of the events of this process: the name of the machine, the process id, and a new id of the shim.
pub fn event_source() -> EventSource {
    EventSource {
        host_id: host_name().unwrap_or_else(|| "unknown".to_owned()),
        proc_id: std::process::id().to_string(),
        shim_id: Uuid::now_v7().to_string(),
    }
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_of_one_process_differ_in_their_shim_ids_only() {
        let (one, other) = (event_source(), event_source());
        assert_ne!(one.shim_id, other.shim_id);
        assert_eq!((&one.host_id, &one.proc_id), (&other.host_id, &other.proc_id));
        assert_eq!(one.proc_id, std::process::id().to_string());
        assert!(!one.host_id.is_empty());
    }
}
