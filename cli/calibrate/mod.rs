//! Which recipe, width, radius and check suit some documents? All are tried on pairs of which the truth is known.
//!
//! `recipes` says what is tried, `corpus` holds the documents and what is true of them, `trial` has what each radius of a
//! recipe finds, `choose` takes the best of them and `report` shows it.

mod choose;
mod corpus;
mod recipes;
mod report;
mod trial;

pub(crate) use choose::{Candidate, Tried, choose};
pub(crate) use corpus::{Corpus, Part, Truth};
pub(crate) use recipes::{recipes, thesis};
pub(crate) use report::{figure, json_lines, page, text};
pub(crate) use trial::Trial;
