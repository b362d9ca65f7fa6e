//! Free TCP ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;

/// The addresses on which a server may listen.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST];

/// Returns the first port of a range that is not taken and on which a server can listen now.
pub(super) fn first_free(range: RangeInclusive<u16>, taken: &BTreeSet<u16>) -> Option<u16> {
    range.into_iter().find(|port| !taken.contains(port) && is_free(*port))
}

/// True if a server can listen on the port on all addresses, and on loopback alone.
fn is_free(port: u16) -> bool {
    ADDRESSES.into_iter().all(|address| TcpListener::bind((IpAddr::V4(address), port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_a_server_are_not_free() {
        for address in ADDRESSES {
            let server = TcpListener::bind((address, 0)).unwrap();
            let port = server.local_addr().unwrap().port();
            assert_eq!(first_free(port..=port, &BTreeSet::new()), None);
            drop(server);
            assert_eq!(first_free(port..=port, &BTreeSet::new()), Some(port));
            assert_eq!(first_free(port..=port, &[port].into()), None);
        }
    }
}
