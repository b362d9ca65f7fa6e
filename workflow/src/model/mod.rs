//! Requests to a model with an OpenAI-compatible chat endpoint.
