//! Secrets in the arguments of a program. The program may print its arguments, for example in an error message, and people print
//! configurations with them.

use std::collections::HashSet;

use serde_json::Value;

use crate::patterns::is_secret_name;

/// The shortest value without a name that is taken for a secret, in bytes.
const MIN_OPAQUE_BYTES: usize = 20;

/// Schemes of credentials, as in `Bearer VALUE`.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Characters that separate words of a command or of a connection string.
const SEPARATORS: [char; 5] = [';', '&', '|', '(', ')'];

/// Depth to which commands and JSON in an argument are read, as in `sh -c "sh -c '…'"`.
const MAX_DEPTH: u8 = 4;

/// Returns the values of arguments that look like secrets: those of options such as `--api-key VALUE`, `--token=VALUE` and
/// `PASSWORD=VALUE`, those of headers and in URLs, and long values of mixed characters such as keys have. An argument that is a
/// command, a connection string or JSON is read as well.
pub fn argument_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut secrets = Vec::new();
    add_arguments(arguments, MAX_DEPTH, &mut secrets);
    let mut found = HashSet::new();
    secrets.retain(|secret| !secret.is_empty() && found.insert(secret.clone()));
    secrets
}

fn add_arguments<'a>(arguments: impl Iterator<Item = &'a str>, depth: u8, secrets: &mut Vec<String>) {
    let mut is_named = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        // What starts with `-` is the next option, so the option before it has no value.
        if is_named && !is_option {
            add_value(argument, secrets);
        }
        is_named = is_option && is_name(argument) && is_secret_name(argument);
        add_secrets(argument, secrets);
        if depth > 0 {
            add_parts(argument, depth - 1, secrets);
        }
    }
}

/// Adds the secrets in the parts of an argument.
fn add_parts(argument: &str, depth: u8, secrets: &mut Vec<String>) {
    // Also as the value of an option or a variable.
    let text = argument.split_once('=').filter(|(name, _)| is_name(name)).map_or(argument, |(_, value)| value);
    let is_json = text.trim_start().starts_with(['{', '[']);
    if let Some(value) = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten() {
        return add_json(&value, Meaning::Unknown, depth, secrets);
    }
    if argument.contains(|c: char| c.is_whitespace() || matches!(c, ';' | '"' | '\'')) {
        let words = words(argument);
        add_arguments(words.iter().map(String::as_str), depth, secrets);
    }
}

/// What the name of a value states about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Secret,
    /// It may be anything.
    Unknown,
}

/// Adds the secrets in JSON, decoded and as they are written.
fn add_json(value: &Value, meaning: Meaning, depth: u8, secrets: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let meaning = if is_secret_name(name) { Meaning::Secret } else { meaning };
                add_json(value, meaning, depth, secrets);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_json(item, meaning, depth, secrets)),
        Value::String(text) if meaning == Meaning::Secret => {
            // A program may print the argument as it is, with the escapes of JSON.
            let written = value.to_string();
            secrets.push(written[1..written.len() - 1].to_owned());
            add_value(text, secrets);
        }
        Value::String(text) => add_arguments(std::iter::once(text.as_str()), depth, secrets),
        Value::Number(number) if meaning == Meaning::Secret => secrets.push(number.to_string()),
        // `true` and `null` are in any text, whatever their name.
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Adds the secrets in one argument, or in a value after the name of an option, such as `--env=TOKEN=VALUE`.
fn add_secrets(mut text: &str, secrets: &mut Vec<String>) {
    while let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
        if is_secret_name(name) {
            return add_value(value, secrets);
        }
        text = value;
    }
    if is_opaque(text) {
        secrets.push(text.to_owned());
    }
    // A header, such as `Authorization: Bearer VALUE`.
    if let Some((_name, value)) = text.split_once(':').filter(|(name, _)| is_name(name) && is_secret_name(name)) {
        let value = value.trim();
        secrets.extend(value.split_once(' ').map(|(_scheme, credential)| credential.trim().to_owned()));
        secrets.push(value.to_owned());
    }
    secrets.extend(url_secrets(text));
}

/// Adds a value that is a secret, and the credential in it.
fn add_value(value: &str, secrets: &mut Vec<String>) {
    let is_scheme = |scheme: &str| SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    let credential = value.split_once(' ').filter(|(scheme, _)| is_scheme(scheme));
    secrets.extend(credential.map(|(_scheme, credential)| credential.trim().to_owned()));
    secrets.push(value.to_owned());
    secrets.extend(url_secrets(value));
}

/// Splits a command into words, without their quotes.
fn words(command: &str) -> Vec<String> {
    // A rough split is enough: the words are searched for secrets and never run.
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut quote = None;
    for character in command.chars() {
        match quote {
            Some(end) if character == end => quote = None,
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None if character.is_whitespace() || SEPARATORS.contains(&character) => {
                words.push(std::mem::take(&mut word));
            }
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Reports whether a value looks like a generated key: long, without separators, and of digits and letters in both cases, or of
/// hexadecimal digits.
fn is_opaque(value: &str) -> bool {
    let all = |allowed: fn(u8) -> bool| value.bytes().all(allowed);
    let any = |wanted: fn(&u8) -> bool| value.bytes().any(|byte| wanted(&byte));
    let is_mixed = any(u8::is_ascii_digit) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase);
    let is_hex = value.len() >= 32 && all(|byte| byte.is_ascii_hexdigit()) && any(u8::is_ascii_digit);
    let is_token = all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'='));
    value.len() >= MIN_OPAQUE_BYTES && is_token && (is_mixed || is_hex)
}

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
        // A program may print the URL as it is, or a part that a library has decoded.
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
        // Forms encode a space as `+`.
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
    // The last `@`, because a password can contain one.
    let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        return None;
    }
    let login = user_info.map(|text| text.split_once(':').map_or((text, None), |(user, it)| (user, Some(it))));
    let query = rest.split('#').next().and_then(|rest| rest.split_once('?')).map(|(_path, query)| query);
    Some((login, query))
}

