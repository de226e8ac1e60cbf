//! Which index a collection keeps over its signatures.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    Result,
    index::{Method, Shape},
};

/// Which index a collection keeps. Written as `auto`, `scan`, `multi-2x4` and other methods, `graph` and its shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kept {
    /// Tables that are exact for every radius where signatures are short, none where they are long.
    #[default]
    Auto,
    /// None: every signature is compared.
    Scan,
    /// Tables of a method.
    Tables(Method),
    /// A graph of neighbors, for most of the nearest of long signatures: of this shape, or the usual one.
    Graph(Option<Shape>),
}

/// The index of one part of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Scan,
    Tables(Method),
    Graph(Shape),
}

/// Fewer rows than this are as soon compared as looked up.
pub(super) const INDEXED_FROM: usize = 2048;
/// For fewer rows than this, four slices of 16 bits tell one-word signatures apart well enough: half the tables to look into,
/// and to build.
const FEW: usize = 1 << 19;
/// Fewer rows than this have no graph: to build one takes longer than many scans.
const GRAPH_FROM: usize = 50_000;
/// Radii that wider signatures are asked for are too wide for tables.
const WIDEST_TABLES: u32 = 256;

impl Kept {
    /// The index for so many rows.
    pub(super) fn index_of(self, rows: usize, bits: u32) -> Wanted {
        match self {
            _ if rows < INDEXED_FROM => Wanted::Scan,
            Kept::Auto if bits == 64 && rows < FEW => {
                Wanted::Tables(Method::Multi { slices: 4, parts: 1 })
            }
            Kept::Auto if bits <= WIDEST_TABLES => Wanted::Tables(Method::usual(bits, rows)),
            Kept::Tables(method) => Wanted::Tables(method),
            Kept::Graph(shape) if rows >= GRAPH_FROM => {
                Wanted::Graph(shape.unwrap_or(Shape::usual(bits)))
            }
            Kept::Auto | Kept::Scan | Kept::Graph(_) => Wanted::Scan,
        }
    }

    /// The same; a graph has the shape that is the usual one today, and keeps it.
    pub(super) fn with_shape(self, bits: u32) -> Self {
        match self {
            Kept::Graph(None) => Kept::Graph(Some(Shape::usual(bits))),
            kept => kept,
        }
    }

    /// Whether signatures of so many bits can have it.
    pub(super) fn check(self, bits: u32) -> Result<()> {
        match self {
            Kept::Tables(method) => method.compose(bits, crate::table::WIDEST_KEY).map(drop),
            Kept::Auto | Kept::Scan | Kept::Graph(_) => Ok(()),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Auto => f.write_str("auto"),
            Kept::Scan => f.write_str("scan"),
            Kept::Tables(method) => method.fmt(f),
            Kept::Graph(Some(shape)) => shape.fmt(f),
            Kept::Graph(None) => f.write_str("graph"),
        }
    }
}

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Kept::Auto,
            "scan" => Kept::Scan,
            _ if text.starts_with("graph") => Kept::Graph(Shape::named(text)?),
            _ => Kept::Tables(text.parse().map_err(|_| {
                "a collection keeps auto, scan, graph, or tables as multi-2x4, pieces-4 or blocks-5-2".to_owned()
            })?),
        })
    }
}

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_survives_text() {
        for text in ["auto", "scan", "multi-2x4", "pieces-4", "graph", "graph-62-128"] {
            let kept: Kept = text.parse().unwrap();
            assert_eq!(kept.to_string(), text);
            let json = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<Kept>(&json).unwrap(), kept);
        }
        assert!("multi".parse::<Kept>().is_err() && "tree".parse::<Kept>().is_err());
    }

    #[test]
    fn few_rows_and_long_signatures_are_compared() {
        assert_eq!(Kept::Auto.index_of(100, 64), Wanted::Scan);
        assert_eq!(Kept::Auto.index_of(1 << 20, 1024), Wanted::Scan);
        assert_eq!(
            Kept::Auto.index_of(1 << 20, 64),
            Wanted::Tables(Method::Multi { slices: 2, parts: 4 })
        );
    }
}
