//! What is asked on the command line.

use lookalike::index::Method;

pub(crate) struct Options {
    pub(crate) rows: usize,
    pub(crate) queries: usize,
    pub(crate) seed: u64,
    /// Random signatures in place of documents.
    pub(crate) uniform: bool,
    /// So many of 100 random queries are near a row.
    pub(crate) planted: u64,
    pub(crate) radius: u32,
    /// For the nearest: how many, and how many queries in a call.
    pub(crate) k: usize,
    pub(crate) batch: usize,
    pub(crate) repeats: usize,
    /// `None` is our planner's choice.
    pub(crate) methods: Vec<Option<Method>>,
    /// `None` is mih-rs's own choice.
    pub(crate) mih_blocks: Vec<Option<usize>>,
    pub(crate) gaoya_blocks: Vec<usize>,
    pub(crate) gaoya_rows: usize,
    /// The folder for `data`.
    pub(crate) to: String,
}

impl Options {
    pub(crate) fn from_args(args: &[String]) -> Self {
        let value = |name: &str| {
            let at = args.iter().position(|arg| arg == name)?;
            Some(args.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).as_str())
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("`{text}`: no number"));
        let list = |name, default| {
            value(name).unwrap_or(default).split(',').filter(|item: &&str| !item.is_empty())
        };
        let radius = value("--radius").map_or(3, number);
        let method = |text: &str| {
            let parse = || text.parse().unwrap_or_else(|error| panic!("{error}"));
            (text != "auto").then(parse)
        };
        // Two blocks make a key: one is ten times slower at 1M rows, three are slower, too, and take 2.7 times the memory.
        let gaoya_blocks = (radius + 3).to_string();
        let methods = match args.get(1).map(String::as_str) {
            Some("nearest") => "multi-3,multi-4",
            _ => "auto,multi-2x3,multi-2x4",
        };
        Options {
            rows: value("--rows").map_or(1_000_000, number),
            queries: value("--queries").map_or(200_000, number),
            seed: value("--seed").map_or(1, number) as u64,
            uniform: args.iter().any(|arg| arg == "--uniform"),
            planted: value("--planted").map_or(27, number) as u64,
            radius: radius as u32,
            k: value("--k").map_or(10, number),
            batch: value("--batch").map_or(64, number),
            repeats: value("--repeats").map_or(3, number),
            methods: list("--methods", methods).map(method).collect(),
            mih_blocks: list("--mih-blocks", "auto,4")
                .map(|blocks| (blocks != "auto").then(|| number(blocks)))
                .collect(),
            gaoya_blocks: list("--gaoya-blocks", &gaoya_blocks).map(number).collect(),
            gaoya_rows: value("--gaoya-rows").map_or(1_000_000, number),
            to: value("--to").unwrap_or(".").to_owned(),
        }
    }
}
