//! The stages of a deduplication: documents are signed, what is kept is decided, the result is written.

pub(crate) mod add;
pub(crate) mod elsewhere;
pub(crate) mod estimate;
pub(crate) mod examples;
pub(crate) mod groups;
pub(crate) mod html;
pub(crate) mod ids;
pub(crate) mod listing;
pub(crate) mod parts;
pub(crate) mod report;
pub(crate) mod sign;
mod summary;
pub(crate) mod work;
pub(crate) mod write;
