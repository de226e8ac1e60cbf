//! Where a collection in PostgreSQL is: a schema of the database of a URL; and connections to it.

use std::{env, error::Error as StdError, io, time::Duration};

use postgres::{Client, Config, NoTls, config::SslMode, error::Severity};

use crate::{Error, Result, collection::StoredIn};

/// The first server that can count the bits of a bit string.
const OLDEST_SERVER: i32 = 14;
/// PostgreSQL cuts longer names off, and two collections would be one.
const LONGEST_SCHEMA: usize = 63;
/// How long to wait for a server that does not answer, if the URL does not say.
const PATIENCE: Duration = Duration::from_secs(10);

/// A schema of the database of a URL.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    schema: String,
    /// The URL without a password, and the schema.
    shown: String,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Address {
    pub(super) fn new(url: &str, schema: &str) -> Result<Self> {
        Address::with_password(url, schema, env::var("PGPASSWORD").ok())
    }

    /// An address with a password for a URL that has none.
    fn with_password(url: &str, schema: &str, password: Option<String>) -> Result<Self> {
        check_schema(schema)?;
        let mut config = parse(url)?;
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("lookalike");
        }
        let stored = StoredIn::Postgres { url: url.to_owned(), schema: schema.to_owned() };
        let shown = stored.address();
        let address = Address { config, schema: schema.to_owned(), shown };
        match address.config.get_ssl_mode() {
            SslMode::Disable | SslMode::Prefer => Ok(address),
            _ => Err(address.refused(
                "the URL asks for an encrypted connection (sslmode), which this program cannot make",
            )),
        }
    }

    /// The URL without a password, and the schema, for people to read.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The name of the schema.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of the schema as it is written in SQL.
    pub(super) fn quoted_schema(&self) -> String {
        format!("\"{}\"", self.schema.replace('"', "\"\""))
    }

    /// A connection whose tables are those of the schema.
    pub(super) fn connect(&self, access: Access) -> Result<Client> {
        let mut client = self.config.connect(NoTls).map_err(|error| self.refused(spoken(error)))?;
        let failed = |error| self.failure(error);
        let version = client
            .query_typed_one("SELECT current_setting('server_version_num')::int / 10000", &[])
            .and_then(|row| row.try_get::<_, i32>(0))
            .map_err(failed)?;
        if version < OLDEST_SERVER {
            let problem = format!(
                "the server is PostgreSQL {version}; collections need {OLDEST_SERVER} or newer"
            );
            return Err(self.refused(problem));
        }
        client.batch_execute(&self.session(access)).map_err(failed)?;
        Ok(client)
    }

    /// What every connection begins with.
    fn session(&self, access: Access) -> String {
        let read_only = match access {
            Access::Read => "on",
            Access::Write => "off",
        };
        // A server may be set not to wait for its disk: commits of ours are durable when they return.
        format!(
            "SET search_path TO {};
             SET default_transaction_read_only = {read_only};
             SET plan_cache_mode = force_generic_plan;
             SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off'",
            self.quoted_schema()
        )
    }

    /// What PostgreSQL says, as an error of ours.
    pub(super) fn failure(&self, error: postgres::Error) -> Error {
        match is_lost(&error) {
            true => self.refused(Lost(error)),
            false => self.refused(spoken(error)),
        }
    }

    /// An error about the collection.
    pub(super) fn refused(&self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error::Store { store: self.shown.clone(), source: source.into() }
    }
}

/// The connection has ended, by the server or on the way.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the database is lost")]
struct Lost(#[source] postgres::Error);

/// Whether there is no connection any more.
pub(super) fn is_lost(error: &postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(|error| error.parsed_severity());
    let on_the_way = error.source().is_some_and(|source| source.is::<io::Error>());
    error.is_closed() || on_the_way || matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// What the server said, if it was the server: the crate's own words for that are only `db error`.
fn spoken(error: postgres::Error) -> Box<dyn StdError + Send + Sync> {
    match error.as_db_error().cloned() {
        Some(error) => Box::new(error),
        None => Box::new(error),
    }
}

fn parse(url: &str) -> Result<Config> {
    // A URL that is not understood is not shown: who knows where its password is.
    let refused = |source| Error::Store { store: "the URL of the database".to_owned(), source };
    // A password with an `@` would be cut at it, and the rest shown as a host.
    if url.contains("://") && url.matches('@').count() > 1 {
        return Err(refused("has more than one `@`: in a password it is written `%40`".into()));
    }
    url.parse().map_err(|error: postgres::Error| refused(error.into()))
}

fn check_schema(schema: &str) -> Result<()> {
    let problem = match schema {
        "" => "has no name".to_owned(),
        _ if schema.contains('\0') => "has a name with U+0000".to_owned(),
        _ if schema.len() > LONGEST_SCHEMA => {
            format!("`{schema}` has a name of {} bytes: {LONGEST_SCHEMA} is the most", schema.len())
        }
        _ => return Ok(()),
    };
    Err(Error::Setting { name: "schema", problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address> {
        Address::with_password(url, "news", Some("of the environment".to_owned()))
    }

    /// All that an error says.
    fn said(error: &dyn StdError) -> String {
        let cause = error.source().map(|cause| format!(": {}", said(cause))).unwrap_or_default();
        format!("{error}{cause}")
    }

    #[test]
    fn passwords_are_not_shown() {
        let shown = address("postgres://anna:secret@db.example:5433/archive").unwrap().shown;
        assert_eq!(shown, "postgres://anna@db.example:5433/archive, schema news");
        for url in [
            "postgres://anna:se@cret@db.example/archive",
            "postgres://anna:secret@db.example:port/archive",
            "postgres://anna@db.example/archive?pasword=secret",
            "postgres://anna:secret@db.example/archive?sslmode=require",
            "postgres://anna:secret@127.0.0.1:1/archive",
        ] {
            let error = address(url).and_then(|address| address.connect(Access::Read)).err();
            let error = said(&error.unwrap());
            assert!(!error.contains("cret"), "{error}");
        }
    }

    #[test]
    fn a_password_of_the_url_comes_first() {
        let given = |url| address(url).unwrap().config.get_password().unwrap().to_vec();
        assert_eq!(given("postgres://anna:secret@db.example/archive"), b"secret");
        assert_eq!(given("postgres://anna@db.example/archive"), b"of the environment");
    }

    #[test]
    fn encryption_is_refused() {
        let error = address("postgres://anna@db.example/archive?sslmode=require").err().unwrap();
        assert!(said(&error).contains("encrypted"), "{}", said(&error));
    }

    #[test]
    fn schemas_are_quoted_and_not_cut_off() {
        let address = |schema: &str| Address::with_password("postgres://db.example", schema, None);
        assert_eq!(address("a\"b; --").unwrap().quoted_schema(), "\"a\"\"b; --\"");
        assert!(address("").is_err() && address("a\0b").is_err());
        assert!(address(&"é".repeat(31)).is_ok() && address(&"é".repeat(32)).is_err());
    }
}
