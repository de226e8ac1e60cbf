//! A collection that is searched, as it was when it was opened, whoever writes to it meanwhile.

use std::{borrow::Cow, path::Path, sync::Arc, time::Instant};

use lookalike::{
    Error, Recipe, SignatureFile, Signer,
    collection::{Ask, Asking, By, Collection, Hits, Kept, Snapshot, guarantee},
    index::{Promise, Shape},
    search::Question,
};

use super::{
    Search,
    ready::{IndexArgs, seconds},
    searched::{About, ConditionArgs, Hit, Queries, Searched},
};
use crate::{
    collection, commands::Global, failure::hinted, index::Wanted, opened::IndexKind,
    output::counted, size,
};

/// Queries that are asked at a time: the records that they find are all in memory.
const BATCH: usize = 1024;

/// The records of a collection, and what finds those near a query.
pub(super) struct Records<'a> {
    collection: Collection,
    snapshot: Arc<Snapshot>,
    by: By,
    about: About,
    question: Question,
    conditions: &'a ConditionArgs,
    /// Whether queries are documents that are not to find themselves.
    not_self: bool,
    found: Hits,
}

impl<'a> Records<'a> {
    pub(super) fn open(search: &'a Search, global: &Global) -> anyhow::Result<Self> {
        let started = Instant::now();
        let collection = collection::open_reader(&search.file, global)?;
        let by = by(&collection, &search.index)?;
        let snapshot = collection.snapshot();
        let mut records = Records {
            about: About {
                thing: "record",
                name: Some(snapshot.asked_by(by)),
                batch: BATCH,
                planned: None,
                was_built: true,
                to_find_more: "`--index scan` finds all",
                lines: Vec::new(),
            },
            collection,
            snapshot,
            by,
            question: search.question(),
            conditions: &search.conditions,
            not_self: search.not_self(),
            found: Hits { of: Vec::new(), more: Vec::new(), promise: Promise::Exact },
        };
        if search.index.explain {
            records.about.lines = records.lines(seconds(started.elapsed()))?;
        }
        Ok(records)
    }

    /// How it is searched, line by line.
    fn lines(&self, opened: String) -> anyhow::Result<Vec<(&'static str, String)>> {
        let kept = self.collection.about().index;
        let why = match self.by {
            By::Sql | By::SqlEveryRecord => "`--index` says so: the database alone finds them",
            By::Scan => "`--index` says so: every record is compared",
            By::Share(_) => "the collection keeps it, and `--recall` allows less than all",
            By::Index if self.snapshot.has_graph() => {
                "a graph may miss some, which no `--recall` allows, so every record is compared"
            }
            By::Index => "the collection keeps it; records that are few or new are compared",
        };
        let name = self.about.name.clone().unwrap_or_default();
        let mut lines = vec![
            ("index", format!("{name} (the collection keeps {kept})")),
            ("why", why.to_owned()),
            ("opened", opened),
        ];
        let part = |part: lookalike::collection::PartAbout| {
            let (rows, bytes) = (counted(part.rows as u64, "record"), size::display(part.bytes));
            let saved = if part.saved { "saved" } else { "not yet saved" };
            format!("{}: {rows}, {} removed, {bytes}, {saved}", part.index, part.removed)
        };
        lines.extend(self.snapshot.parts().map(|about| ("part", part(about))));
        let slices = self.collection.with_reader(|store| store.slices())?;
        lines.push((
            "sql",
            match slices {
                Some(slices) => {
                    let within = guarantee(slices);
                    format!(
                        "{}, by which it finds all within a radius of {within}",
                        counted(slices.into(), "slice")
                    )
                }
                None => "no slices".to_owned(),
            },
        ));
        Ok(lines)
    }

    /// Who asks, for each query, as far as it matters.
    fn asking(&self, queries: &Queries) -> Vec<Asking> {
        if !self.not_self && self.conditions.exclude_same.is_empty() {
            return Vec::new();
        }
        let asking = queries.names.iter().map(|name| Asking {
            not_id: self.not_self.then(|| name.id.clone()),
            payload: name.payload.clone(),
        });
        asking.collect()
    }

