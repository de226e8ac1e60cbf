//! What was measured, as text for people: tables that are also Markdown.

use super::{
    published::SOURCE,
    results::{Rate, Results, Row},
    text::{kilo, table},
};

const ABOUT_METHODS: &str = "\
form: as the thesis describes it, one query at a time, or ours, in batches. bytes: a stored row, tables alone, and with what
leads to row numbers (the thesis' form finds signatures only). all, first: every neighbor, or one of them. A pass over the
queries ends after 10 s: where fewer queries were asked, recall is of these. x BPHS-4: times the speed of BPHS-4 in the
thesis' form, which has a turn before every repeat; so this need not be the ratio to its row. The workload was partly tuned
to an earlier one, on which PSM had a recall of .96: that its recall comes out alike is no independent evidence.";

const ABOUT_LINES: &str = "\
Counted: the lines of the two offsets of each probe; those of the rows between them, and those asked for in vain; for each
match that was not found in the first table, its offsets and rows there; one line in the map from signatures to rows, and
one for each row in the map from copy to copy. A line that is still in the cache counts as any other.";

const ABOUT_WEAK_BITS: &str = "\
Neighbors found within so many flips, weakest bits first (figure 2), and the flips that 95%, 99% and all of them need here:";

const ABOUT_GROWTH: &str = "\
Growth (figures 7 and 8), all neighbors. A size is a random sample of the next; PSM makes 23 probes at each; multi-2x3 is
split where keys have 16 bits or more; the last column is the speed divided by that at the smallest size:";

/// The whole report.
pub(crate) fn report(results: &Results) -> String {
    let parts = [
        workload(results),
        methods(results),
        agreement(results),
        beside_thesis(results),
        unbatched(results),
        limit(results),
        weak_bits(results),
        growth(results),
    ];
    parts.join("\n\n")
}

fn workload(results: &Results) -> String {
    let about = &results.workload;
    let repeats = match about.repeats {
        1 => "measured once".to_owned(),
        repeats => format!("medians of {repeats}"),
    };
    format!(
        "{} stored rows of 64 bits ({} distinct), {} queries, radius 3, seed {}; threads: {}; kernel {}; {repeats}.\n\
         {:.1}% of the queries have a neighbor, {:.2} neighbors a query.",
        about.rows,
        about.distinct,
        about.queries,
        about.seed,
        about.threads,
        about.kernel,
        100.0 * about.matched,
        about.neighbors,
    )
}

/// Table 2.
fn methods(results: &Results) -> String {
    let header = "method | form | tables | key | bytes | + rows | queries | all s | all q/s | recall | x BPHS-4 \
                  | queries | first s | first q/s | recall | x BPHS-4";
    let lines = table(header, results.methods.iter().map(method).collect());
    let note = |row: &Row| Some(format!("{}: {}.\n", row.name, row.note.as_ref()?));
    let notes: String = results.methods.iter().filter_map(note).collect();
    format!("{lines}\n\n{notes}{ABOUT_METHODS}\n{}", noise(results))
}

/// How far to trust a number: repeats, and two methods that were measured once more, later.
fn noise(results: &Results) -> String {
    let rates = results.methods.iter().flat_map(|row| [&row.all, &row.first]);
    let spread = rates.map(|rate| rate.spread).fold(1.0, f64::max);
    let again = ["BPHS-4", "multi-2x4"].map(|name| {
        let before = results.methods.iter().find(|row| row.name == name);
        let after = results.growth.iter().rfind(|row| row.name == name);
        let times = before
            .zip(after)
            .map(|(before, after)| after.queries_a_second / before.all.queries_a_second);
        format!("{name} was {:.2}", times.unwrap_or(1.0))
    });
    format!(
        "Noise: the slowest repeat took up to {spread:.2} times the fastest; measured again at the end of the run,\n\
         {} times as fast.",
        again.join(" and ")
    )
}

fn method(row: &Row) -> Vec<String> {
    let with_rows = row.bytes_with_rows.map_or("-".to_owned(), |bytes| format!("{bytes:.1}"));
    let mut cells = vec![
        row.name.clone(),
        row.form.to_owned(),
        row.tables.to_string(),
        row.key_bits.to_string(),
        format!("{:.1}", row.bytes),
        with_rows,
    ];
    for rate in [&row.all, &row.first] {
        cells.extend(rate_cells(rate, row.exact));
    }
    cells
}

fn rate_cells(rate: &Rate, exact: bool) -> [String; 5] {
    let recall =
        if exact && rate.recall == 1.0 { "1".to_owned() } else { format!("{:.3}", rate.recall) };
    [
        rate.queries.to_string(),
        format!("{:.3}", rate.seconds),
        kilo(rate.queries_a_second),
        recall,
        format!("{:.2}", rate.times_bphs),
    ]
}

fn agreement(results: &Results) -> String {
    let agreement = &results.agreement;
    let verdict = match agreement.agree {
        true => "All exact methods found the same",
        false => "THE EXACT METHODS DO NOT AGREE",
    };
    let lines = agreement.methods.iter().map(|of| {
        vec![
            of.name.clone(),
            of.queries.to_string(),
            of.pairs.to_string(),
            of.signatures.to_string(),
            of.checksum.clone(),
        ]
    });
    let header = "exact method | queries | pairs with rows | pairs with signatures | checksum";
    format!("{verdict}, as far as all of them got:\n\n{}", table(header, lines.collect()))
}

/// Their Table 2, and this run.
fn beside_thesis(results: &Results) -> String {
    let header = " | thesis: tables | all s | all q/s | x BPHS-4 | first s | first q/s | x BPHS-4 | here: all q/s \
                  | x BPHS-4 | first q/s | x BPHS-4";
    let theirs = results.published.iter().map(|row| {
        let base = &results.published[0];
        let mut cells = vec![
            row.name.to_owned(),
            row.tables.to_string(),
            row.seconds_all.to_string(),
            kilo(row.all()),
            format!("{:.2}", row.all() / base.all()),
            row.seconds_first.to_string(),
            kilo(row.first()),
            format!("{:.2}", row.first() / base.first()),
        ];
        cells.extend(here(results, row.name));
        cells
    });
    let ours = results.methods.iter().filter(|row| row.form == "ours").map(|row| {
        let mut cells = vec![row.name.clone()];
        cells.extend((0..7).map(|_| String::new()));
        cells.extend(here(results, &row.name));
        cells
    });
    format!(
        "Beside Table 2 of the thesis:\n\n{}\n\n{SOURCE}",
        table(header, theirs.chain(ours).collect())
    )
}

fn here(results: &Results, name: &str) -> [String; 4] {
    let Some(row) = results.methods.iter().find(|row| row.name == name) else {
        return Default::default();
    };
    let times = |rate: &Rate| format!("{:.2}", rate.times_bphs);
    [
        kilo(row.all.queries_a_second),
        times(&row.all),
        kilo(row.first.queries_a_second),
        times(&row.first),
    ]
}

fn unbatched(results: &Results) -> String {
    let lines = results.unbatched.iter().map(|of| {
        vec![
            of.name.clone(),
            of.queries.to_string(),
            kilo(of.queries_a_second),
            format!("{:.2}", of.batched_to_unbatched),
        ]
    });
    let header = "one query a call, all | queries | q/s | batched / unbatched";
    table(header, lines.collect())
}

fn limit(results: &Results) -> String {
    let limit = &results.limit;
    let groups = limit
        .groups
        .iter()
        .map(|group| format!("{:.1}M with {} at once", group.lines_a_second / 1e6, group.at_once));
    let groups = groups.collect::<Vec<_>>().join(", ");
    let lines = &limit.lines;
    format!(
        "Random lines of the cache a second, asked for ahead, in {:.2} GB of huge pages:\n\
         {groups}.\n\
         {} touches {:.1} lines a query: {:.1} of offsets, {:.1} of rows, {:.1} to get from matches to rows.\n\
         At its speed for all right after that, {}, these are {:.1}M a second: {:.0}% of the limit.\n{ABOUT_LINES}",
        limit.bytes as f64 / 1e9,
        limit.name,
        lines.all(),
        lines.offsets,
        lines.rows,
        lines.resolution,
        kilo(limit.queries_a_second),
        limit.share * limit.lines_a_second / 1e6,
        100.0 * limit.share,
    )
}

/// Figure 2.
fn weak_bits(results: &Results) -> String {
    let header = "distance | pairs | flips | thesis | here | 95% here | 99% here | all here | of";
    let lines = results.weak_bits.iter().flat_map(|row| {
        row.shares.iter().map(|share| {
            vec![
                row.distance.to_string(),
                row.pairs.to_string(),
                share.flips.to_string(),
                format!("{:.0}%", 100.0 * share.thesis),
                format!("{:.1}%", 100.0 * share.here),
                row.flips_95.to_string(),
                row.flips_99.to_string(),
                row.flips_all.to_string(),
                row.combinations.to_string(),
            ]
        })
    });
    format!("{ABOUT_WEAK_BITS}\n\n{}", table(header, lines.collect()))
}

/// Figures 7 and 8.
fn growth(results: &Results) -> String {
    let header = "method | rows | key | queries | all q/s | recall | to smallest";
    let mut rows: Vec<_> = results.growth.iter().collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name).then(a.rows.cmp(&b.rows)));
    let lines = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            row.rows.to_string(),
            row.key_bits.to_string(),
            row.queries.to_string(),
            kilo(row.queries_a_second),
            format!("{:.3}", row.recall),
            format!("{:.2}", row.to_smallest),
        ]
    });
    format!("{ABOUT_GROWTH}\n\n{}", table(header, lines.collect()))
}
