//! Requests to one bucket. Each call blocks its thread until the request is done.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use counterproof_store::read_file::MAX_LARGE_BYTES;
use futures_util::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::failure::BucketError;
use crate::url::{BucketUrl, Scheme};

/// How often the store repeats a request that the server answered with 429 or 5xx, or that did not reach it.
const RETRIES: usize = 8;
/// After this time, a request is not repeated.
const RETRIES_END: Duration = Duration::from_secs(90);
/// How often a request is made whose connection broke in the middle.
const TRIES: u32 = 6;
/// The time limit of one request. An asset can be large and the line slow.
const TIMEOUT: Duration = Duration::from_mins(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of the next byte of an answer.
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// How many requests of one call run at the same time.
const CONCURRENCY: usize = 16;

/// A bucket, opened with the credentials of the environment.
#[derive(Debug)]
pub struct Bucket {
    url: BucketUrl,
    store: Arc<dyn ObjectStore>,
    /// Always there until the bucket is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Dropping a runtime waits for its tasks, which a caller in an async task must not do.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bucket {
    /// Opens the bucket of an address. No request is made.
    pub fn open(url: &BucketUrl) -> Result<Self, BucketError> {
        // Another part of the program may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig {
            backoff: BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() },
            max_retries: RETRIES,
            retry_timeout: RETRIES_END,
        };
        let name = url.bucket();
        // From the environment first: it has `allow_http`, proxies and the like, which these calls leave as they are.
        let store: Result<Arc<dyn ObjectStore>, Error> = match url.scheme() {
            Scheme::S3 => {
                let builder = AmazonS3Builder::from_env();
                let builder = builder.with_bucket_name(name).with_retry(retry);
                options(builder, AmazonS3Builder::with_config, object_store::aws::AmazonS3ConfigKey::Client)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
            Scheme::Gs => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(name).with_retry(retry);
                options(builder, GoogleCloudStorageBuilder::with_config, object_store::gcp::GoogleConfigKey::Client)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
            Scheme::Az => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(name).with_retry(retry);
                options(builder, MicrosoftAzureBuilder::with_config, object_store::azure::AzureConfigKey::Client)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
        };
        let store = store.map_err(|error| {
            // A parser that fails quotes what it reads, and a key in the environment of Google's is JSON.
            let reason = match url.scheme() {
                Scheme::Gs => "its credentials in the environment are not valid".to_owned(),
                Scheme::S3 | Scheme::Az => reason(&error),
            };
            BucketError::Open { url: url.root().to_string(), reason }
        })?;
        Self::with_store(url, store)
    }

    /// Opens a bucket that is in another store, such as the memory of a test.
    pub fn with_store(url: &BucketUrl, store: Arc<dyn ObjectStore>) -> Result<Self, BucketError> {
        let url = url.root();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("bucket").build();
        let runtime = runtime.map_err(|error| BucketError::Open { url: url.to_string(), reason: error.to_string() })?;
        Ok(Self { url, store, runtime: Some(runtime) })
    }

    /// The address of the bucket.
    pub const fn url(&self) -> &BucketUrl {
        &self.url
    }

    /// The address of an object.
    pub(crate) fn address(&self, key: &str) -> String {
        format!("{}/{key}", self.url)
    }

    /// Runs a request on the runtime of the bucket and waits for it. Works on any thread, also on one of another runtime.
    fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.runtime.as_ref()?.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(request.await);
        });
        receiver.recv().ok()
    }

    /// Makes a request, again if its connection breaks. Without `action` and `key` in the result: each caller has them.
    fn request<T, F>(
        &self,
        action: &'static str,
        key: &str,
        request: impl Fn(Arc<dyn ObjectStore>, Path) -> F + Send + Sync + 'static,
    ) -> Result<Result<T, Error>, BucketError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let failed = |reason: String| BucketError::Request { action, url: self.address(key), reason };
        let (store, path) = (Arc::clone(&self.store), parse(key)?);
        let done = self.wait(async move { again(|| request(Arc::clone(&store), path.clone())).await });
        match done {
            // Also where a task panicked.
            None => Err(failed("the request was not completed".to_owned())),
            Some(Err(error)) if !is_expected(&error) => Err(failed(reason(&error))),
            Some(result) => Ok(result),
        }
    }

    /// Reads an object. `None` if there is none with this key.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        let read = self.request("read", key, |store, path| async move {
            let found = store.get(&path).await?;
            let size = found.meta.size;
            if size > MAX_LARGE_BYTES {
                return Ok(Err(size));
            }
            Ok(Ok(found.bytes().await?.to_vec()))
        })?;
        let too_large = |bytes| BucketError::TooLarge { url: self.address(key), bytes, limit: MAX_LARGE_BYTES };
        read.ok().transpose().map_err(too_large)
    }

    /// Whether there is an object with this key.
    pub fn exists(&self, key: &str) -> Result<bool, BucketError> {
        let found = self.request("look for", key, |store, path| async move { store.head(&path).await })?;
        Ok(found.is_ok())
    }

    /// Writes an object, and replaces one with this key.
    pub fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BucketError> {
        let payload = PutPayload::from(bytes);
        let attributes = attributes(key);
        let put = self.request("write", key, move |store, path| {
            let options = PutOptions { attributes: attributes.clone(), ..PutOptions::default() };
            let payload = payload.clone();
            async move { store.put_opts(&path, payload, options).await }
        })?;
        put.map(drop).map_err(|error| self.failed("write", key, &error))
    }

    /// Writes an object unless there is one with this key. Returns false if there is one with other bytes: after a broken
    /// connection, this call may itself have written it. So `bytes` must differ between processes.
    pub fn create(&self, key: &str, bytes: &[u8]) -> Result<bool, BucketError> {
        for tries in 0..TRIES {
            if tries > 0 {
                std::thread::sleep(pause(tries));
            }
            let payload = PutPayload::from(bytes.to_vec());
            let path = parse(key)?;
            let store = Arc::clone(&self.store);
            let options = PutOptions { mode: PutMode::Create, attributes: attributes(key), ..PutOptions::default() };
            let created = self.wait(async move { store.put_opts(&path, payload, options).await });
            match created {
                Some(Ok(_)) => return Ok(true),
                Some(Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                    // `None`: its owner has removed it, or the store denies what it has.
                    if let Some(there) = self.get(key)? {
                        return Ok(there == bytes);
                    }
                }
                Some(Err(error)) if was_cut(&error) => {
                    if let Some(there) = self.get(key)? {
                        return Ok(there == bytes);
                    }
                }
                Some(Err(error)) => return Err(self.failed("create", key, &error)),
                None => break,
            }
        }
        Err(BucketError::Request {
            action: "create",
            url: self.address(key),
            reason: "the request was not completed".to_owned(),
        })
    }

    /// Removes an object, if there is one.
    pub fn delete(&self, key: &str) -> Result<(), BucketError> {
        let removed = self.request("remove", key, |store, path| async move { store.delete(&path).await })?;
        match removed {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", key, &error)),
        }
    }

    /// The keys of all objects below a folder, sorted.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, BucketError> {
        let found = self.request("list", folder, |store, path| async move {
            let objects = store.list(Some(&path)).map_ok(|object| object.location.to_string());
            objects.try_collect::<Vec<_>>().await
        })?;
        let mut keys = found.map_err(|error| self.failed("list", folder, &error))?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// The names of the folders directly below a folder, sorted.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, BucketError> {
        let found = self.request("list", folder, |store, path| async move {
            let found = store.list_with_delimiter(Some(&path)).await?;
            Ok(found.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect::<Vec<_>>())
        })?;
        let mut names = found.map_err(|error| self.failed("list", folder, &error))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Calls a function for each key, several at a time. All calls have returned when this does, also after an error.
    pub(crate) fn for_each(
        keys: Vec<String>,
        work: impl Fn(&str) -> Result<(), BucketError> + Sync,
    ) -> Result<(), BucketError> {
        if let [key] = keys.as_slice() {
            return work(key);
        }
        let workers = CONCURRENCY.min(keys.len());
        let next = Mutex::new(keys.into_iter());
        let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work_off = || -> Result<(), BucketError> {
            while let Some(key) = take() {
                work(&key)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work_off)).collect();
            // A panic of a thread goes on at the end of the scope.
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))).collect();
            ends.into_iter().collect()
        })
    }

    fn failed(&self, action: &'static str, key: &str, error: &Error) -> BucketError {
        BucketError::Request { action, url: self.address(key), reason: reason(error) }
    }
}

