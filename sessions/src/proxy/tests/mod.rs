//! The proxy over real sockets, between a client that reads bytes and a server that sends them by a script.

mod answers;
mod faults;
mod kit;
mod requests;
