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
            && let Ok(number) = number.parse::<usize>()
            && Path::new(file).is_file()
        {
            return self.numbered_document(file, name, number);
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

    /// The document whose id is its place `name`, else the `number`th.
    fn numbered_document(&self, file: &str, name: &str, number: usize) -> anyhow::Result<Document> {
        let mut nth = None;
        let mut count = 0;
        for document in self.documents(file)? {
            count += 1;
            match document {
                Ok(document) if document.id == name => return Ok(document),
                document if count == number => nth = Some(document),
                _ => {}
            }
        }
        let problem = || format!("{file} has {count} documents, not {number}");
        nth.unwrap_or_else(|| Err(anyhow::anyhow!(problem())))
    }

    fn documents(
        &self,
        input: &str,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Document>> + use<>> {
        let sources = Sources::open(&[input.to_owned()], self, false)?;
        let chunks = sources.chunks(1);
        let records = chunks.flat_map(move |chunk| sources.parse(chunk));
        Ok(records.map(|record| record.map_err(Into::into)))
    }
}