/// Sets the time limits, one by one: a set of client options would replace those of the environment.
fn options<B, K>(builder: B, with: impl Fn(B, K, String) -> B, key: impl Fn(object_store::ClientConfigKey) -> K) -> B {
    use object_store::ClientConfigKey::{ConnectTimeout, ReadTimeout, Timeout};
    let limits = [(Timeout, TIMEOUT), (ConnectTimeout, CONNECT_TIMEOUT), (ReadTimeout, READ_TIMEOUT)];
    limits
        .into_iter()
        .fold(builder, |builder, (name, limit)| with(builder, key(name), format!("{} seconds", limit.as_secs())))
}

fn parse(key: &str) -> Result<Path, BucketError> {
    Path::parse(key).map_err(|_| BucketError::Name(key.to_owned()))
}

/// An error that a caller understands: the object is there, or is not.
fn is_expected(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. })
}

/// Makes a request again if its connection broke. All requests of this module but the creation may be made twice.
async fn again<T, F: Future<Output = Result<T, Error>>>(request: impl Fn() -> F) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match request().await {
            Err(error) if was_cut(&error) && tries < TRIES => {
                tokio::time::sleep(pause(tries)).await;
                tries += 1;
            }
            result => return result,
        }
    }
}

/// The time before a request is made again.
const fn pause(tries: u32) -> Duration {
    Duration::from_millis(100 * 2_u64.pow(tries))
}

