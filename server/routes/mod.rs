//! What can be asked for, a file each: what it takes, what it answers, and how.

pub(crate) mod clusters;
pub(crate) mod compare;
pub(crate) mod documents;
pub(crate) mod health;
pub(crate) mod plan;
pub(crate) mod search;
pub(crate) mod seen;
pub(crate) mod stats;
