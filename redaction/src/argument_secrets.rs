//! Secrets in the arguments of a program. The program may print its arguments, for example in an error message, and people print
//! configurations with them.

/// Words in the name of an option or a variable whose value is a secret.
const SECRET_WORDS: [&str; 14] = [
    "key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "cookie",
];

/// Last words of names whose value only describes a secret.
const DESCRIBING_WORDS: [&str; 9] = ["file", "path", "url", "mode", "type", "name", "size", "limit", "count"];

/// The shortest value without a name that is taken for a secret, in bytes.
const MIN_OPAQUE_BYTES: usize = 20;

/// Returns the values of arguments that look like secrets: those of options such as `--api-key VALUE`, `--token=VALUE` and
/// `PASSWORD=VALUE`, those of headers and in URLs, and long values of mixed characters such as keys have.
pub fn argument_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut is_named = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        if is_named && !is_option {
            secrets.push(argument.to_owned());
        }
        is_named = is_option && is_name(argument) && is_secret_name(argument);
        add_secrets(argument, &mut secrets);
    }
    secrets
}

/// Adds the secrets in one argument, or in a value after the name of an option, such as `--env=TOKEN=VALUE`.
fn add_secrets(text: &str, secrets: &mut Vec<String>) {
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
        if is_secret_name(name) {
            secrets.push(value.to_owned());
            secrets.extend(url_secrets(value));
        } else {
            add_secrets(value, secrets);
        }
        return;
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

/// Returns the credentials and the values of the query of a URL with a host, as they are written and decoded. Returns nothing for
/// other texts.
pub fn url_secrets(text: &str) -> Vec<String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Vec::new() };
    let rest = rest.split('#').next().unwrap_or_default();
    let (address, query) = rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
    let authority = address.split('/').next().unwrap_or_default();
    let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if !is_scheme(scheme) || host.is_empty() {
        return Vec::new();
    }
    let mut secrets = Vec::new();
    let mut add = |texts: &[&str], separator: &str| {
        let decoded: Vec<String> = texts.iter().map(|text| percent_decoded(text)).collect();
        secrets.extend([texts.join(separator), decoded.join(separator)]);
    };
    if let Some(user_info) = user_info {
        let (user, password) = user_info.split_once(':').map_or((user_info, None), |(user, it)| (user, Some(it)));
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

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<_> = name.split(['-', '_', '.']).collect();
    let is_description = words.last().is_some_and(|last| DESCRIBING_WORDS.contains(last));
    !is_description && words.iter().any(|word| SECRET_WORDS.contains(word))
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
}
