//! Names of options, variables and fields whose values are secrets.

/// Words in the name of a secret.
const SECRET_WORDS: [&str; 19] = [
    "key",
    "apikey",
    "token",
    "secret",
    "pass",
    "passcode",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "credential",
    "credentials",
    "creds",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "jwt",
    "sshpass",
];

/// Ends of words in the name of a secret, such as `PGPASSWORD`.
const SECRET_ENDS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey"];

/// Last words of names whose value only describes a secret.
const DESCRIBING_WORDS: [&str; 16] = [
    "file", "path", "dir", "url", "uri", "mode", "type", "name", "size", "limit", "count", "ttl", "method", "provider",
    "env", "var",
];

/// Reports whether the values of a name are secrets, as of `--api-key`, `apiKey`, `DB_PASS` and `PGPASSWORD`.
pub fn is_secret_name(name: &str) -> bool {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(camel_case_words)
        .map(str::to_ascii_lowercase)
        .collect();
    let is_description = words.last().is_some_and(|last| DESCRIBING_WORDS.contains(&last.as_str()));
    let is_secret =
        |word: &String| SECRET_WORDS.contains(&word.as_str()) || SECRET_ENDS.iter().any(|end| word.ends_with(end));
    !is_description && words.iter().any(is_secret)
}

/// Splits `apiKey` into `api` and `Key`, and `APIKey` into `API` and `Key`.
fn camel_case_words(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_start = |at: usize| {
        let (before, this) = (bytes[at - 1], bytes[at]);
        let is_followed_by_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        this.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_followed_by_lower)
    };
    let mut words = Vec::new();
    let mut start = 0;
    for at in (1..bytes.len()).filter(|at| is_start(*at)) {
        words.push(&text[start..at]);
        start = at;
    }
    words.push(&text[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_found_in_every_case_style() {
        for name in [
            "api-key",
            "--apiKey",
            "APIKey",
            "API_KEY",
            "accessToken",
            "clientSecret",
            "oAuthToken",
            "X-Api-Key",
            "DB_PASS",
            "dbPass",
            "PGPASSWORD",
            "SSHPASS",
            "authtoken",
            "secretkey",
            "AccountKey",
            "MYSQL_PWD",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "tokenizer",
            "maxTokens",
            "monkey",
            "bypass",
            "compass",
            "keyFile",
            "PGPASSFILE",
            "tokenUrl",
            "authors",
            "bearer_token_env_var",
            "authProvider",
            "passes",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
