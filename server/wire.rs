//! What is said over the wire: documents and queries in, hits out.

use lookalike::{
    Document as EngineDocument, Media as EngineMedia, Signature, Signer,
    collection::{Entry, Record},
    recipe::{Scratch, Signed},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

use crate::{app::App, error::Problem, parse::compact_object};

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Markup {
    #[default]
    Plain,
    /// Tags are dropped.
    Html,
}

/// A document to be added: a text, or the signature of one.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// The name by which it is known.
    #[schema(min_length = 1, example = "https://harbour.example/1")]
    pub(crate) id: String,
    /// The text. The recipe of the collection signs it.
    pub(crate) text: Option<String>,
    /// What the text is written in.
    #[serde(default)]
    pub(crate) media: Markup,
    /// The signature, in place of a text: hexadecimal digits.
    #[schema(example = "00000000000000ff")]
    pub(crate) signature: Option<String>,
    /// Where it comes from, and whatever else is to come back with hits.
    #[schema(value_type = Option<Object>)]
    pub(crate) payload: Option<Box<RawValue>>,
}

/// What is asked about: a text, a signature, or a document of the collection.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// A text. The recipe of the collection signs it.
    pub(crate) text: Option<String>,
    /// What the text is written in.
    #[serde(default)]
    pub(crate) media: Markup,
    /// A signature: hexadecimal digits.
    #[schema(example = "00000000000000ff")]
    pub(crate) signature: Option<String>,
    /// The id of a document of the collection.
    pub(crate) id: Option<String>,
    /// What a text or signature comes with, for `exclude_same`.
    #[schema(value_type = Option<Object>)]
    pub(crate) payload: Option<Box<RawValue>>,
}

/// A document near a query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hit<'a> {
    /// The name by which it is known.
    pub(crate) id: &'a str,
    /// How many bits differ.
    pub(crate) distance: u32,
    /// What the distance stands for.
    pub(crate) similarity: f64,
    /// What it came with.
    #[schema(value_type = Option<Object>)]
    pub(crate) payload: Option<&'a RawValue>,
    /// Whether the answer has every document that it should.
    pub(crate) exact: bool,
    /// What found it.
    pub(crate) index: &'a str,
    /// How long the whole call took.
    pub(crate) took_ms: f64,
}

/// What a document or query becomes.
pub(crate) enum Prepared {
    Signed(Box<Entry>),
    /// The text has too few features for a signature.
    Unsigned(String),
}

impl Prepared {
    /// The entries among them.
    pub(crate) fn take_entries(prepared: &mut [Prepared]) -> Vec<Entry> {
        let entries = prepared.iter_mut().filter_map(|prepared| {
            let Prepared::Signed(entry) = prepared else { return None };
            let taken = Entry::new(entry.id.clone(), entry.signature.clone());
            Some(std::mem::replace(entry.as_mut(), taken))
        });
        entries.collect()
    }
}

impl Document {
    /// What is to be kept of it.
    pub(crate) fn prepare(self, app: &App, scratch: &mut Scratch) -> Result<Prepared, Problem> {
        check_id(&self.id)?;
        let payload = self.payload.map(|payload| compact_object(payload.get())).transpose()?;
        let (signature, margins, text) = match (self.text, self.signature) {
            (Some(text), None) => {
                let document = document(self.id.clone(), text, self.media);
                let text = app.text_of(&document)?;
                let Some(signed) = app.signer()?.sign_text(&text, scratch) else {
                    return Ok(Prepared::Unsigned(self.id));
                };
                let keeps = app.collection.about().keeps;
                let text = keeps.texts.then(|| text.into_owned());
                (signed.signature, signed.margins.filter(|_| keeps.margins), text)
            }
            (None, Some(signature)) => (app.parse_signature(&signature)?, None, None),
            _ => {
                return Err(Problem::field(
                    "text",
                    "a document has either a `text` or a `signature`",
                ));
            }
        };
        Ok(Prepared::Signed(Box::new(Entry { id: self.id, signature, margins, payload, text })))
    }
}

