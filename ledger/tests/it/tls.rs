//! Connections to a PostgreSQL server with TLS.

mod postgres {
    use counterproof_store::write::{Durability, write};

    use crate::killed::recording;
    use crate::kit::Kit;
    use crate::server::Server;

    /// The authority that signed the certificate of the server.
    const AUTHORITY: &str = include_str!("../../../tests/tests/e2e/tls/authority.pem");

    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn a_connection_with_tls_checks_the_certificate_and_the_name() {
        let (kit, server) = (Kit::new(), Server::start());
        let port = server.restart_with_tls();
        write(&kit.path("authority.pem"), AUTHORITY.as_bytes(), Durability::Cached).unwrap();
        let succeeds = |host: &str, mode: &str, authorities: Option<&str>| {
            let url = format!("postgres://cp@{host}:{port}/postgres?sslmode={mode}&connect_timeout=20");
            let mut command = recording(&kit, &url, ["r1", mode], 1);
            match authorities {
                Some(name) => command.env("SSL_CERT_FILE", kit.path(name)),
                None => command.env_remove("SSL_CERT_FILE"),
            };
            command.env("COUNTERPROOF_TEST_LIMIT_MS", "1500").output().unwrap().status.success()
        };
        assert!(succeeds("127.0.0.1", "require", Some("authority.pem")));
        assert!(succeeds("127.0.0.1", "verify-full", Some("authority.pem")));
        assert!(succeeds("127.0.0.1", "prefer", Some("authority.pem")));
        assert!(!succeeds("127.0.0.1", "disable", Some("authority.pem")), "the server requires TLS");
        assert!(!succeeds("127.0.0.1", "require", None), "an unknown authority");
        assert!(!succeeds("localhost", "require", Some("authority.pem")), "the certificate has another name");
    }
}
