//! The secrets that a run knows: configured ones, header values, the credentials and query of the base URL, and arguments of an
//! agent program that look like secrets.

use counterproof_redaction::{argument_secrets, url_secrets};

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
        Target::Http(base) => implied.extend(url_secrets(base.request_url("").as_str())),
        Target::Command(command) => implied.extend(argument_secrets(command.arguments())),
    }
    implied.retain(|text| text.len() >= MIN_IMPLIED_BYTES);
    settings.secrets.iter().cloned().chain(implied.into_iter().map(Secret::from)).collect()
}