/// The content type of an object, so that a browser shows a published report.
fn attributes(key: &str) -> Attributes {
    let content_type = match key.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json" | "sarif") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("xml") => "application/xml",
        Some("md" | "txt") => "text/plain; charset=utf-8",
        Some("zip") => "application/zip",
        _ => return Attributes::new(),
    };
    Attributes::from_iter([(Attribute::ContentType, content_type)])
}

/// Returns why a request failed: the status and the code of the server's answer, or the error of the connection.
fn reason(error: &Error) -> String {
    const STATUS: &str = "status code: ";

    let text = error.to_string();
    let code = between(&text, "<Code>", "</Code>").filter(|code| code.chars().all(|c| c.is_ascii_alphanumeric()));
    if let Some((_, after)) = text.split_once(STATUS) {
        let status: String = after.chars().take_while(|c| *c != ':').take(40).collect();
        return match code {
            Some(code) => format!("status {} ({code})", status.trim()),
            None => format!("status {}", status.trim()),
        };
    }
    if matches!(error, Error::NotFound { .. }) {
        return "it does not exist".to_owned();
    }
    if let Some(http) = http_error(error) {
        // The address of a request can be signed, and only the outer errors name it.
        let mut innermost: &dyn StdError = http;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let kind = match http.kind() {
            HttpErrorKind::Connect => "cannot connect",
            HttpErrorKind::Timeout => "no answer in time",
            _ => "the connection failed",
        };
        return format!("{kind}: {innermost}");
    }
    // Set-up of the store: a missing variable, or a file of credentials that cannot be read.
    let mut innermost: &dyn StdError = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string().chars().take(200).collect()
}

/// Whether a request is worth another try: the connection broke in the middle. The requests that the store itself repeats, such
/// as those with a status of 500 and above, have been repeated.
fn was_cut(error: &Error) -> bool {
    http_error(error).is_some_and(|error| error.kind() != HttpErrorKind::Connect)
}

fn http_error(error: &Error) -> Option<&HttpError> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    Some(text.split_once(start)?.1.split_once(end)?.0)
}
