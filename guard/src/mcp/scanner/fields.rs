//! The fields of a message that decide what it is.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Arguments,
    InputResponses,
    RequestState,
    Meta,
    IsError,
    ResultType,
    Code,
    Message,
}

/// All fields: the section, the key, the field.
pub(super) const FIELDS: [(Option<Field>, &str, Field); 15] = [
    (None, "id", Field::Id),
    (None, "method", Field::Method),
    (None, "params", Field::Params),
    (None, "result", Field::Result),
    (None, "error", Field::Error),
    (Some(Field::Params), "name", Field::Name),
    (Some(Field::Params), "arguments", Field::Arguments),
    (Some(Field::Params), "inputResponses", Field::InputResponses),
    (Some(Field::Params), "requestState", Field::RequestState),
    (Some(Field::Params), "_meta", Field::Meta),
    (Some(Field::Result), "isError", Field::IsError),
    (Some(Field::Result), "resultType", Field::ResultType),
    (Some(Field::Result), "requestState", Field::RequestState),
    (Some(Field::Error), "code", Field::Code),
    (Some(Field::Error), "message", Field::Message),
];

impl Field {
    /// Small fields are read as a whole.
    pub(super) const fn is_captured(self) -> bool {
        !matches!(self, Field::Params | Field::Result | Field::Error | Field::Arguments | Field::InputResponses)
    }

    pub(super) const fn is_hashed(self) -> bool {
        matches!(self, Field::Result | Field::Error | Field::Arguments)
    }

    pub(super) const fn is_section(self) -> bool {
        matches!(self, Field::Params | Field::Result | Field::Error)
    }
}
