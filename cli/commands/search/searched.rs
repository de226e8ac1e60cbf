//! What is searched, a file of signatures or a collection: what both have in common.

use std::{borrow::Cow, ops::Range, path::Path};

use clap::Args;
use lookalike::{
    Recipe, SignatureFile, Signatures, Signer,
    collection::{Filter, Record},
    index::{self, Promise},
    plan,
    recipe::Signed,
};
use serde_json::Value;

/// Finds what is near queries. What was found is there until the next queries are asked.
pub(super) trait Searched {
    /// The width of the signatures.
    fn bits(&self) -> u32;

    /// How many there are.
    fn len(&self) -> usize;

    /// How the signatures were made, if it is known.
    fn recipe(&self) -> Option<&Recipe>;

    /// What signs texts as these were signed; `terms` is the file with the statistics that it may need.
    fn signer(&self, terms: Option<&Path>) -> anyhow::Result<Signer>;

    /// A stored document as a query, or several if it was cut into passages.
    fn stored(&self, id: &str) -> anyhow::Result<Queries>;

    /// Asks, and says what the answers are worth.
    fn ask(&mut self, queries: &Queries) -> anyhow::Result<Promise>;

    /// The hits of a query among those that were asked, nearest first.
    fn hits<'s>(
        &'s self,
        queries: &'s Queries,
        query: usize,
    ) -> Box<dyn Iterator<Item = Hit<'s>> + 's>;

    /// What there is to know of the index.
    fn about(&self) -> &About;

    /// The signatures as the planner looks at them, if they are in a file.
    fn file(&self) -> Option<&SignatureFile>;
}

/// What there is to know of the index that is asked.
pub(super) struct About {
    /// What is searched is made of these.
    pub(super) thing: &'static str,
    /// What scripts are told about it, if anything.
    pub(super) name: Option<String>,
    pub(super) batch: usize,
    pub(super) planned: Option<plan::Choice>,
    pub(super) was_built: bool,
    pub(super) to_find_more: &'static str,
    pub(super) lines: Vec<(&'static str, String)>,
}

/// A document near a query.
pub(super) struct Hit<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) distance: u32,
    pub(super) passage: Option<Range<u64>>,
    pub(super) payload: Option<Cow<'a, str>>,
}

/// Flags that say which documents are not to be among the hits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Conditions")]
pub(super) struct ConditionArgs {
    /// Only documents whose fields are so, as `lang = "en" and year >= 2020`; also in (...), starts with, exists, or, not
    #[arg(long, value_name = "EXPR")]
    pub(super) filter: Option<Filter>,

    /// Not the documents that have the query's own id
    #[arg(long, conflicts_with_all = ["text", "signature"])]
    pub(super) exclude_self: bool,

    /// Not the documents that have the query's value in this field, as `source`
    #[arg(long, value_name = "FIELD", num_args = 1, conflicts_with_all = ["text", "signature"])]
    pub(super) exclude_same: Vec<String>,
}

impl ConditionArgs {
    /// Whether payloads have to be looked at.
    pub(super) fn ask_for_payloads(&self) -> bool {
        self.filter.is_some() || !self.exclude_same.is_empty()
    }
}

/// Queries with the names that the answers call them by.
pub(super) struct Queries {
    pub(super) signatures: Signatures,
    /// Those of all queries, or of none.
    margins: Vec<u8>,
    pub(super) names: Vec<QueryName>,
}

/// What a query is called: its document, and the passage of it if the recipe cuts documents.
#[derive(Clone)]
pub(super) struct QueryName {
    pub(super) id: String,
    pub(super) passage: Option<Range<u64>>,
    /// The other fields of the document, if anybody asks for them; null if there are none.
    pub(super) payload: Value,
}

impl QueryName {
    /// A query without a document.
    pub(super) fn number(number: usize) -> Self {
        QueryName { id: number.to_string(), passage: None, payload: Value::Null }
    }
}

impl Queries {
    pub(super) fn new(bits: u32) -> lookalike::Result<Self> {
        let signatures = Signatures::new(bits)?;
        Ok(Queries { signatures, margins: Vec::new(), names: Vec::new() })
    }

    pub(super) fn push(
        &mut self,
        id: &str,
        payload: &Value,
        signed: &Signed,
    ) -> lookalike::Result<()> {
        let passage = signed.passage.clone().map(|range| range.start as u64..range.end as u64);
        self.names.push(QueryName { id: id.to_owned(), passage, payload: payload.clone() });
        self.margins.extend(signed.margins.iter().flatten());
        self.signatures.push(&signed.signature)
    }

    pub(super) fn push_row(&mut self, file: &SignatureFile, row: usize) -> lookalike::Result<()> {
        self.names.push(QueryName {
            id: file.id(row).into_owned(),
            passage: file.passage(row),
            payload: payload_of(file, row),
        });
        self.margins.extend(file.margins(row).into_iter().flatten());
        self.signatures.push_row_of(file.signatures(), row)
    }

    pub(super) fn push_record(&mut self, record: &Record) -> lookalike::Result<()> {
        let payload = record.payload_value();
        self.names.push(QueryName { id: record.id.clone(), passage: None, payload });
        self.margins.extend(record.margins.iter().flatten());
        self.signatures.push(&record.signature)
    }

    pub(super) fn as_asked(&self) -> lookalike::Result<index::Queries<'_>> {
        match self.margins.is_empty() {
            true => Ok((&self.signatures).into()),
            false => index::Queries::with_margins(&self.signatures, &self.margins),
        }
    }
}

/// The other fields of a row's document; null if they were not kept.
pub(super) fn payload_of(file: &SignatureFile, row: usize) -> Value {
    let payload = file.payload(row);
    payload.and_then(|payload| serde_json::from_str(&payload).ok()).unwrap_or_default()
}
