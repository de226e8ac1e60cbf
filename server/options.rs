//! How a collection is served: where, to whom, and within which limits.

use std::{fmt, net::SocketAddr, time::Duration};

use lookalike::plan::Costs;
use serde::Serialize;
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

/// How a collection is served.
#[derive(Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may ask and who may write.
    pub tokens: Tokens,
    /// Whether others than this machine may ask although no token is needed.
    pub insecure: bool,
    /// What a request may take.
    pub limits: Limits,
    /// How far lookalikes are apart where a request does not say; a usual one for the width if it is not given.
    pub radius: Option<u32>,
    /// Whether documents are only read.
    pub read_only: bool,
    /// What things cost on this machine, for the planner; measured when they are first needed.
    pub costs: fn() -> lookalike::Result<Costs>,
}

/// Who may ask, and who may write. Without any, everybody may do both.
#[derive(Clone, Default)]
pub struct Tokens {
    /// Whoever has it may read and write.
    pub write: Option<String>,
    /// Whoever has it may read.
    pub read: Option<String>,
}

// A token is never shown.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |token: &Option<String>| token.as_ref().map(|_| "***");
        f.debug_struct("Tokens")
            .field("write", &shown(&self.write))
            .field("read", &shown(&self.read))
            .finish()
    }
}

/// What a token is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is not one of ours.
    None,
    /// It may read.
    Reads,
    /// It may read and write.
    Writes,
}

impl Tokens {
    /// Whether anybody needs one.
    pub(crate) fn are_needed(&self) -> bool {
        self.write.is_some() || self.read.is_some()
    }

    /// What whoever gives this token may do. How long it takes does not tell how much of a token is right.
    pub(crate) fn trust(&self, given: Option<&[u8]>) -> Trust {
        if !self.are_needed() {
            return Trust::Writes;
        }
        let given = given.unwrap_or_default();
        let is = |token: &Option<String>| {
            token.as_ref().is_some_and(|token| token.as_bytes().ct_eq(given).into())
        };
        let (writes, reads) = (is(&self.write), is(&self.read));
        match (writes, reads) {
            (true, _) => Trust::Writes,
            (_, true) => Trust::Reads,
            _ => Trust::None,
        }
    }
}

/// What a request may take.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Limits {
    /// Bytes of a body, or of a line of NDJSON.
    pub body_bytes: usize,
    /// Documents or queries of a call.
    pub batch: usize,
    /// Bytes of a text.
    pub text_bytes: usize,
    /// Hits of a call.
    pub hits: usize,
    /// Bytes of the documents that are found by a call, payloads included.
    pub answer_bytes: usize,
    /// How long a request may take.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    #[schema(value_type = f64)]
    pub time: Duration,
    /// Requests that are worked on at a time.
    pub in_flight: usize,
    /// Connections at a time.
    pub connections: usize,
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 32 << 20,
            batch: 10_000,
            text_bytes: 8 << 20,
            hits: 100_000,
            answer_bytes: 64 << 20,
            time: Duration::from_secs(30),
            in_flight: 256,
            connections: 1024,
        }
    }
}

/// Why a service was not started.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Anybody could read and write.
    #[error("{0} can be reached from elsewhere, and no token is needed")]
    Open(SocketAddr),
    /// There is a token to read with, and none to write with.
    #[error("there is a token to read with, but none to write with, so nobody could")]
    NobodyWrites,
    /// The token to read with is the one to write with.
    #[error("the token to read with is the one to write with as well")]
    SameTokens,
    /// A token that no request can bring.
    #[error("a token is empty, or has characters that a header cannot have")]
    Token,
    /// A radius that no two signatures are apart.
    #[error("a radius of {radius} is more than the {bits} bits of a signature")]
    Radius {
        /// The radius.
        radius: u32,
        /// The width.
        bits: u32,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {problem}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        problem: std::io::Error,
    },
    /// The collection.
    #[error(transparent)]
    Collection(#[from] lookalike::Error),
}

impl Options {
    /// Whether it is meant for this machine alone: it cannot be reached from elsewhere, and wants no token.
    pub(crate) fn is_only_here(&self) -> bool {
        self.listen.ip().is_loopback() && !self.insecure && !self.tokens.are_needed()
    }

    /// Refuses what would be a mistake.
    pub(crate) fn check(&self, bits: u32) -> Result<(), Refused> {
        if !self.listen.ip().is_loopback() && !self.insecure && !self.tokens.are_needed() {
            return Err(Refused::Open(self.listen));
        }
        let Tokens { write, read } = &self.tokens;
        if read.is_some() && write.is_none() && !self.read_only {
            return Err(Refused::NobodyWrites);
        }
        let is_token =
            |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if ![write, read].into_iter().flatten().all(is_token) {
            return Err(Refused::Token);
        }
        if write.is_some() && write == read {
            return Err(Refused::SameTokens);
        }
        match self.radius.filter(|&radius| radius > bits) {
            Some(radius) => Err(Refused::Radius { radius, bits }),
            None => Ok(()),
        }
    }
}

/// How far documents that look alike are usually apart: 3 of 64 bits, as web pages are compared since Manku et al., and a
/// seventh of wider signatures, whose distances tell more: a cosine of .9, or a Jaccard coefficient of .7.
pub(crate) fn usual_radius(bits: u32) -> u32 {
    match bits {
        ..=64 => bits * 3 / 64,
        _ => bits / 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_worth_what_they_are() {
        let tokens = Tokens { write: Some("w".into()), read: Some("r".into()) };
        assert_eq!(tokens.trust(Some(b"w")), Trust::Writes);
        assert_eq!(tokens.trust(Some(b"r")), Trust::Reads);
        for other in [None, Some(&b""[..]), Some(b"wr"), Some(b"W")] {
            assert_eq!(tokens.trust(other), Trust::None);
        }
        assert_eq!(Tokens::default().trust(None), Trust::Writes);
        let only = Tokens { write: Some("w".into()), read: None };
        assert_eq!(only.trust(Some(b"")), Trust::None);
        assert!(!format!("{tokens:?}").contains("\"w\""));
    }

    #[test]
    fn usual_radii() {
        assert_eq!([32, 64, 128, 256, 1024].map(usual_radius), [1, 3, 18, 36, 146]);
    }
}
