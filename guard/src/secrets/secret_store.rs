//! The file of secrets: a JSON object that maps names to values, readable by its owner only.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability, WriteError, create_folder};
use counterproof_store::{FileLock, read_file};
use counterproof_validation::DocumentText;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{InvalidSecret, SecretRef, SecretValue};

pub(super) const STORE_PATH: &str = "SUB_SECRETS_PATH";

/// The file below the folder of configurations.
const DEFAULT_FILE: &str = "counterproof/secrets.json";

/// How long a change waits for another process that changes the file.
const LOCK_TIME: Duration = Duration::from_secs(10);

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
    pub updated_at: Option<String>,
}

impl SecretStore {
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
        // Checked before the lock: others who can write to the folder could replace the file.
        create_private_folder(&path)?;
        let lock_path = path.with_file_name(format!(".{}.lock", path.file_name().unwrap_or_default()));
        let lock = FileLock::lock_within(&lock_path, LOCK_TIME)
            .map_err(|source| SecretStoreError::Lock { path: lock_path.clone(), source })?;
        // The whole file is read, changed and written: without the lock, the change of another process would be lost.
        let _lock = lock.ok_or_else(|| SecretStoreError::Locked(path.clone()))?;
        let mut secrets = self.read()?;
        let existed = edit(&mut secrets);
        let mut text = serde_json::to_vec_pretty(&secrets).map_err(|error| self.invalid(error.to_string()))?;
        text.push(b'\n');
        let mut file = AtomicFile::create(&path)?;
        // Before its content is written: no other user may open it in between.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(&text).map_err(|source| WriteError { path: path.clone(), source })?;
        // A secret that was reported as stored must survive a power failure.
        file.commit(Durability::Synced)?;
        Ok(existed)
    }

    fn read(&self) -> Result<Map<String, Value>, SecretStoreError> {
        let read_error = |source| SecretStoreError::Read { path: self.path.clone(), source };
        let (file, length) = match read_file::open(&self.path) {
            Ok(opened) => opened,
            // The file is created with the first secret.
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

/// Fails if other users can access an open file, or if it belongs to another user than this one and root.
pub(super) fn check_private(file: &File, path: &Utf8Path) -> Result<(), SecretStoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let read_error = |source| SecretStoreError::Read { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(read_error)?;
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    let user = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 {
        return Err(not_private(path, format!("the mode {mode:04o} lets other users access it"), ["chmod", "600"]));
    }
    if ![0, user].contains(&owner) {
        let remedy = ["chown".to_owned(), user.to_string()];
        return Err(not_private(path, format!("it belongs to the user with the id {owner}"), remedy));
    }
    Ok(())
}

/// Creates the folder of a file, private. Fails if others can write to a folder that exists: they could replace the file.
pub(super) fn create_private_folder(path: &Utf8Path) -> Result<(), SecretStoreError> {
    let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if folder.is_dir() {
        return check_folder(folder);
    }
    create_folder(folder)?;
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder, private).map_err(|source| WriteError { path: folder.to_owned(), source }.into())
}

fn check_folder(folder: &Utf8Path) -> Result<(), SecretStoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let read_error = |source| SecretStoreError::Read { path: folder.to_owned(), source };
    let mode = std::fs::metadata(folder).map_err(read_error)?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        let reason = format!("the mode {mode:04o} of the folder lets other users replace its files");
        return Err(not_private(folder, reason, ["chmod", "go-w"]));
    }
    Ok(())
}

fn not_private(path: &Utf8Path, reason: String, command: [impl Into<String>; 2]) -> SecretStoreError {
    let remedy = command.into_iter().map(Into::into).chain([path.to_string()]).collect();
    SecretStoreError::NotPrivate { path: path.to_owned(), reason, remedy }
}

/// A file of secrets that cannot be used. No message contains a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretStoreError {
    #[error("cannot read the secrets in `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error("the secrets in `{path}` are not private: {reason}")]
    NotPrivate { path: Utf8PathBuf, reason: String, remedy: Vec<String> },
    #[error("the secrets in `{path}` are invalid: {place}{message}")]
    Invalid { path: Utf8PathBuf, place: String, message: String },
    #[error("the secret `{name}` in `{path}` is invalid")]
    InvalidValue { path: Utf8PathBuf, name: String, source: InvalidSecret },
    #[error("`{0}` is a symbolic link to a file that does not exist")]
    DanglingLink(Utf8PathBuf),
    #[error("another process is changing `{0}`")]
    Locked(Utf8PathBuf),
    #[error("cannot lock `{path}`")]
    Lock { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SecretStoreError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotPrivate { remedy, .. } => Some(format!("run `{}`", shell_words::join(remedy))),
            Self::DanglingLink(_) => Some(
                "remove the link, or create the folder and an empty JSON object `{}` with the mode 600 where it leads"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    pub fn is_io(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Locked(_) | Self::Lock { .. } | Self::Write(_))
    }
}
