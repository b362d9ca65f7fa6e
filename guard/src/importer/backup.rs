//! The names of the files that an import writes next to the configuration.

use camino::{Utf8Path, Utf8PathBuf};

/// Largest number of backups of one configuration.
const MAX_BACKUPS: u32 = 1000;

/// The record of the last import.
pub(super) fn record_path(config: &Utf8Path) -> Utf8PathBuf {
    with_suffix(config, ".counterproof-import.json")
}

/// The names of backups, in the order in which they are used. An older original is never overwritten.
pub(super) fn backup_paths(config: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    let first = with_suffix(config, ".counterproof-backup");
    let further = (2..=MAX_BACKUPS).map({
        let config = config.to_owned();
        move |number| with_suffix(&config, &format!(".counterproof-backup-{number}"))
    });
    std::iter::once(first).chain(further)
}

fn with_suffix(config: &Utf8Path, suffix: &str) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{config}{suffix}"))
}
