//! The address of a repository at GitHub, however it is written.

use crate::forge::ForgeError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepositoryAddress {
    pub host: String,
    pub owner: String,
    pub name: String,
    /// HTTP without TLS, for servers on this machine.
    pub is_plain: bool,
}

impl RepositoryAddress {
    /// Parses `https://host/owner/name.git`, `ssh://git@host/owner/name` and `git@host:owner/name`.
    pub(super) fn parse(address: &str) -> Result<Self, ForgeError> {
        // The address may have a password: it is not part of the message.
        let invalid = || ForgeError::GitHub("the repository has no HTTPS or SSH address of GitHub".to_owned());
        let (is_plain, rest) = match address.split_once("://") {
            Some(("https" | "ssh" | "git+ssh", rest)) => (false, rest.to_owned()),
            Some(("http", rest)) => (true, rest.to_owned()),
            Some(_) => return Err(invalid()),
            None => (false, address.replacen(':', "/", 1)),
        };
        let (host, path) = rest.split_once('/').ok_or_else(invalid)?;
        let host = host.rsplit('@').next().unwrap_or(host);
        // The port of SSH is not that of HTTPS.
        let host = if address.starts_with("ssh") { host.split(':').next().unwrap_or(host) } else { host };
        if is_plain && !super::client::is_loopback(host) {
            return Err(ForgeError::GitHub("the token is only sent over HTTPS, and the address is HTTP".to_owned()));
        }
        let path = path.trim_matches('/');
        let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/').ok_or_else(invalid)?;
        let is_name = |text: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !text.is_empty() && !text.starts_with('.') && text.chars().all(is_plain)
        };
        let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.:[]".contains(c));
        if !is_host || !is_name(owner) || !is_name(name) {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), owner: owner.to_owned(), name: name.to_owned(), is_plain })
    }

    /// The host without a port.
    pub(super) fn host_name(&self) -> &str {
        let end = if self.host.starts_with('[') { self.host.find(']').map_or(0, |end| end + 1) } else { 0 };
        self.host[end..].find(':').map_or(&self.host, |port| &self.host[..end + port])
    }

    pub(super) fn git_url(&self) -> String {
        let scheme = if self.is_plain { "http" } else { "https" };
        format!("{scheme}://{}/{}/{}.git", self.host, self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_git_writes_them() {
        for address in [
            "https://github.com/octo/my.repo",
            "https://github.com/octo/my.repo.git",
            "https://user:secret@github.com/octo/my.repo.git/",
            "ssh://git@github.com:22/octo/my.repo.git",
            "git@github.com:octo/my.repo.git",
        ] {
            let parsed = RepositoryAddress::parse(address).unwrap();
            assert_eq!(parsed.git_url(), "https://github.com/octo/my.repo.git", "{address}");
        }
        for address in [
            "/a/path",
            "file:///a/b",
            "https://github.com/octo",
            "http://github.com/o/n",
            "https://h/o/n/more",
            "https://h/../n",
            "x",
        ] {
            let error = RepositoryAddress::parse(address).unwrap_err().to_string();
            assert!(!error.contains("octo"), "{error}");
        }
    }
}