    /// What to do about an error of a search.
    fn way_out(&self, error: Error) -> anyhow::Error {
        let path = self.collection.folder().display();
        let hint = match &error {
            Error::NoSlices => format!(
                "`lookalike reslice {path} --radius H` makes them; other searches need none"
            ),
            Error::BeyondSlices { radius, guarantee } => format!(
                "ask for a radius of {guarantee} or less, or make more slices with `lookalike reslice {path} --radius {radius}`; \
                 without `--index sql` every radius is exact"
            ),
            Error::Setting { name: "the index", .. } => {
                "say `--radius`, or leave `--index sql` out".to_owned()
            }
            Error::WidthMismatch { .. } => {
                format!("`lookalike info {path}` shows what its signatures are made with")
            }
            _ => return error.into(),
        };
        hinted(error.to_string(), hint)
    }

    /// An example of what ids look like.
    fn some_id(&self) -> String {
        let last = [self.snapshot.position()];
        let records = self.collection.with_reader(|store| store.records(&last, false));
        match records.unwrap_or_default().into_iter().flatten().next() {
            Some(record) => format!("ids look like `{}` here", record.id),
            None => "ids are as they were when documents were added".to_owned(),
        }
    }
}

/// What finds records, as `--index` and `--recall` say.
fn by(collection: &Collection, args: &IndexArgs) -> anyhow::Result<By> {
    let (kept, bits) = (collection.about().index, collection.about().bits);
    let keeps = match kept {
        Kept::Tables(method) => args.index.admits_file(IndexKind::Tables(method)),
        Kept::Graph(shape) => {
            args.index.admits_file(IndexKind::Graph(shape.unwrap_or(Shape::usual(bits))))
        }
        Kept::Auto | Kept::Scan => args.index == Wanted::Auto,
    };
    match args.index {
        Wanted::Scan => Ok(By::Scan),
        Wanted::Sql => Ok(By::Sql),
        _ if keeps => Ok(args.recall.filter(|&recall| recall < 1.0).map_or(By::Index, By::Share)),
        _ => Err(hinted(
            format!(
                "{} keeps the index `{kept}`, which is not what `--index` says",
                collection.folder().display()
            ),
            "leave `--index` out, or say auto, scan or sql; another collection may be created with another index",
        )),
    }
}

impl Searched for Records<'_> {
    fn bits(&self) -> u32 {
        self.collection.about().bits
    }

    fn len(&self) -> usize {
        self.snapshot.len()
    }

    fn recipe(&self) -> Option<&Recipe> {
        self.collection.about().recipe.as_ref()
    }

    fn signer(&self, terms: Option<&Path>) -> anyhow::Result<Signer> {
        let path = self.collection.folder().display();
        if terms.is_some() {
            let problem =
                format!("{path} has the term statistics that its recipe weighs by, if it does");
            return Err(hinted(problem, "leave `--terms` out"));
        }
        if self.recipe().is_none() {
            let problem = format!(
                "{path} does not say how its signatures were made, so a text cannot be compared"
            );
            return Err(hinted(
                problem,
                "give the query as `--signature HEX`, or as a .sig, .npy or .hex file to `--queries`",
            ));
        }
        Ok(self.collection.signer()?)
    }

    fn stored(&self, id: &str) -> anyhow::Result<Queries> {
        let mut queries = Queries::new(self.bits())?;
        match self.collection.get(&[id], false)?.pop().flatten() {
            Some(record) => queries.push_record(&record)?,
            None => {
                let path = self.collection.folder().display();
                return Err(hinted(format!("{path}: there is no document `{id}`"), self.some_id()));
            }
        }
        Ok(queries)
    }

    fn ask(&mut self, queries: &Queries) -> anyhow::Result<Promise> {
        let ask = Ask {
            filter: self.conditions.filter.as_ref(),
            asking: &self.asking(queries),
            not_same: &self.conditions.exclude_same,
            by: self.by,
            ..Ask::new(self.question)
        };
        let found = self.collection.search_in(&self.snapshot, queries.as_asked()?, &ask);
        self.found = found.map_err(|error| self.way_out(error))?;
        Ok(self.found.promise)
    }

    fn hits<'s>(&'s self, _: &'s Queries, query: usize) -> Box<dyn Iterator<Item = Hit<'s>> + 's> {
        Box::new(self.found.of[query].iter().map(|hit| Hit {
            id: Cow::Borrowed(&hit.record.id),
            distance: hit.distance,
            passage: None,
            payload: hit.record.payload.as_deref().map(Cow::Borrowed),
        }))
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn file(&self) -> Option<&SignatureFile> {
        None
    }
}
