//! The description of an HTTP endpoint of any shape: how its requests are built, and where its answers have their parts.
//!
//! `docs/http-agents.md` describes the keys. The values are validated when the configuration is read.

use std::collections::BTreeMap;
use std::env::VarError;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::mapping_path::{AnswerPath, ElementPath};
use super::stream::StreamFormat;
use super::template::BodyTemplate;
use crate::secret::{Header, HeaderError, Secret};

/// The requests to an endpoint, and the parts of its answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpMapping {
    /// The method of requests.
    pub method: HttpMethod,
    /// The path below the base URL. `None` for the base URL itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<RequestPath>,
    /// Headers in addition to those of the settings. A value `env:NAME` is read from the environment.
    // Not serialised: the values are secrets.
    #[serde(skip_serializing)]
    pub headers: BTreeMap<String, Secret>,
    /// The body. `None` sends the message of the user as `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyTemplate>,
    /// The format of the answer. `None` takes it from the content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamFormat>,
    /// The text that the agent answers with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<AnswerPath>,
    /// The tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsMapping>,
    /// The proposed actions. Without them, every call is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionsMapping>,
    /// The documents that the agent retrieved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<DocumentsMapping>,
    /// The tokens and the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageMapping>,
    /// The error of an answer with a successful status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerPath>,
}

/// Where the tool calls of an answer are. All paths but `path` start at a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallsMapping {
    /// The lists of calls.
    pub path: AnswerPath,
    /// The name of the tool.
    pub name: ElementPath,
    /// The arguments: an object, or a text that contains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ElementPath>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ElementPath>,
    /// The id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ElementPath>,
    /// The error. An absent error, null, false and an empty text mean that there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ElementPath>,
}

/// Where the proposed actions of an answer are. `name` and `arguments` start at an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionsMapping {
    /// The lists of actions.
    pub path: AnswerPath,
    /// The name of the tool.
    pub name: ElementPath,
    /// The parameters: an object, or a text that contains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ElementPath>,
}

/// Where the retrieved documents of an answer are. `id` starts at a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsMapping {
    /// The lists of documents, best first.
    pub path: AnswerPath,
    /// The id. Without it, each element is an id itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ElementPath>,
}

/// Where the usage of an answer is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageMapping {
    /// The tokens that the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<AnswerPath>,
    /// The tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<AnswerPath>,
    /// The input tokens that came from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<AnswerPath>,
    /// The cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<AnswerPath>,
}

impl HttpMapping {
    /// Returns the headers, with the values of environment variables looked up with `environment`.
    pub fn headers(
        &self,
        environment: impl Fn(&str) -> Result<String, VarError> + Copy,
    ) -> Result<Vec<Header>, HeaderError> {
        self.headers.iter().map(|(name, value)| Header::parse(&Header::text(name, value), environment)).collect()
    }

    /// Returns the keys that read the answer and are set. The text protocol reads no part of an answer.
    pub fn answer_keys(&self) -> Vec<&'static str> {
        let keys = [
            ("stream", self.stream.is_some()),
            ("output", self.output.is_some()),
            ("calls", self.calls.is_some()),
            ("actions", self.actions.is_some()),
            ("documents", self.documents.is_some()),
            ("usage", self.usage.is_some()),
            ("error", self.error.is_some()),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }
}

/// The method of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpMethod(Method);

/// A text that is not a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method `{0}`; expected GET, POST, PUT, PATCH or DELETE")]
pub struct UnknownMethod(String);

impl HttpMethod {
    pub(super) const fn method(&self) -> &Method {
        &self.0
    }
}

impl Default for HttpMethod {
    fn default() -> Self {
        Self(Method::POST)
    }
}

impl TryFrom<String> for HttpMethod {
    type Error = UnknownMethod;

    fn try_from(text: String) -> Result<Self, UnknownMethod> {
        let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        known
            .into_iter()
            .find(|method| method.as_str().eq_ignore_ascii_case(&text))
            .map(Self)
            .ok_or(UnknownMethod(text))
    }
}

impl From<HttpMethod> for String {
    fn from(method: HttpMethod) -> Self {
        method.0.to_string()
    }
}

/// The path of requests below the base URL, without a slash at its start. It may have a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestPath(String);

/// A path that names a host or contains a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestPathError {
    /// The path is a URL.
    #[error("`path` is a URL; expected the part after `base_url`, such as `/chat`")]
    Url,
    /// The path contains a placeholder.
    #[error("`path` contains a placeholder; only `body` can have placeholders")]
    Placeholder,
}

impl RequestPath {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RequestPath {
    type Error = RequestPathError;

    fn try_from(text: String) -> Result<Self, RequestPathError> {
        // The message does not quote the text, because a URL may contain credentials.
        if text.contains("://") || text.starts_with("//") {
            return Err(RequestPathError::Url);
        }
        if text.contains("{{") {
            return Err(RequestPathError::Placeholder);
        }
        Ok(Self(text.trim_start_matches('/').to_owned()))
    }
}

impl From<RequestPath> for String {
    fn from(path: RequestPath) -> Self {
        format!("/{}", path.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(mapping: Value) -> Result<HttpMapping, String> {
        serde_json::from_value(mapping).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_validated_with_the_configuration() {
        let error = |mapping: Value| parse(mapping).unwrap_err();
        assert!(error(json!({"outputs": "/x"})).contains("unknown field `outputs`"));
        assert!(error(json!({"output": "reply"})).contains("`reply` is neither a JSON Pointer"));
        assert!(error(json!({"method": "FETCH"})).contains("unknown method `FETCH`"));
        assert!(error(json!({"path": "https://user:s3cret@h/"})).contains("`path` is a URL"));
        assert!(error(json!({"body": "{"})).contains("line 1 of the body"));
        assert!(error(json!({"stream": "xml"})).contains("unknown variant `xml`"));
        assert!(error(json!({"calls": {"path": "/calls"}})).contains("missing field `name`"));
    }

    #[test]
    fn header_values_are_looked_up_and_hidden() {
        let mapping = parse(json!({"headers": {"Authorization": "env:KEY", "X-Key": "s3cret"}})).unwrap();
        let headers = mapping.headers(|name| Ok(format!("value of {name}"))).unwrap();
        assert_eq!(headers[0].value().expose(), "value of KEY");
        assert_eq!(headers[1].value().expose(), "s3cret");
        assert!(mapping.headers(|_| Err(VarError::NotPresent)).is_err());
        assert!(!format!("{mapping:?} {}", serde_json::to_string(&mapping).unwrap()).contains("s3cret"));
    }
}
