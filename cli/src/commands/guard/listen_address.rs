//! The address on which a proxy listens: a host name or an IP address, with a port.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use tokio::net::TcpListener;

use crate::command_error::CommandError;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListenAddress(String);

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a host and a port, such as `127.0.0.1:8788` or `localhost:8788`")]
pub(super) struct InvalidAddress;

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidAddress)?;
        let is_host = !host.is_empty() && !host.contains(['/', '@']) && (host.starts_with('[') || !host.contains(':'));
        if is_host && port.parse::<u16>().is_ok() { Ok(Self(text.to_owned())) } else { Err(InvalidAddress) }
    }
}

impl ListenAddress {
    /// Listens on the first address of the host that is available: loopback addresses come first, and IPv4 before IPv6.
    pub(super) async fn bind(&self) -> Result<TcpListener, CommandError> {
        let resolved = self.0.to_socket_addrs().map_err(|error| {
            CommandError::io(format!("cannot resolve the host of `{}`: {error}", self.0))
                .hint("pass an IP address of this machine, such as `--listen 127.0.0.1:8788`")
        })?;
        let mut addresses: Vec<SocketAddr> = resolved.collect();
        addresses.sort_by_key(|address| (!address.ip().is_loopback(), address.is_ipv6()));
        TcpListener::bind(&addresses[..]).await.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrNotAvailable => {
                    "pass an IP address of this machine, such as `--listen 127.0.0.1:8788`"
                }
                io::ErrorKind::PermissionDenied => "select a port above 1023",
                _ => "select a free port with `--listen 127.0.0.1:0`",
            };
            CommandError::io(format!("cannot listen on {}: {error}", self.0)).hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_ports_are_addresses() {
        for text in ["127.0.0.1:0", "[::1]:8788", "localhost:8788", "0.0.0.0:65535", "my-host.lan:80"] {
            assert_eq!(text.parse(), Ok(ListenAddress(text.to_owned())));
        }
        for text in ["", "localhost", "8788", ":8788", "localhost:", "localhost:65536", "http://localhost:1", "::1:80"]
        {
            assert_eq!(text.parse::<ListenAddress>(), Err(InvalidAddress), "{text}");
        }
    }
}
