//! A single document, named by file, by place or by id.

use std::path::Path;

use lookalike::Document;

use super::{ReadArgs, Sources};
use crate::failure::hinted;

impl ReadArgs {
    /// The document that `name` stands for: a file with one document in it, or `FILE:N` for the one on line (row, record)
    /// N of a file with many.
    pub(crate) fn one_document(&self, name: &str) -> anyhow::Result<Document> {
        if !Path::new(name).exists()
            && let Some((file, number)) = name.rsplit_once(':')
            && number.parse::<u64>().is_ok()
            && Path::new(file).is_file()
        {
            return self.numbered_document(file, name);
        }
        let mut documents = self.documents(name)?;
        match (documents.next(), documents.next()) {
            (Some(document), None) => document,
            (Some(_), Some(_)) => {
                let problem = format!("{name} holds more than one document");
                Err(hinted(problem, format!("name one of them, as in `{name}:1`")))
            }
            (None, _) => anyhow::bail!("{name} holds no document"),
        }
    }

    /// The document with this id in the input.
    pub(crate) fn document_of(&self, input: &str, id: &str) -> anyhow::Result<Document> {
        let mut example = String::new();
        for document in self.documents(input)? {
            let document = document?;
            if document.id == id {
                return Ok(document);
            }
            example = document.id;
        }
        Err(hinted(
            format!("{input} has no document `{id}`"),
            format!("ids look like `{example}` there"),
        ))
    }

    /// The document on line (row, record) `number` of a file, as `name` says.
    fn numbered_document(&self, file: &str, name: &str) -> anyhow::Result<Document> {
        let sources = Sources::open_by_place(&[file.to_owned()], self)?;
        let mut example = String::new();
        for document in documents_of(sources) {
            match document {
                Ok(document) if document.id == name => return Ok(document),
                Ok(document) => example = document.id,
                // Of another place; the one asked for may still come.
                Err(_) => {}
            }
        }
        let problem = format!("{file} has no document at {name}");
        Err(hinted(
            problem,
            format!("its last one is {example}; lines (rows, records) count from 1"),
        ))
    }

    fn documents(
        &self,
        input: &str,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Document>> + use<>> {
        Ok(documents_of(Sources::open(&[input.to_owned()], self, true)?))
    }
}

fn documents_of(sources: Sources) -> impl Iterator<Item = anyhow::Result<Document>> {
    let records = sources.chunks(1).flat_map(move |chunk| sources.parse(chunk));
    records.map(|record| record.map_err(Into::into))
}
