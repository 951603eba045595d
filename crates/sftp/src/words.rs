//! The C library's words for an error.

use std::io;

/// An error as the C library says it, without Rust's number.
#[must_use]
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
