//! A document: an id, its text, and what else its source knows about it.

use serde_json::{Map, Value};

/// What a document's text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// Words as they are to be read.
    #[default]
    Plain,
    /// HTML: its text is extracted before anything else happens.
    Html,
}

/// One document, as a reader found it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The name by which users know it; `file:line` if the source gave none.
    pub id: String,
    /// The text, in UTF-8.
    pub text: String,
    /// What the text is written in.
    pub media: Media,
    /// The other fields of the source, in their order there.
    pub payload: Map<String, Value>,
}

impl Document {
    /// A plain-text document without payload.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Document { id: id.into(), text: text.into(), ..Document::default() }
    }
}
