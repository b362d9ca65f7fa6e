//! JSON Pointer → line and column.
