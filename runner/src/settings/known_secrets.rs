//! The texts of the settings that no output may contain.

use counterproof_redaction::url_secrets;

use super::run_settings::Settings;
use super::target::Target;
use crate::secret::Secret;

/// Shorter values are masked only if the user configured them as secrets.
pub(super) const MIN_IMPLIED_BYTES: usize = 8;

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
        Target::Command(command) => implied.extend(command.secrets()),
    }
    // Masking every short header value would damage unrelated text.
    implied.retain(|text| text.len() >= MIN_IMPLIED_BYTES);
    settings.secrets.iter().cloned().chain(implied.into_iter().map(Secret::from)).collect()
}
