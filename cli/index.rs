//! Which index: the user's words for it, and the choice where they leave one.

use std::str::FromStr;

use lookalike::{
    index::{Build, Composition, Method},
    table::{Stored, key_width},
};

use crate::{failure::hinted, output::counted, size};

/// What `--index` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The best for the question.
    Auto,
    /// Every row against every query.
    Scan,
    /// A method, with numbers that suit.
    Named(Name),
    /// A method with its numbers.
    Method(Method),
}

/// The methods that tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Pieces,
    Blocks,
    Multi,
    Psm,
}

/// Each method, and how it is written with its numbers.
const NAMES: [(&str, Name, &str); 4] = [
    ("pieces", Name::Pieces, "pieces-4"),
    ("blocks", Name::Blocks, "blocks-5-2"),
    ("multi", Name::Multi, "multi-3 or multi-2x4"),
    ("psm", Name::Psm, "psm-1-23"),
];

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Wanted::Auto),
            "scan" => return Ok(Wanted::Scan),
            _ => {}
        }
        let name = text.split('-').next().unwrap_or_default();
        let Some((_, named, example)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let names = NAMES.map(|(name, ..)| name).join(", ");
            return Err(format!("there are auto, scan, {names}"));
        };
        match text == name {
            true => Ok(Wanted::Named(*named)),
            false => text.parse().map(Wanted::Method).map_err(|_| {
                format!("with its numbers, {name} is written as {example}; {name} alone takes numbers that suit")
            }),
        }
    }
}

impl Wanted {
    /// Whether an index of this method is one that is wanted.
    pub(crate) fn admits(self, method: Method) -> bool {
        match self {
            Wanted::Auto => true,
            Wanted::Scan => false,
            Wanted::Named(name) => name.is_of(method),
            Wanted::Method(wanted) => wanted == method,
        }
    }
}

impl Name {
    fn is_of(self, method: Method) -> bool {
        matches!(
            (self, method),
            (Name::Pieces, Method::Pieces { .. })
                | (Name::Blocks, Method::Blocks { .. })
                | (Name::Multi, Method::Multi { .. })
                | (Name::Psm, Method::Psm { .. })
        )
    }
}

/// What is to be indexed, and what for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) bits: u32,
    pub(crate) rows: usize,
    /// The radius of the questions, if it is known.
    pub(crate) radius: Option<u32>,
    /// The most bytes that the index may take.
    pub(crate) memory: Option<u64>,
    pub(crate) key_bits: Option<u32>,
    pub(crate) stored: Option<Stored>,
    /// Whether it is built to be kept: then it pays, however few questions there are today.
    pub(crate) keep: bool,
}

/// What to search with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Choice {
    Scan,
    Tables(Method, Build),
}

/// Chooses an index for a task: the first of those that come into question that fits into the memory. All choices are made
/// here.
pub(crate) fn choose(wanted: Wanted, task: &Task) -> anyhow::Result<Choice> {
    let methods = match wanted {
        Wanted::Scan => return Ok(Choice::Scan),
        Wanted::Auto if !task.keep => return Ok(Choice::Scan),
        Wanted::Auto => task.multi(),
        Wanted::Named(name) => task.methods(name)?,
        Wanted::Method(method) => vec![method],
    };
    let mut least: Option<(u64, Method)> = None;
    for &method in &methods {
        let composition = method.compose(task.bits, task.key_width())?;
        for stored in task.ways_to_store(&composition) {
            let bytes = task.bytes(&composition, stored);
            if task.memory.is_none_or(|memory| bytes <= memory) {
                let build = Build { key_width: task.key_bits, stored: Some(stored) };
                return Ok(Choice::Tables(method, build));
            }
            least = least.into_iter().chain([(bytes, method)]).min_by_key(|(bytes, _)| *bytes);
        }
    }
    Err(task.no_room(least))
}

impl Task {
    fn key_width(&self) -> u32 {
        self.key_bits.unwrap_or_else(|| key_width(self.rows))
    }

    /// Three of 64 bits is what the papers ask for; other widths in proportion.
    fn radius(&self) -> u32 {
        self.radius.unwrap_or(self.bits * 3 / 64)
    }

    /// The numbers that suit a method, best first.
    fn methods(&self, name: Name) -> anyhow::Result<Vec<Method>> {
        let (radius, bits) = (self.radius(), self.bits);
        Ok(match name {
            Name::Pieces if radius >= bits => return Err(too_wide("pieces", radius, bits)),
            Name::Pieces => vec![Method::Pieces { slices: radius + 1 }],
            // One block is enough if it is as wide as a key; otherwise two of more blocks are. There are 16 at most.
            Name::Blocks if radius < 16 && bits / (radius + 1) >= self.key_width() => {
                vec![Method::Blocks { blocks: radius + 1, leading: 1 }]
            }
            Name::Blocks if radius <= 14 => {
                vec![Method::Blocks { blocks: radius + 2, leading: 2 }]
            }
            Name::Blocks => return Err(too_wide("blocks", radius, bits)),
            Name::Multi => self.multi(),
            Name::Psm => vec![Method::Psm { tables: 1, probes: 23 }],
        })
    }

