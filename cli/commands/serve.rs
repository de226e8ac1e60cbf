//! `lookalike serve`.

use std::{
    env::{self, VarError},
    fs,
    io::{self, IsTerminal},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use lookalike::plan::Costs;
use lookalike_server::{Limits, Options, Refused, Tokens, serve};
use tracing::level_filters::LevelFilter;

use super::{Global, Outcome};
use crate::{
    collection,
    failure::hinted,
    output::{counted, say},
    size,
};

/// The tokens in the environment.
const TOKEN: &str = "LOOKALIKE_TOKEN";
const READ_TOKEN: &str = "LOOKALIKE_READ_TOKEN";

/// Serve a collection over HTTP, with a page for people
///
/// The page is at http://127.0.0.1:8080/, the API below /v1, its OpenAPI document at /v1/openapi.json. What is answered to a
/// request that writes is durable. An interrupt or SIGTERM ends it when the requests that it works on are done.
#[derive(Debug, Args)]
#[command(after_help = "\
Tokens come from files or the environment, never from the command line, which others can see: LOOKALIKE_TOKEN to read and
write, LOOKALIKE_READ_TOKEN to read. Requests bring them as `Authorization: Bearer TOKEN`.

Examples:
  lookalike serve news
  lookalike serve news --listen 0.0.0.0:8080 --token-file /run/secrets/token
  lookalike serve news --read-only --listen 127.0.0.1:9000 --log-format json")]
pub(crate) struct Serve {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// Where to listen: an address and a port, or a port of this machine alone; port 0 takes a free one
    #[arg(long, short, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = parse_address)]
    listen: SocketAddr,

    /// How far lookalikes are apart where a request does not say; if not said 3 of 64 bits, a seventh of wider ones
    #[arg(long, short, value_name = "BITS")]
    radius: Option<u32>,

    /// Documents are read, not written, and another process may write
    #[arg(long)]
    read_only: bool,

    /// A file with the token that requests need
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A file with a token that allows to read
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,

    /// Anybody who reaches it may read and write, from elsewhere too
    #[arg(long)]
    insecure: bool,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    log: LogArgs,
}

/// What a request may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// The largest body, and the longest line of NDJSON, whose number of lines is not limited
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size::parse_bytes)]
    max_body: u64,

    /// Documents or queries of a call
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    max_batch: usize,

    /// The longest text
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size::parse_bytes)]
    max_text: u64,

    /// Hits of a call
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    max_hits: usize,

    /// The bytes of the documents that a call finds, payloads included
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size::parse_bytes)]
    max_answer: u64,

    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    max_time: Duration,

    /// Requests that are worked on at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    max_requests: usize,

    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one)]
    max_connections: usize,
}

/// What is logged, to standard error.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
struct LogArgs {
    /// How much: off, error, warn, info, debug (every request) or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,

    /// For people, or JSON with one object a line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl Serve {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        self.log.start();
        let options = self.options()?;
        let path = &self.collection;
        let collection = match self.read_only {
            true => collection::open_reader(path, global)?,
            false => collection::open(path, global)?,
        };
        let records = collection.snapshot().len();
        let listening = |address: SocketAddr| match self.log.log_format {
            LogFormat::Text => say(global, || {
                let documents = counted(records as u64, "document");
                format!("{}: {documents}, at http://{address}/", path.display())
            }),
            LogFormat::Json => {
                tracing::info!(%address, collection = %path.display(), records, "listening");
            }
        };
        serve(collection, &options, listening).map_err(|refused| way_out(refused, path))?;
        Ok(Outcome::Done)
    }

    fn options(&self) -> anyhow::Result<Options> {
        Ok(Options {
            listen: self.listen,
            tokens: Tokens {
                write: token(self.token_file.as_deref(), TOKEN)?,
                read: token(self.read_token_file.as_deref(), READ_TOKEN)?,
            },
            insecure: self.insecure,
            limits: self.limits.limits(),
            radius: self.radius,
            read_only: self.read_only,
            costs: || Costs::of_this_machine(|| tracing::info!("measuring this machine, once")),
        })
    }
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        Limits {
            body_bytes: self.max_body.try_into().unwrap_or(usize::MAX),
            batch: self.max_batch,
            text_bytes: self.max_text.try_into().unwrap_or(usize::MAX),
            hits: self.max_hits,
            answer_bytes: self.max_answer.try_into().unwrap_or(usize::MAX),
            time: self.max_time,
            in_flight: self.max_requests,
            connections: self.max_connections,
        }
    }
}

impl LogArgs {
    fn start(&self) {
        let log = tracing_subscriber::fmt()
            .with_max_level(self.log_level)
            .with_ansi(io::stderr().is_terminal())
            .with_writer(io::stderr);
        match self.log_format {
            LogFormat::Text => log.with_target(false).init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
    }
}

/// The token in a file, or in the environment.
fn token(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<String>> {
    let Some(file) = file else {
        return match env::var(variable) {
            Ok(token) => Ok(Some(token)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(hinted(
                format!("the token in {variable} is not UTF-8"),
                "a token is letters, digits and signs, without spaces",
            )),
        };
    };
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) => Err(hinted(
            format!("{}: {error}", file.display()),
            "a token file has the token as its only line",
        )),
    }
}

/// What to do about a service that was not started.
fn way_out(refused: Refused, path: &Path) -> anyhow::Error {
    let hint = match &refused {
        Refused::Open(_) => format!(
            "give a token with `--token-file FILE` or {TOKEN}, or say `--insecure` if everybody may read and write"
        ),
        Refused::NobodyWrites => {
            format!("give one with `--token-file FILE` or {TOKEN}, or say `--read-only`")
        }
        Refused::SameTokens => "whoever may only read needs another token".to_owned(),
        Refused::Token => "a token is letters, digits and signs, without spaces".to_owned(),
        Refused::Radius { .. } => {
            format!("`lookalike info {}` tells how wide signatures are", path.display())
        }
        Refused::Listen { .. } => {
            "another address is given with `--listen`, as 127.0.0.1:9000; port 0 takes a free one"
                .to_owned()
        }
        Refused::Collection(_) => return refused.into(),
    };
    hinted(refused.to_string(), hint)
}

/// An address with a port, or a port alone.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse().map_err(|_| "not an address as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "not a number of seconds".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if number == 0 { Err("at least 1".to_owned()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("localhost:9000", "127.0.0.1:9000"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), address);
        }
        assert!(parse_address("example").is_err());
    }
}
