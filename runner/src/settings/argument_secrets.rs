//! Secrets in the arguments of an agent program. The program may print its arguments, for example in an error message, and its output
//! is kept.

use reqwest::Url;

use super::known_secrets::url_secrets;

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
/// `PASSWORD=VALUE`, those in URLs, and long values of mixed characters such as keys have.
pub(super) fn argument_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut is_named = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        if is_named && !is_option {
            secrets.push(argument.to_owned());
        }
        let (name, value) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
        let has_secret_name = is_name(name) && is_secret_name(name);
        is_named = is_option && has_secret_name && value.is_none();
        match value {
            Some(value) if has_secret_name => secrets.push(value.to_owned()),
            Some(value) if is_opaque(value) => secrets.push(value.to_owned()),
            _ if is_opaque(argument) => secrets.push(argument.to_owned()),
            _ => {}
        }
        // A header, such as `Authorization: Bearer VALUE`.
        if let Some((_name, value)) = argument.split_once(':').filter(|(name, _)| is_name(name) && is_secret_name(name))
        {
            let value = value.trim();
            secrets.extend(value.split_once(' ').map(|(_scheme, credential)| credential.trim().to_owned()));
            secrets.push(value.to_owned());
        }
        secrets.extend(Url::parse(value.unwrap_or(argument)).iter().filter(|url| url.has_host()).flat_map(url_secrets));
    }
    secrets
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
        assert_eq!(secrets("--header|Authorization: Bearer abcd1234"), ["abcd1234", "Bearer abcd1234"]);
    }

    #[test]
    fn credentials_in_urls_and_generated_keys_are_secrets() {
        assert!(secrets("--db|postgres://me:abcd1234@db/cases").contains(&"abcd1234".to_owned()));
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
        ] {
            assert!(secrets(line).is_empty(), "{line}");
        }
        assert!(secrets("--config|https://agent.example/config/2026").iter().all(String::is_empty));
    }
}