    /// From many tables, which need few probes, to one.
    fn multi(&self) -> Vec<Method> {
        let multi = |slices, parts| Method::Multi { slices, parts };
        if self.bits <= 64 {
            return vec![multi(2, 4), multi(2, 3), multi(2, 1), multi(1, 1)];
        }
        // Slices of as many bits as tell the rows apart.
        let slice = self.rows.max(1).ilog2().clamp(8, 28);
        let slices = self.bits.div_ceil(slice);
        std::iter::successors(Some(slices), |slices| Some(slices / 2).filter(|&half| half > 0))
            .map(|slices| multi(slices, 1))
            .collect()
    }

    /// What tables can store, the fastest first.
    fn ways_to_store(&self, composition: &Composition) -> Vec<Stored> {
        if let Some(stored) = self.stored {
            return vec![stored];
        }
        let narrowest = composition.layouts().iter().map(|key| key.width()).min().unwrap_or(0);
        let all = [Stored::Whole, Stored::Split, Stored::Numbers];
        all.into_iter().filter(|stored| stored.suits(self.bits, narrowest)).collect()
    }

    /// What an index takes at most: its tables, and what leads from signatures to rows.
    fn bytes(&self, composition: &Composition, stored: Stored) -> u64 {
        composition.bytes(self.rows, stored) + 8 * self.rows as u64
    }

    fn no_room(&self, least: Option<(u64, Method)>) -> anyhow::Error {
        let rows = counted(self.rows as u64, "signature");
        let memory = size::display(self.memory.unwrap_or_default());
        let needed = least.map_or(String::new(), |(bytes, method)| {
            format!(": {method} takes {}", size::display(bytes))
        });
        hinted(
            format!("no such index over {rows} fits into {memory}{needed}"),
            "give it more with `--memory`; a scan (`search FILE.sig --index scan`) needs no memory at all",
        )
    }
}

fn too_wide(name: &str, radius: u32, bits: u32) -> anyhow::Error {
    hinted(
        format!("`{name}` has no numbers for a radius of {radius} of {bits} bits"),
        "`multi` is exact for every radius",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        bits: 64,
        rows: 1 << 20,
        radius: Some(3),
        memory: None,
        key_bits: None,
        stored: None,
        keep: true,
    };

    fn chosen(wanted: &str, task: Task) -> String {
        match choose(wanted.parse().unwrap(), &task) {
            Ok(Choice::Scan) => "scan".into(),
            Ok(Choice::Tables(method, build)) => format!("{method} {:?}", build.stored.unwrap()),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn bare_names_take_numbers_that_suit() {
        let wide = Task { bits: 256, radius: Some(12), ..TASK };
        for (wanted, task, expected) in [
            ("auto", TASK, "multi-2x4 Whole"),
            ("auto", Task { keep: false, ..TASK }, "scan"),
            ("scan", TASK, "scan"),
            ("pieces", TASK, "pieces-4 Whole"),
            ("pieces", Task { radius: None, ..TASK }, "pieces-4 Whole"),
            ("blocks", TASK, "blocks-5-2 Whole"),
            ("blocks", Task { rows: 1000, ..TASK }, "blocks-4-1 Whole"),
            ("psm", TASK, "psm-1-23 Whole"),
            ("multi-3", TASK, "multi-3 Whole"),
            ("auto", wide, "multi-13 Numbers"),
            ("pieces", wide, "pieces-13 Numbers"),
            ("blocks", wide, "blocks-13-1 Numbers"),
            (
                "blocks",
                Task { radius: Some(20), ..wide },
                "`blocks` has no numbers for a radius of 20 of 256 bits",
            ),
            (
                "pieces",
                Task { radius: Some(300), ..wide },
                "`pieces` has no numbers for a radius of 300 of 256 bits",
            ),
        ] {
            assert_eq!(chosen(wanted, task), expected, "{wanted}");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_chosen() {
        let with = |memory: u64| Task { memory: Some(memory << 20), ..TASK };
        for (wanted, memory, expected) in [
            ("auto", 100, "multi-2x4 Whole"),
            ("auto", 70, "multi-2x4 Split"),
            ("auto", 60, "multi-2x3 Split"),
            ("auto", 30, "multi-2 Whole"),
            ("auto", 17, "multi-1 Whole"),
        ] {
            assert_eq!(chosen(wanted, with(memory)), expected, "{memory}");
        }
        assert!(
            chosen("auto", with(1))
                .contains("no such index over 1048576 signatures fits into 1.0 MB")
        );
        assert!(
            chosen("multi-2x4", with(50)).contains("multi-2x4 takes 64.0 MB"),
            "{}",
            chosen("multi-2x4", with(50))
        );
    }

    #[test]
    fn unknown_names_are_told_what_there_is() {
        let problem = |text: &str| text.parse::<Wanted>().unwrap_err();
        assert_eq!(problem("tree"), "there are auto, scan, pieces, blocks, multi, psm");
        assert!(problem("multi-2y4").contains("multi-3 or multi-2x4"));
        assert!(problem("psm-1").contains("psm-1-23"));
    }
}
