//! lookalike turns documents into signatures and finds, exactly and fast, those whose signatures are a few bits apart.
//!
//! ```
//! use lookalike::{Recipe, Signer, Signatures, index::{Answers, Index, Scan}, recipe::Scratch};
//!
//! let signer = Signer::new(Recipe::named("text").unwrap(), None)?;
//! let mut scratch = Scratch::default();
//! let mut sign = |text| signer.sign_text(text, &mut scratch).expect("enough words").signature;
//!
//! let mut stored = Signatures::new(256)?;
//! stored.push(&sign("The harbour reopened on Monday after a storm had closed it for two days."))?;
//! stored.push(&sign("Potatoes are planted in spring, as soon as the ground can be worked."))?;
//!
//! let query = Signatures::from(sign("The harbour reopened on Monday after the storm had closed it for two days."));
//! let mut found = Answers::new();
//! Scan::new(&stored)?.within((&query).into(), 80, &mut found)?;
//! assert_eq!(found.of(0)[0].row, 0);
//! assert_eq!(found.of(0).len(), 1);
//! # Ok::<(), lookalike::Error>(())
//! ```
//!
//! A [`Document`] has [`features`]; a [`Recipe`] says which and how they become a [`Signature`]; [`Signatures`] are
//! kept in a [`SignatureFile`] and asked through an [`index`]: the [`Scan`](index::Scan), which needs nothing, or
//! [`Tables`](index::Tables), of which a [`plan`] chooses the best:
//!
//! ```
//! # use lookalike::{Signatures, index::{Answers, Build, Index, Method, Promise, Tables}};
//! let stored = Signatures::from_words(64, vec![0b1011, 0xffff_0000, 0b1000])?;
//! let index = Tables::build(&stored, Method::Multi { slices: 2, parts: 3 }, Build::default())?;
//! let queries = Signatures::from_words(64, vec![0b1111])?;
//! let mut found = Answers::new();
//! assert_eq!(index.within((&queries).into(), 1, &mut found)?, Promise::Exact);
//! assert_eq!((found.of(0).len(), found.of(0)[0].row, found.of(0)[0].distance), (1, 0, 1));
//! # Ok::<(), lookalike::Error>(())
//! ```
//!
//! A room uses only the rooms above it: [`document`], [`features`], [`hamming`], [`signature`], [`recipe`], [`sigfile`],
//! [`table`], [`probe`], [`index`], [`plan`], [`search`], [`join`], [`verify`], [`diff`], [`cluster`], `collection`, [`dedup`], [`quality`].

pub mod cluster;
#[cfg(feature = "collection")]
pub mod collection;
mod container;
pub mod dedup;
pub mod diff;
pub mod document;
mod error;
pub mod features;
pub mod hamming;
pub mod index;
pub mod join;
mod mapped;
pub mod partial;
pub mod plan;
pub mod probe;
pub mod quality;
pub mod recipe;
pub mod search;
pub mod sigfile;
pub mod signature;
pub mod table;
pub mod verify;

pub use document::{Document, Media};
pub use error::{Error, Result};
pub use recipe::{Recipe, Signer};
pub use sigfile::SignatureFile;
pub use signature::{Signature, Signatures};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
