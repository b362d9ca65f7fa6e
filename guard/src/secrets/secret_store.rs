//! The file of secrets: a JSON object that maps names to values, readable by its owner only.

use std::io::{self, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability, WriteError};
use counterproof_store::{FileLock, read_file};
use counterproof_validation::DocumentText;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::private_file::{check_private, create_private_folder, make_file_private};
use super::{SecretRef, SecretStoreError, SecretValue};

/// The variable with the path of the file.
pub(super) const STORE_PATH: &str = "SUB_SECRETS_PATH";

/// The file below the folder of configurations.
const DEFAULT_FILE: &str = "counterproof/secrets.json";

/// How long a change waits for another process that changes the file.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// A file of secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretStore {
    path: Utf8PathBuf,
}

/// What a list shows of a secret: never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSecret {
    pub name: String,
    /// Where the value came from, such as `stdin`.
    pub source: Option<String>,
    /// When it was stored.
    pub updated_at: Option<String>,
}

impl SecretStore {
    /// The store in a file, which need not exist.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The store that the environment names: `SUB_SECRETS_PATH`, or `counterproof/secrets.json` in the folder of configurations.
    /// Returns `None` if neither is known.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name| lookup(name).filter(|value: &String| !value.is_empty()).map(Utf8PathBuf::from);
        let configuration = || {
            if cfg!(windows) {
                return set("APPDATA");
            }
            set("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(".config")))
        };
        set(STORE_PATH).or_else(|| Some(configuration()?.join(DEFAULT_FILE))).map(Self::new)
    }

    /// The file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    pub fn value(&self, name: &SecretRef) -> Result<Option<SecretValue>, SecretStoreError> {
        let mut secrets = self.read()?;
        let Some(entry) = secrets.remove(name.as_str()) else { return Ok(None) };
        let Some(Value::String(value)) = entry.get("value").cloned() else {
            return Err(self.invalid(format!("`{name}` has no text in `value`")));
        };
        let invalid =
            |source| SecretStoreError::InvalidValue { path: self.path.clone(), name: name.to_string(), source };
        SecretValue::new(value).map(Some).map_err(invalid)
    }

    /// Lists the secrets, sorted by name.
    pub fn list(&self) -> Result<Vec<StoredSecret>, SecretStoreError> {
        let secrets = self.read()?;
        let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
        let mut list: Vec<StoredSecret> = secrets
            .iter()
            .map(|(name, entry)| StoredSecret {
                name: name.clone(),
                source: text(entry, "source"),
                updated_at: text(entry, "updated_at"),
            })
            .collect();
        list.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(list)
    }

    /// Adds a secret, or replaces its value. Returns true if it existed. `source` states where the value came from.
    pub fn add(
        &self,
        name: &SecretRef,
        value: &SecretValue,
        source: &str,
        now: Timestamp,
    ) -> Result<bool, SecretStoreError> {
        self.change(|secrets| {
            let entry = json!({"value": value.expose(), "source": source, "updated_at": now.to_string()});
            secrets.insert(name.to_string(), entry).is_some()
        })
    }

    /// Removes a secret. Returns false if it did not exist.
    pub fn remove(&self, name: &SecretRef) -> Result<bool, SecretStoreError> {
        if !self.path.exists() {
            return Ok(false);
        }
        // `shift_remove` preserves the order of the others.
        self.change(|secrets| secrets.shift_remove(name.as_str()).is_some())
    }

    fn change(&self, edit: impl FnOnce(&mut Map<String, Value>) -> bool) -> Result<bool, SecretStoreError> {
        // The file that a symbolic link names is replaced, and not the link.
        let path = match self.path.canonicalize_utf8() {
            Ok(path) => path,
            // A file in place of the link would not be where the user expects it.
            Err(_) if self.path.is_symlink() => return Err(SecretStoreError::DanglingLink(self.path.clone())),
            Err(_) => self.path.clone(),
        };
        create_private_folder(&path)?;
        let lock_path = path.with_file_name(format!(".{}.lock", path.file_name().unwrap_or_default()));
        let lock = FileLock::acquire_within(&lock_path, LOCK_TIME)
            .map_err(|source| SecretStoreError::Lock { path: lock_path.clone(), source })?;
        let _lock = lock.ok_or_else(|| SecretStoreError::Locked(path.clone()))?;
        let mut secrets = self.read()?;
        let existed = edit(&mut secrets);
        let mut text = serde_json::to_vec_pretty(&secrets).map_err(|error| self.invalid(error.to_string()))?;
        text.push(b'\n');
        let mut file = AtomicFile::create(&path)?;
        make_file_private(&mut file)?;
        file.write_all(&text).map_err(|source| WriteError { path: path.clone(), source })?;
        file.commit(Durability::Synced)?;
        Ok(existed)
    }

    /// Reads all secrets. A file that does not exist has none.
    fn read(&self) -> Result<Map<String, Value>, SecretStoreError> {
        let read_error = |source| SecretStoreError::Read { path: self.path.clone(), source };
        let (file, length) = match read_file::open(&self.path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(read_error(error)),
        };
        // The open file is checked, and not its path, which could name another one by now.
        check_private(&file, &self.path)?;
        let bytes = read_file::read_to_limit(file, length, read_file::MAX_SMALL_BYTES).map_err(read_error)?;
        let checked = DocumentText { file: &self.path, bytes: &bytes, first_line: 1 }.parse_json();
        if let Some(finding) = checked.findings.first() {
            let place = finding.position.map(|at| format!("line {}, column {}: ", at.line, at.column));
            let (path, message) = (self.path.clone(), finding.message.clone());
            return Err(SecretStoreError::Invalid { path, place: place.unwrap_or_default(), message });
        }
        match checked.value {
            Some(Value::Object(secrets)) => Ok(secrets),
            _ => Err(self.invalid("the file is not a JSON object")),
        }
    }

    fn invalid(&self, message: impl Into<String>) -> SecretStoreError {
        SecretStoreError::Invalid { path: self.path.clone(), place: String::new(), message: message.into() }
    }
}
