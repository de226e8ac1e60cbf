//! The flags about input that all commands share.

use clap::{Args, ValueEnum};

use super::format::Format;
use super::record::InputError;
use crate::size;

/// Given to each flag: a heading for all of them would go on behind them.
const HEADING: &str = "Input";

/// Where documents come from, and how they are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct InputArgs {
    /// Files, folders, globs, or `-` for standard input
    ///
    /// The format follows from the name: .jsonl, .json, .parquet, .csv, .tsv, .txt and other text and
    /// source code, .html, .warc, .wet, .tar; each also as .gz or .zst. Folders are walked in the
    /// order of their names, without hidden files and files of unknown suffix.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// How documents are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadArgs {
    /// Read every input in this format, whatever its name; standard input is JSON lines by default
    #[arg(long, help_heading = HEADING, value_name = "FORMAT")]
    pub(crate) input_format: Option<Format>,

    /// In text files, every line is a document; standard input is text then
    #[arg(long, help_heading = HEADING)]
    pub(crate) lines: bool,

    /// The field that holds the text; dots reach into nested fields, as in `page.body`
    #[arg(long, help_heading = HEADING, value_name = "FIELD", default_value = "text")]
    pub(crate) text_field: String,

    /// The field that holds the id; dots reach into nested fields, as in `metadata.id`
    ///
    /// Without it, documents are named by their field `id` if they have one, otherwise by file and
    /// line (row, record), as in `news.jsonl:17`.
    #[arg(long, help_heading = HEADING, value_name = "FIELD")]
    pub(crate) id_field: Option<String>,

    /// Documents are named by their place, whatever ids they have; a flag of some commands
    #[arg(skip)]
    pub(crate) by_place: bool,

    /// What to do about a record that cannot be read
    #[arg(long, help_heading = HEADING, value_name = "WHAT", value_enum, default_value_t = OnError::Stop)]
    pub(crate) on_error: OnError,

    /// The longest document (or line) to accept, in bytes; K, M and G are understood
    #[arg(long, help_heading = HEADING, value_name = "BYTES", default_value = "1G", value_parser = size::parse_bytes, hide_short_help = true)]
    pub(crate) max_document_bytes: u64,
}

/// What to do about a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// Stop at the first one
    Stop,
    /// Leave it out, go on, and tell how many there were
    Skip,
}

/// What readers need to know, from [`ReadArgs`] and from the command.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Overrides what names tell.
    pub(crate) format: Option<Format>,
    pub(crate) lines: bool,
    pub(crate) text_field: String,
    /// `None`: the field `id` if it is there.
    pub(crate) id_field: Option<String>,
    /// Documents are named by their place, whatever ids they have.
    pub(crate) by_place: bool,
    /// Whether the other fields of a document are wanted.
    pub(crate) payload: bool,
    /// If only some of them are: a reader may leave out the others.
    pub(crate) some_fields: Option<Vec<String>>,
    pub(crate) max_document_bytes: u64,
}

impl Options {
    pub(crate) fn new(args: &ReadArgs, payload: bool) -> Result<Self, InputError> {
        for (flag, field) in [
            ("--text-field", Some(args.text_field.as_str())),
            ("--id-field", args.id_field.as_deref()),
        ] {
            if field == Some("") {
                return Err(InputError::new(format!("`{flag}` names no field")));
            }
        }
        if args.id_field.as_deref() == Some(&args.text_field) {
            let problem = format!("`{}` cannot be both text and id", args.text_field);
            return Err(InputError::new(problem).hint("give --id-field another field"));
        }
        Ok(Options {
            format: args.input_format,
            lines: args.lines,
            text_field: args.text_field.clone(),
            id_field: args.id_field.clone(),
            by_place: args.by_place,
            payload,
            some_fields: None,
            max_document_bytes: args.max_document_bytes,
        })
    }

    /// The field in which to look for an id.
    pub(crate) fn id_path(&self) -> &str {
        match &self.id_field {
            // No field has this name.
            _ if self.by_place => "\0",
            Some(field) => field,
            None => "id",
        }
    }
}
