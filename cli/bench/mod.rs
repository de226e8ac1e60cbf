//! The experiments of the PSM thesis (Sood, 2011), measured again beside our own indexes, all in one run.
//!
//! `table2` is the whole run: `contenders` says which methods, `subjects` how each is asked, `measure` times them and
//! `digest` tells what they found. `close` and `lines` look closer at one index, `limit` at the memory, `growth` at
//! smaller sets. `assemble` makes `results` of it; `report` and `figures` show them, beside what `published` has from
//! the thesis. `join` and `batch` are runs of their own, and so are
//! `issl`, for the papers on slice lists, and `nearest`, for the graph.

mod assemble;
mod batch;
mod close;
mod contenders;
mod digest;
mod figures;
mod growth;
mod issl;
mod join;
mod limit;
mod lines;
mod measure;
mod nearest;
mod published;
mod report;
mod results;
mod subjects;
mod table2;
mod text;

pub(crate) use batch::{
    BatchSetup, batch, batch_report, batches_agree, by_batch_figure, by_file_figure,
};
pub(crate) use figures::{growth as growth_figure, weak_bits as weak_bits_figure};
pub(crate) use issl::{IsslSetup, issl, issl_growth_figure, issl_report};
pub(crate) use join::{JoinRow, agree, join, join_report};
pub(crate) use nearest::{
    NearestSetup, nearest, nearest_growth_figure, nearest_lines, nearest_report,
};
pub(crate) use report::report;
pub(crate) use results::Results;
pub(crate) use table2::{Setup, run};
pub(crate) use text::table;
