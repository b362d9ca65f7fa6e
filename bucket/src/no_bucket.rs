//! A program without the clients of the stores: no bucket can be opened, so none has a request to make.

use crate::failure::BucketError;
use crate::url::BucketUrl;

/// A bucket, of which there is none.
#[derive(Debug)]
pub enum Bucket {}

#[expect(clippy::unused_self, reason = "the same functions as with the clients of the stores")]
impl Bucket {
    pub fn open(url: &BucketUrl) -> Result<Self, BucketError> {
        Err(BucketError::NotBuilt(url.root().to_string()))
    }

    pub const fn url(&self) -> &BucketUrl {
        match *self {}
    }

    pub(crate) fn address(&self, _: &str) -> String {
        match *self {}
    }

    pub fn get(&self, _: &str) -> Result<Option<Vec<u8>>, BucketError> {
        match *self {}
    }

    pub fn exists(&self, _: &str) -> Result<bool, BucketError> {
        match *self {}
    }

    pub fn put(&self, _: &str, _: Vec<u8>) -> Result<(), BucketError> {
        match *self {}
    }

    pub fn create(&self, _: &str, _: &[u8]) -> Result<bool, BucketError> {
        match *self {}
    }

    pub fn delete(&self, _: &str) -> Result<(), BucketError> {
        match *self {}
    }

    pub fn list(&self, _: &str) -> Result<Vec<String>, BucketError> {
        match *self {}
    }

    pub fn folders(&self, _: &str) -> Result<Vec<String>, BucketError> {
        match *self {}
    }

    pub(crate) fn for_each(
        _: Vec<String>,
        _: impl Fn(&str) -> Result<(), BucketError> + Sync,
    ) -> Result<(), BucketError> {
        Ok(())
    }
}
