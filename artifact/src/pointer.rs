//! JSON Pointers (RFC 6901), as they are built: what leads from a value to one below it.

use std::borrow::Cow;

/// A key as a segment of a pointer.
///
/// ```
/// assert_eq!(counterproof_artifact::pointer::escape("a/b~c"), "a~1b~0c");
/// ```
pub fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { Cow::Owned(key.replace('~', "~0").replace('/', "~1")) } else { Cow::Borrowed(key) }
}

/// Leads a pointer on to a key of its object, or to an index of its array.
pub fn push(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&escape(key));
}

/// The pointer to a key of what `pointer` names.
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