/// Returns the end of the host. What looks like `user:pass` before the first delimiter, and is not a host with a port,
/// goes on to `@`.
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

    fn secrets(line: &str) -> Vec<String> {
        argument_secrets(line.split('|'))
    }

    #[test]
    fn values_with_a_secret_name_are_secrets() {
        assert_eq!(secrets("agent.py|--api-key|abcd1234|--fast"), ["abcd1234"]);
        assert_eq!(secrets("--token=abcd1234"), ["abcd1234"]);
        assert_eq!(secrets("env|DB_PASSWORD=abcd1234|agent"), ["abcd1234"]);
        assert_eq!(secrets("-e|TOKEN=abcd1234|--env=TOKEN=efgh5678"), ["abcd1234", "efgh5678"]);
        for line in ["--header|Authorization: Bearer abcd1234", "--header=Authorization: Bearer abcd1234"] {
            assert_eq!(secrets(line), ["abcd1234", "Bearer abcd1234"]);
        }
        assert_eq!(secrets("--header=Authorization: Basic YWJjZA=="), ["YWJjZA==", "Basic YWJjZA=="]);
        for line in [r#"--config={"apiKey":"abcd1234","port":1}"#, r#"CONFIG={"apiKey": "abcd1234"}"#] {
            assert_eq!(secrets(line), ["abcd1234"], "{line}");
        }
    }

    #[test]
    fn a_variable_for_a_port_is_no_login() {
        assert_eq!(secrets("http://localhost:$PORT/@scope/x|http://localhost:{port}/@scope/x"), [""; 0]);
    }

    #[test]
    fn credentials_in_urls_and_generated_keys_are_secrets() {
        assert_eq!(secrets("--db|postgres://me:abcd1234@db/cases"), ["abcd1234", "me", "me:abcd1234"]);
        assert_eq!(
            secrets("--url=https://example.com/mcp?token=a%20b+c&x#top"),
            ["a b c", "a b+c", "a%20b c", "a%20b+c"]
        );
        assert_eq!(secrets("--use=aB3dE5gH7jK9mN1pQ3sT"), ["aB3dE5gH7jK9mN1pQ3sT"]);
        assert_eq!(secrets("0123456789abcdef0123456789abcdef").len(), 1);
    }

    #[test]
    fn names_in_every_case_style_are_names_of_secrets() {
        assert_eq!(secrets("--apiKey|abcd1234"), ["abcd1234"]);
        assert_eq!(secrets("PGPASSWORD=abcd1234|psql"), ["abcd1234"]);
        assert_eq!(secrets("env|DB_PASS=abcd1234"), ["abcd1234"]);
        assert_eq!(secrets("--auth|Bearer abcd1234"), ["abcd1234", "Bearer abcd1234"]);
    }

    #[test]
    fn words_inside_an_argument_are_read() {
        assert_eq!(secrets("sh|-c|exec server --fast --token abcd1234"), ["abcd1234"]);
        assert!(secrets("sh|-c|PGPASSWORD='abcd 1234'; psql").contains(&"abcd 1234".to_owned()));
        assert_eq!(secrets("sh|-c|sh -c \"run --token 'abcd1234'\""), ["abcd1234"]);
        assert_eq!(secrets("bash|-c|curl -H \"Authorization: Bearer abcd1234\""), ["abcd1234", "Bearer abcd1234"]);
        assert_eq!(secrets("sh|-c|psql postgres://me:abcd1234@db/x"), ["abcd1234", "me", "me:abcd1234"]);
        assert_eq!(secrets("jdbc:sqlserver://h:1;user=me;password=abcd1234"), ["abcd1234"]);
        assert_eq!(secrets("--connection|Server=h;AccountKey=ab==;Timeout=3"), ["ab=="]);
    }

    #[test]
    fn fields_of_json_in_an_argument_are_read() {
        assert_eq!(
            secrets(r#"--config|{"apiKey":"ab\"cd","port":1,"auth":{"pin":1234}}"#),
            [r#"ab\"cd"#, "ab\"cd", "1234"]
        );
        assert_eq!(secrets(r#"{"headers":[{"x":"--token abcd1234"}]}"#), ["abcd1234"]);
    }

    #[test]
    fn a_long_argument_is_read_in_bounded_depth() {
        assert!(secrets(&"a=".repeat(100_000)).is_empty());
        assert!(secrets(&"'\" ".repeat(30_000)).is_empty());
        assert!(secrets(&"[".repeat(100_000)).is_empty());
    }

    #[test]
    fn ordinary_values_are_not_secrets() {
        for line in [
            "--token|--fast",
            "agents/Support2026/agent.py",
            "--model|claude-opus-4-20250101",
            "--temperature=0",
            "--tokenizer|cl100k_base",
            "--key-file|/etc/agent.pem",
            "--config|https://agent.example/config/2026",
            "file:///etc/agent?x=1",
            "100%|50%2",
        ] {
            assert!(secrets(line).is_empty(), "{line}");
        }
    }

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
