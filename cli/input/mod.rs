//! Documents from files, folders, globs and standard input.
//!
//! [`Sources::open`] finds the files. Its [`chunks`](Sources::chunks) are cut cheaply by reading threads;
//! [`Sources::parse`] turns a chunk into documents in any thread; [`run`] does both at once and keeps the
//! order. What is no document is a [`BadRecord`], which names its place; the caller decides whether to
//! go on.

mod args;
mod arrow_json;
mod chunk;
mod compression;
mod csv;
mod format;
mod html;
mod http;
mod json;
mod jsonl;
mod lines;
mod one;
mod original;
mod parquet;
mod pipeline;
mod record;
mod source;
mod tar;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod warc;

pub(crate) use args::{InputArgs, OnError, ReadArgs};
pub(crate) use chunk::{Chunk, Record};
pub(crate) use compression::decompressed;
pub(crate) use format::{Format, of_name};
pub(crate) use jsonl::value_at;
pub(crate) use original::Original;
pub(crate) use pipeline::run;
pub(crate) use record::{BadRecord, InputError};
pub(crate) use source::{Sources, fingerprint_of};

/// Whether a file's name tells that documents are in it.
pub(crate) fn is_document(path: &std::path::Path) -> bool {
    format::of_name(&path.to_string_lossy()).0.is_some()
}
