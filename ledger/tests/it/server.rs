//! A PostgreSQL server in a temporary folder.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::location::LedgerLocation;
use counterproof_store::write::{Durability, write};

/// The folder with `initdb` and `pg_ctl`.
const PROGRAMS: &str = "COUNTERPROOF_POSTGRES_BIN";

/// The user that runs the server if the test runs as root, which the server refuses.
const NOBODY: u32 = 65534;

/// Part of the name of the socket. Each server has a folder of its own, so the number does not matter.
const PORT: u16 = 26001;

/// A running server. Dropping it stops the server and removes its data.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: Utf8PathBuf,
}

impl Server {
    pub(crate) fn start() -> Self {
        let programs = std::env::var(PROGRAMS).unwrap_or_else(|_| panic!("{PROGRAMS} names the folder of initdb"));
        let server =
            Self { folder: tempfile::Builder::new().prefix("cp-pg-").tempdir().unwrap(), programs: programs.into() };
        if is_root() {
            chown(server.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = server.path().join("data");
        let options = ["-U", "cp", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"];
        server.run("initdb", &[&["-D", data.as_str()], &options[..]].concat());
        server.resume();
        server
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    /// Lets the server accept TCP connections with TLS, and no others. Returns the port.
    pub(crate) fn restart_with_tls(&self) -> u16 {
        self.stop();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let pem = |kind: &str, der: &[u8]| {
            format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(der))
        };
        let files = [
            ("data/server.crt", pem("CERTIFICATE", include_bytes!("../../../tests/tests/e2e/tls/certificate.der"))),
            ("data/server.key", pem("PRIVATE KEY", include_bytes!("../../../tests/tests/e2e/tls/key.der"))),
            ("data/pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n".to_owned()),
        ];
        for (name, text) in files {
            let path = self.path().join(name);
            write(&path, text.as_bytes(), Durability::Cached).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        self.start_on(&format!("-c listen_addresses=127.0.0.1 -c ssl=on -p {port}"));
        port
    }

    /// Starts the server again after [`Server::stop`].
    pub(crate) fn resume(&self) {
        self.start_on(&format!("-c listen_addresses='' -p {PORT}"));
    }

    fn start_on(&self, address: &str) {
        let folder = self.path();
        let options = format!("-c unix_socket_directories={folder} {address}");
        let (data, log) = (folder.join("data"), folder.join("log"));
        self.run("pg_ctl", &["-D", data.as_str(), "-w", "-l", log.as_str(), "-o", &options, "start"]);
    }

    /// Stops the server as a crash would.
    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["-D", self.path().join("data").as_str(), "-m", "immediate", "stop"]);
    }

    pub(crate) fn url(&self) -> String {
        let folder = self.path().as_str().replace('/', "%2F");
        format!("postgres://cp@{folder}:{PORT}/postgres")
    }

    pub(crate) fn location(&self) -> LedgerLocation {
        self.url().parse().unwrap()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        assert!(command.status().unwrap().success(), "{program} {arguments:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.path().join("data/postmaster.pid").exists() {
            self.stop();
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;

    tempfile::tempfile().unwrap().metadata().unwrap().uid() == 0
}
