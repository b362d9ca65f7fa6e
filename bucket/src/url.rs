//! Addresses of folders in a bucket.

use std::fmt;
use std::str::FromStr;

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Amazon S3, and stores that speak its protocol.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
}

impl Scheme {
    const ALL: [Self; 3] = [Self::S3, Self::Gs, Self::Az];

    /// The start of an address, with the slashes.
    const fn prefix(self) -> &'static str {
        match self {
            Self::S3 => "s3://",
            Self::Gs => "gs://",
            Self::Az => "az://",
        }
    }

    /// Where the credentials of the store come from.
    pub const fn credentials(self) -> &'static str {
        match self {
            Self::S3 => {
                "credentials and region come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_REGION`, \
                 or from the role of the machine; for another server set `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP=true` if it has no TLS"
            }
            Self::Gs => {
                "credentials come from the file that `GOOGLE_APPLICATION_CREDENTIALS` names, from `GOOGLE_SERVICE_ACCOUNT_KEY`, or from \
                 the role of the machine"
            }
            Self::Az => {
                "account and credentials come from `AZURE_STORAGE_ACCOUNT_NAME` with `AZURE_STORAGE_ACCOUNT_KEY`, from \
                 `AZURE_STORAGE_SAS_TOKEN`, or from `AZURE_STORAGE_CLIENT_ID` and the related variables"
            }
        }
    }
}

/// The address of a folder in a bucket, such as `s3://BUCKET/PREFIX`. It never holds credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketUrl {
    scheme: Scheme,
    bucket: String,
    /// Without a slash at either end; empty for the whole bucket.
    prefix: String,
}

/// An invalid address. The message does not quote it: it may hold credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The address has another scheme.
    #[error("expected an address that starts with `s3://`, `gs://` or `az://`")]
    Scheme,
    /// The address has a user, a password, a port or a query.
    #[error("the address of a bucket has no user, password, port or query; credentials come from the environment")]
    Credentials,
    /// The name of the bucket is missing or has other characters than letters, digits, `-`, `_` and `.`.
    #[error("the name of the bucket has characters other than letters, digits, `-`, `_` and `.`, or is missing")]
    Bucket,
    /// The path has an empty part, `.`, `..`, a backslash or a control character.
    #[error("the path in the bucket has an empty part, `.`, `..`, a backslash or a control character")]
    Path,
}

impl BucketUrl {
    /// Whether a text has the scheme of a bucket. Any other text is a path of this machine.
    pub fn is_bucket(text: &str) -> bool {
        Scheme::ALL.iter().any(|scheme| text.starts_with(scheme.prefix()))
    }

    /// The kind of the store.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The path of the folder in the bucket; empty for the whole bucket.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The address of the whole bucket.
    #[must_use]
    pub fn root(&self) -> Self {
        Self { prefix: String::new(), ..self.clone() }
    }

    /// The key of a file in the folder.
    pub fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

impl FromStr for BucketUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let scheme =
            Scheme::ALL.into_iter().find(|scheme| text.starts_with(scheme.prefix())).ok_or(UrlError::Scheme)?;
        let rest = &text[scheme.prefix().len()..];
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains(['@', ':']) || rest.contains(['?', '#']) {
            return Err(UrlError::Credentials);
        }
        if bucket.is_empty() || !bucket.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return Err(UrlError::Bucket);
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_name =
            |part: &str| !matches!(part, "" | "." | "..") && !part.contains(|c: char| c.is_control() || c == '\\');
        if !prefix.is_empty() && !prefix.split('/').all(is_name) {
            return Err(UrlError::Path);
        }
        Ok(Self { scheme, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scheme.prefix(), self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_bucket_and_a_path() {
        for (text, written) in [
            ("s3://agents/runs/new", "s3://agents/runs/new"),
            ("gs://agents/runs/", "gs://agents/runs"),
            ("az://agents", "az://agents"),
            ("s3://my-agents_1.eu/", "s3://my-agents_1.eu"),
        ] {
            assert_eq!(text.parse::<BucketUrl>().unwrap().to_string(), written);
        }
        let url: BucketUrl = "s3://agents/a/b".parse().unwrap();
        assert_eq!((url.bucket(), url.prefix(), url.root().key("x")), ("agents", "a/b", "x".to_owned()));
    }

    #[test]
    fn credentials_and_paths_that_lead_elsewhere_are_rejected() {
        for (text, error) in [
            ("s3://key:secret@agents/runs", UrlError::Credentials),
            ("s3://agents:9000/runs", UrlError::Credentials),
            ("az://agents/runs?sig=secret", UrlError::Credentials),
            ("s3://agents/runs#x", UrlError::Credentials),
            ("s3:///runs", UrlError::Bucket),
            ("s3://", UrlError::Bucket),
            ("s3://agents\u{1b}/runs", UrlError::Bucket),
            ("s3://agents/../other", UrlError::Path),
            ("s3://agents/runs//new", UrlError::Path),
            ("s3://agents/runs\n", UrlError::Path),
            ("https://agents/runs", UrlError::Scheme),
        ] {
            assert_eq!(text.parse::<BucketUrl>(), Err(error.clone()), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
        assert!(BucketUrl::is_bucket("s3://a") && !BucketUrl::is_bucket("runs/s3://a"));
    }
}
