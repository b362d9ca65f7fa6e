//! Builds JSON Pointers (RFC 6901).

use std::borrow::Cow;

/// Escapes a key for use as a segment of a pointer.
///
/// ```
/// assert_eq!(counterproof_artifact::pointer::escape("a/b~c"), "a~1b~0c");
/// ```
pub fn escape(key: &str) -> Cow<'_, str> {
    // `~` is escaped first: the tilde of `~1` must not be escaped again.
    if key.contains(['~', '/']) { Cow::Owned(key.replace('~', "~0").replace('/', "~1")) } else { Cow::Borrowed(key) }
}

/// Appends a key of an object or an index of an array to a pointer.
pub fn push(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&escape(key));
}

/// Returns the pointer to a key of the value that `pointer` names.
///
/// ```
/// assert_eq!(counterproof_artifact::pointer::child("/cases", "a/b"), "/cases/a~1b");
/// ```
pub fn child(pointer: &str, key: &str) -> String {
    let mut child = String::with_capacity(pointer.len() + key.len() + 1);
    child.push_str(pointer);
    push(&mut child, key);
    child
}
