//! lookalike turns documents into signatures and finds, exactly and fast, those whose signatures are a few bits apart.

mod container;
pub mod document;
mod error;
pub mod features;
pub mod index;
mod mapped;
pub mod recipe;
pub mod sigfile;
pub mod signature;

pub use document::{Document, Media};
pub use error::{Error, Result};
pub use recipe::{Recipe, Signer};
pub use sigfile::SignatureFile;
pub use signature::{Signature, Signatures};
