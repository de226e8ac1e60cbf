//! `lookalike create`.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use lookalike::{
    Error,
    collection::{Collection, Keeps, Kept, Settings, StoredIn},
    partial::Partial,
};
use serde_json::json;

use super::{
    Global, Outcome,
    recipe::{RecipeArgs, TermsArg, check_margins, signer},
};
use crate::{
    failure::hinted,
    output::{counted, print, say},
};

/// Make a collection, in which documents stay
///
/// A collection is a folder. Documents are added, replaced, removed and searched at any time, and what `add` has told is
/// in survives a crash. It remembers its recipe, which signs whatever is added and asked for. With `--bits` and no
/// `--recipe` it is for signatures from elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike create news
  lookalike create crawl --recipe web --keep-text
  lookalike create codes --bits 64 --index multi-2x4
  lookalike create essays --recipe topsig-1024 --terms essays.terms --index graph
  lookalike create shared --store postgres://me@db.example/archive --index sql --radius 3")]
pub(crate) struct Create {
    /// The folder to make
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    #[command(flatten)]
    recipe: RecipeArgs,

    #[command(flatten)]
    terms: TermsArg,

    /// Where records are kept: sqlite, in the folder, or the address of a PostgreSQL database, postgres://USER@HOST/NAME
    #[arg(long, value_name = "STORE", default_value = "sqlite")]
    store: Store,

    /// The schema of the PostgreSQL database; named as the folder if not said
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,

    /// The index: auto; scan for none; tables as multi-2x4 or blocks-5-2; graph for most of the nearest of long
    /// signatures; sql for B-tree indexes on slices in the database, beside auto
    #[arg(long, value_name = "INDEX", default_value = "auto")]
    index: Index,

    /// With `--index sql`: the radius within which the database finds all by itself; 3 if not said
    #[arg(long, short, value_name = "BITS")]
    radius: Option<u32>,

    /// Keep the texts, compressed
    #[arg(long)]
    keep_text: bool,

    /// Keep how weak each bit is: a byte a bit
    #[arg(long)]
    margins: bool,
}

/// Which database has the records.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Store {
    Sqlite,
    Postgres(String),
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Store::Sqlite),
            _ if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Ok(Store::Postgres(text.to_owned()))
            }
            _ => Err("records are kept in sqlite or postgres://USER@HOST/NAME".to_owned()),
        }
    }
}

/// Which index is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    Ours(Kept),
    Sql,
}

impl FromStr for Index {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sql" => Ok(Index::Sql),
            _ => text.parse().map(Index::Ours).map_err(|problem| format!("{problem}; or sql")),
        }
    }
}

/// What SQL finds all within, if nothing else was said.
const USUAL_RADIUS: u32 = 3;

