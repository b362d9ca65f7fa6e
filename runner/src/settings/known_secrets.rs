//! The secrets that a run knows: configured ones, header values, the credentials and query of the base URL, and arguments of an
//! agent program that look like secrets.

use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::argument_secrets::argument_secrets;
use super::run_settings::Settings;
use super::secret::Secret;
use super::target::Target;

/// Shorter values are masked only if the user configured them as secrets. Masking every short header value would damage
/// unrelated text.
const MIN_IMPLIED_BYTES: usize = 8;

/// Returns every text of the settings that no output may contain.
pub(crate) fn known_secrets(settings: &Settings) -> Vec<Secret> {
    let mut implied: Vec<String> = Vec::new();
    for header in &settings.headers {
        let value = header.value().expose();
        // An agent that checks `Bearer TOKEN` may echo the token without the scheme.
        implied.extend(value.split_once(' ').map(|(_scheme, credential)| credential.trim().to_owned()));
        implied.push(value.to_owned());
    }
    match &settings.target {
        Target::Http(base) => implied.extend(url_secrets(&base.request_url(""))),
        Target::Command(command) => implied.extend(argument_secrets(command.arguments())),
    }
    implied.retain(|text| text.len() >= MIN_IMPLIED_BYTES);
    settings.secrets.iter().cloned().chain(implied.into_iter().map(Secret::from)).collect()
}

/// Returns the credentials and the values of the query of a URL.
pub(super) fn url_secrets(url: &Url) -> Vec<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (decoded(url.username()), url.password().map(decoded));
    let mut secrets = Vec::new();
    // The `Authorization` header carries `user:password` in base64.
    secrets.extend(password.as_ref().map(|password| format!("{user}:{password}")));
    secrets.extend(password);
    secrets.push(user);
    secrets.extend(url.query_pairs().map(|(_name, value)| value.into_owned()));
    secrets
}
