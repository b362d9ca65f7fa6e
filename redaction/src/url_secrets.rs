//! Secrets in URLs.

/// Returns the credentials and the values of the query of a URL with a host, as they are written and decoded. Returns nothing for
/// other texts.
///
/// A password may contain characters that a URL has to encode, such as `#`, because people forget to encode them.
pub fn url_secrets(text: &str) -> Vec<String> {
    let Some((user_info, query)) = oracle_login(text).map(|login| (Some(login), None)).or_else(|| parts(text)) else {
        return Vec::new();
    };
    let mut secrets = Vec::new();
    let mut add = |texts: &[&str], separator: &str| {
        let decoded: Vec<String> = texts.iter().map(|text| percent_decoded(text)).collect();
        secrets.extend([texts.join(separator), decoded.join(separator)]);
    };
    if let Some((user, password)) = user_info {
        if let Some(password) = password {
            // The `Authorization` header carries `user:password` in base64.
            add(&[user, password], ":");
            add(&[password], "");
        }
        add(&[user], "");
    }
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        let value = pair.split_once('=').map_or("", |(_name, value)| value);
        add(&[value], "");
        add(&[&value.replace('+', " ")], "");
    }
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort();
    secrets.dedup();
    secrets
}

/// A user, and the password if there is one.
type Login<'a> = (&'a str, Option<&'a str>);

/// Returns the login and the query of a URL with a host. A scheme such as `jdbc:postgresql` has several parts.
fn parts(text: &str) -> Option<(Option<Login<'_>>, Option<&str>)> {
    let (_scheme, rest) = text.split_once("://").filter(|(scheme, _)| scheme.split(':').all(is_scheme))?;
    let (authority, rest) = rest.split_at(authority_end(rest));
    let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        return None;
    }
    let login = user_info.map(|text| text.split_once(':').map_or((text, None), |(user, it)| (user, Some(it))));
    let query = rest.split('#').next().and_then(|rest| rest.split_once('?')).map(|(_path, query)| query);
    Some((login, query))
}

/// Returns the end of the host. What looks like `user:pass` before the first delimiter, and is no host with a port, goes on to `@`.
fn authority_end(rest: &str) -> usize {
    let end_from = |start: usize| rest[start..].find(['/', '?', '#']).map_or(rest.len(), |at| start + at);
    let end = end_from(0);
    let (authority, tail) = rest.split_at(end);
    // A variable of a shell or a template can stand for a port.
    let is_port = |text: &str| text.starts_with(['$', '{']) || text.bytes().all(|byte| byte.is_ascii_digit());
    let is_login = |(_user, password): (&str, &str)| tail.starts_with('#') || !is_port(password);
    if authority.contains('@') || !authority.split_once(':').is_some_and(is_login) {
        return end;
    }
    let is_password = |at: &usize| !tail[..*at].contains(char::is_whitespace);
    tail.find('@').filter(is_password).map_or(end, |at| end_from(end + at))
}

/// Returns the login of `jdbc:oracle:thin:USER/PASSWORD@HOST`, which has no `//` before it.
fn oracle_login(text: &str) -> Option<Login<'_>> {
    let prefix = "jdbc:oracle:";
    let rest = text.get(prefix.len()..).filter(|_| text[..prefix.len()].eq_ignore_ascii_case(prefix))?;
    let (login, _host) = rest.split_once(':')?.1.rsplit_once('@')?;
    let (user, password) = login.split_once('/')?;
    Some((user, Some(password)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits =
            bytes.get(at + 1..at + 3).filter(|digits| bytes[at] == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_query_values_are_secrets() {
        for (url, expected) in [
            ("https://token1@h/x", &["token1"][..]),
            ("postgres://me:p%40ss@db/cases", &["me", "me:p%40ss", "me:p@ss", "p%40ss", "p@ss"]),
            ("scheme://u:p#x@h", &["p#x", "u", "u:p#x"]),
            ("scheme://u:12#x@h", &["12#x", "u", "u:12#x"]),
            ("scheme://u:p/x?y@h/z?q=1", &["1", "p/x?y", "u", "u:p/x?y"]),
            ("redis://:p#@h", &["p#"]),
            ("jdbc:postgresql://h:5432/db?user=u&password=p", &["p", "u"]),
            ("jdbc:mysql://u:p@h/db", &["p", "u", "u:p"]),
            ("JDBC:oracle:thin:scott/tiger@//h:1521/db", &["scott", "scott:tiger", "tiger"]),
        ] {
            let mut secrets = url_secrets(url);
            secrets.retain(|secret| !secret.starts_with(':'));
            assert_eq!(secrets, expected, "{url}");
        }
    }

    #[test]
    fn texts_without_credentials_have_no_secrets() {
        for text in [
            "http://localhost:8080/@scope/package",
            "https://registry.example/npm/@scope/package#readme",
            "docker://registry:5000/image@sha256:12",
            "https://h:x/ write to me@example.com",
            "file:///etc/x@y",
            "see https://example.com/x?y=1",
            "jdbc:oracle:thin:@h:1521:db",
            "jdbc:oracle",
            "jdbc:orécle:x",
            "://u:p@h",
        ] {
            assert_eq!(url_secrets(text), [""; 0], "{text}");
        }
    }
}