impl Create {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let radius = self.sql_radius()?;
        let settings = self.settings()?;
        if let Some(radius) = radius {
            // Before anything is made that would be left behind.
            lookalike::collection::slices_for(settings.bits, radius)?;
        }
        let collection = Collection::create(&self.collection, settings)?;
        if let Some(terms) = &self.terms.terms {
            copy(terms, &collection.terms())?;
        }
        if radius.is_some() {
            collection.reslice(radius)?;
        }
        self.tell(&collection, radius, global)?;
        collection.close()?;
        Ok(Outcome::Done)
    }

    /// The radius of indexes in SQL, if there are to be any.
    fn sql_radius(&self) -> anyhow::Result<Option<u32>> {
        match (self.index, self.radius) {
            (Index::Sql, radius) => Ok(Some(radius.unwrap_or(USUAL_RADIUS))),
            (Index::Ours(_), None) => Ok(None),
            (Index::Ours(_), Some(_)) => {
                let problem = "`--radius` is for `--index sql`; searches say theirs when they ask";
                Err(hinted(problem, "leave it out, or say `--index sql`"))
            }
        }
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let settings = match self.recipe.only_bits().filter(|_| self.terms.terms.is_none()) {
            Some(bits) => Settings::of_bits(bits),
            None => {
                let signer = signer(self.recipe.recipe()?, self.terms.terms.as_deref())?;
                check_margins(signer.recipe(), self.margins)?;
                // The signer's recipe says which term statistics it weighs by.
                Settings::of_recipe(signer.recipe().clone())
            }
        };
        let index = match self.index {
            Index::Ours(kept) => kept,
            Index::Sql => Kept::Auto,
        };
        let keeps = Keeps { margins: self.margins, texts: self.keep_text };
        Ok(Settings { keeps, index, store: self.stored_in()?, ..settings })
    }

    fn stored_in(&self) -> anyhow::Result<StoredIn> {
        match (&self.store, &self.schema) {
            (Store::Sqlite, None) => Ok(StoredIn::Sqlite),
            (Store::Sqlite, Some(_)) => Err(hinted(
                "`--schema` is for PostgreSQL",
                "leave it out, or say `--store postgres://USER@HOST/NAME`",
            )),
            (Store::Postgres(url), schema) => {
                let schema = schema.clone().unwrap_or_else(|| schema_of(&self.collection));
                Ok(StoredIn::Postgres { url: url.clone(), schema })
            }
        }
    }

    fn tell(
        &self,
        collection: &Collection,
        radius: Option<u32>,
        global: &Global,
    ) -> anyhow::Result<()> {
        let (about, store) = (collection.about(), collection.stored_in().address());
        let recipe = about.recipe.as_ref().map(|recipe| recipe.name.as_str());
        let path = self.collection.display();
        if global.json() {
            print(json!({
                "collection": path.to_string(), "bits": about.bits, "recipe": recipe, "store": store,
                "index": about.index.to_string(), "sql_exact_within": radius,
                "keeps_texts": about.keeps.texts, "keeps_margins": about.keeps.margins,
            }))?;
        }
        say(global, || {
            let from =
                recipe.map_or("from elsewhere".to_owned(), |name| format!("(recipe {name})"));
            let sql = radius.map_or(String::new(), |radius| format!(", by SQL within {radius}"));
            let (bits, index) = (about.bits, about.index);
            // A database may have it already, made elsewhere.
            let joined = match collection.snapshot().len() as u64 {
                0 => String::new(),
                records => format!("; joined: it has {} already", counted(records, "record")),
            };
            format!(
                "{path}: a collection of signatures of {bits} bits {from} in {store}, index {index}{sql}{joined}"
            )
        });
        Ok(())
    }
}

/// The schema of a collection in that folder: names in SQL have letters, digits and underscores.
fn schema_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    match name.is_empty() {
        true => "lookalike".to_owned(),
        false => name.chars().map(plain).collect(),
    }
}

/// Copies a file, complete or not at all.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut source = File::open(from).map_err(|error| Error::io(from, error))?;
    let failed = |error| Error::io(to, error);
    let mut target = Partial::create(to).map_err(failed)?;
    io::copy(&mut source, &mut target).map_err(failed)?;
    target.complete().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_named_as_folders() {
        for (folder, schema) in [
            ("news", "news"),
            ("/data/News 2024", "news_2024"),
            ("a/b.c/", "b_c"),
            ("..", "lookalike"),
        ] {
            assert_eq!(schema_of(Path::new(folder)), schema);
        }
    }

    #[test]
    fn stores_and_indexes_are_read() {
        assert_eq!("sqlite".parse(), Ok(Store::Sqlite));
        assert!(matches!("postgresql://host/db".parse(), Ok(Store::Postgres(_))));
        assert!("mysql://host".parse::<Store>().is_err());
        assert_eq!("sql".parse(), Ok(Index::Sql));
        assert_eq!("scan".parse(), Ok(Index::Ours(Kept::Scan)));
        assert!("tree".parse::<Index>().unwrap_err().contains("sql"));
    }
}