/// The longest id, in bytes.
const LONGEST_ID: usize = 4096;

fn check_id(id: &str) -> Result<(), Problem> {
    match id {
        "" => Err(Problem::field("id", "an id has at least one character")),
        _ if id.len() > LONGEST_ID => {
            Err(Problem::field("id", format!("an id has at most {LONGEST_ID} bytes")))
        }
        // Databases know no such text.
        _ if id.contains('\0') => Err(Problem::field("id", "an id has no NUL character")),
        _ => Ok(()),
    }
}

fn document(id: String, text: String, markup: Markup) -> EngineDocument {
    let media = match markup {
        Markup::Plain => EngineMedia::Plain,
        Markup::Html => EngineMedia::Html,
    };
    EngineDocument { media, ..EngineDocument::new(id, text) }
}

impl App {
    /// The text of a document as it is signed.
    fn text_of<'a>(
        &self,
        document: &'a EngineDocument,
    ) -> Result<std::borrow::Cow<'a, str>, Problem> {
        let most = self.limits.text_bytes;
        if document.text.len() > most {
            let problem = Problem::too_large(format!("a text has at most {most} bytes"));
            return Err(problem.about("text"));
        }
        Ok(Signer::text_of(document, self.signer()?.recipe().html))
    }

    /// A signature of the right width.
    pub(crate) fn parse_signature(&self, hex: &str) -> Result<Signature, Problem> {
        let signature = Signature::from_hex(hex)?;
        let (wanted, given) = (self.bits(), signature.bits());
        match given == wanted {
            true => Ok(signature),
            false => Err(Problem::field(
                "signature",
                format!(
                    "a signature has {wanted} bits here, {} hexadecimal digits; this one has {given} bits",
                    wanted / 4
                ),
            )),
        }
    }
}

/// A query with its signature.
pub(crate) struct Asked {
    /// None if the text has too few features.
    pub(crate) signed: Option<Signed>,
    /// The id of the document that asks, if it is one of the collection.
    pub(crate) id: Option<String>,
    pub(crate) payload: Value,
    /// The text, if it is known.
    pub(crate) text: Option<String>,
}

impl Query {
    /// Signs a text or reads a signature; the documents of the collection are for [`Asked::of_record`].
    pub(crate) fn sign(self, app: &App, scratch: &mut Scratch) -> Result<Asked, Problem> {
        let payload = match self.payload {
            Some(payload) => parse_payload(&payload)?,
            None => Value::Null,
        };
        match (self.text, self.signature, self.id) {
            (Some(text), None, None) => {
                let document = document(String::new(), text, self.media);
                let text = app.text_of(&document)?.into_owned();
                let signed = app.signer()?.sign_text(&text, scratch);
                Ok(Asked { signed, id: None, payload, text: Some(text) })
            }
            (None, Some(hex), None) => {
                let signature = app.parse_signature(&hex)?;
                let signed = Some(Signed { signature, margins: None, passage: None });
                Ok(Asked { signed, id: None, payload, text: None })
            }
            _ => {
                Err(Problem::field("text", "a query has either a `text`, a `signature` or an `id`"))
            }
        }
    }

    /// The id, if it asks by nothing else.
    pub(crate) fn only_id(&self) -> Option<&str> {
        let others = self.text.is_some() || self.signature.is_some();
        self.id.as_deref().filter(|_| !others)
    }
}

fn parse_payload(payload: &RawValue) -> Result<Value, Problem> {
    let object = compact_object(payload.get())?;
    serde_json::from_str(&object).map_err(|error| Problem::field("payload", error.to_string()))
}

impl Asked {
    /// A document of the collection asks.
    pub(crate) fn of_record(record: Record) -> Self {
        let payload = record.payload_value();
        let Record { id, signature, margins, text, .. } = record;
        let signed = Some(Signed { signature, margins, passage: None });
        Asked { signed, id: Some(id), payload, text }
    }
}
