//! lookalike turns documents into signatures and finds, exactly and fast, those whose signatures are a few bits apart.

pub mod document;
mod error;
pub mod index;
mod mapped;
pub mod signature;

pub use document::{Document, Media};
pub use error::{Error, Result};
pub use signature::{Signature, Signatures};
