//! A file of signatures that is searched, with an index over its rows.

use std::{collections::HashMap, path::Path};

use lookalike::{
    Recipe, SignatureFile, Signer,
    index::{Answers, Neighbor, Promise},
    search::{Question, Searcher},
};

use super::{
    Search,
    ready::Ready,
    searched::{About, ConditionArgs, Hit, Queries, QueryName, Searched, payload_of},
};
use crate::{commands::recipe::signer, failure::hinted, input::value_at, opened::Opened};

/// The rows of a signature file, and what finds those near a query.
pub(super) struct Rows<'a> {
    file: &'a SignatureFile,
    path: &'a Path,
    searcher: Searcher<'a>,
    about: About,
    takes_margins: bool,
    question: Question,
    conditions: &'a ConditionArgs,
    /// Whether queries are documents that are not to find themselves.
    not_self: bool,
    found: Answers,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        search: &'a Search,
        opened: &'a Opened,
        ready: Ready<'a>,
    ) -> anyhow::Result<Self> {
        let Ready { index, takes_margins, batch, planned, was_built, to_find_more, about } = ready;
        let (name, thing) = (None, "signature");
        let rows = Rows {
            file: &opened.file,
            path: &opened.path,
            searcher: Searcher::with_index(&opened.file, index),
            about: About { thing, name, batch, planned, was_built, to_find_more, lines: about },
            takes_margins,
            question: search.question(),
            conditions: &search.conditions,
            not_self: search.not_self(),
            found: Answers::new(),
        };
        rows.check_conditions()?;
        Ok(rows)
    }

    /// Refuses conditions that rows cannot meet.
    fn check_conditions(&self) -> anyhow::Result<()> {
        if !self.conditions.ask_for_payloads() {
            return Ok(());
        }
        let path = self.path.display();
        if !self.file.columns().payloads {
            return Err(hinted(
                format!("{path} has no fields that `--filter` or `--exclude-same` could look at"),
                "sign with `--payload` to keep them, or search a collection, which has them",
            ));
        }
        match self.question {
            // How many of the nearest would have to be looked at, nobody knows.
            Question::Nearest(_) => Err(hinted(
                format!("{path} is no collection, so conditions need a `--radius`"),
                "say `--radius`, or add the signatures to a collection: its nearest may have conditions",
            )),
            Question::Within(_) | Question::First(_) => Ok(()),
        }
    }

    /// The question that has what is wanted among its answers, whatever of them does not count.
    fn wider(&self, queries: &Queries) -> Question {
        match self.question {
            Question::Nearest(k) if self.not_self => {
                Question::Nearest(k.saturating_add(self.most_rows_of(queries)))
            }
            // The first may be one that does not count, so all are asked for.
            Question::First(radius) if self.not_self || self.conditions.ask_for_payloads() => {
                Question::Within(radius)
            }
            question => question,
        }
    }

    /// The most rows that a document among the queries has.
    fn most_rows_of(&self, queries: &Queries) -> usize {
        let names = queries.names.iter();
        let mut rows: HashMap<&str, usize> = names.map(|name| (name.id.as_str(), 0)).collect();
        for row in 0..self.file.signatures().len() {
            if let Some(rows) = rows.get_mut(self.file.id(row).as_ref()) {
                *rows += 1;
            }
        }
        rows.into_values().max().unwrap_or(0)
    }

    fn counts(&self, query: &QueryName, row: usize) -> bool {
        if self.not_self && self.file.id(row) == query.id {
            return false;
        }
        if !self.conditions.ask_for_payloads() {
            return true;
        }
        let payload = payload_of(self.file, row);
        let same = |field: &String| {
            let of = |payload: &'_ serde_json::Value| {
                payload.as_object().and_then(|fields| value_at(fields, field)).cloned()
            };
            of(&query.payload).is_some_and(|value| of(&payload) == Some(value))
        };
        let filter = self.conditions.filter.as_ref();
        filter.is_none_or(|filter| filter.matches(&self.file.id(row), &payload))
            && !self.conditions.exclude_same.iter().any(same)
    }

    fn hit(&self, neighbor: &Neighbor) -> Hit<'_> {
        let hit = self.searcher.hit(*neighbor);
        Hit { id: hit.id, distance: hit.distance, passage: hit.passage, payload: hit.payload }
    }

    /// An id that was perhaps meant, or an example of what ids look like.
    fn likely_id(&self, wanted: &str) -> String {
        let mut ids = (0..self.file.signatures().len()).map(|row| self.file.id(row));
        match (ids.find(|id| id.contains(wanted)), self.file.signatures().is_empty()) {
            (Some(id), _) => format!("is it `{id}`?"),
            (None, false) => format!("ids look like `{}` here", self.file.id(0)),
            (None, true) => "there are no signatures in it".to_owned(),
        }
    }
}

impl Searched for Rows<'_> {
    fn bits(&self) -> u32 {
        self.file.signatures().bits()
    }

    fn len(&self) -> usize {
        self.file.signatures().len()
    }

    fn recipe(&self) -> Option<&Recipe> {
        self.file.recipe()
    }

    fn signer(&self, terms: Option<&Path>) -> anyhow::Result<Signer> {
        let path = self.path.display();
        let recipe = self.file.recipe().ok_or_else(|| {
            let problem = format!("{path} does not say how its signatures were made, so a text cannot be compared");
            hinted(problem, "give the query as `--signature HEX`, or as a .sig, .npy or .hex file to `--queries`")
        })?;
        let signer = signer(recipe.clone(), terms)?;
        Ok(if self.takes_margins { signer.with_margins() } else { signer })
    }

    fn stored(&self, id: &str) -> anyhow::Result<Queries> {
        let mut queries = Queries::new(self.bits())?;
        for row in (0..self.len()).filter(|&row| self.file.id(row) == id) {
            queries.push_row(self.file, row)?;
        }
        if queries.names.is_empty() {
            let problem = format!("{}: there is no document `{id}`", self.path.display());
            return Err(hinted(problem, self.likely_id(id)));
        }
        Ok(queries)
    }

    fn ask(&mut self, queries: &Queries) -> anyhow::Result<Promise> {
        let question = self.wider(queries);
        Ok(self.searcher.ask(queries.as_asked()?, question, &mut self.found)?)
    }

    fn hits<'s>(
        &'s self,
        queries: &'s Queries,
        query: usize,
    ) -> Box<dyn Iterator<Item = Hit<'s>> + 's> {
        let wanted = match self.question {
            Question::First(_) => 1,
            Question::Nearest(k) => k,
            Question::Within(_) => usize::MAX,
        };
        let name = &queries.names[query];
        let near = self.found.of(query).iter();
        let counting = near.filter(|near| self.counts(name, near.row as usize));
        Box::new(counting.take(wanted).map(|near| self.hit(near)))
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn file(&self) -> Option<&SignatureFile> {
        Some(self.file)
    }
}
