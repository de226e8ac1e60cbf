//! Clusters to look at, and examples of what was removed.

use super::{
    differences,
    words::{alike, count_cell, escape, name_cell, number_cell, share, table},
};
use crate::dedup::report::{ClusterReport, Example, Report};

pub(super) fn largest(report: &Report) -> String {
    clusters("Largest clusters", "Those with most documents.", &report.largest)
}

pub(super) fn loosest(report: &Report) -> String {
    let words = "Those with the two members that are least alike: if something was removed that should not have been, \
                 it is likely here.";
    clusters("Loosest clusters", words, &report.loosest)
}

fn clusters(title: &str, words: &str, clusters: &[ClusterReport]) -> String {
    const HEAD: [&str; 6] = [
        "keeper",
        "documents",
        "least alike keeper",
        "least alike each other",
        "longest chain",
        "sources",
    ];
    if clusters.is_empty() {
        return "<p class=none>There are no clusters: no document is like another.</p>\n".into();
    }
    let sampled = match clusters.iter().any(|cluster| cluster.sampled) {
        true => " ~ is found on a part of a large cluster; others in it may be less alike.",
        false => "",
    };
    let lines: Vec<Vec<String>> = clusters.iter().map(cluster_line).collect();
    format!("<p>{words}{sampled}</p>\n{}", table(title, &HEAD, &lines))
}

fn cluster_line(cluster: &ClusterReport) -> Vec<String> {
    let least = f64::from(cluster.least);
    let sampled = if cluster.sampled {
        "<abbr title=\"found on a part of the cluster\">~</abbr>"
    } else {
        ""
    };
    vec![
        name_cell(&cluster.id),
        count_cell(cluster.size as u64),
        number_cell(&alike(cluster.least_to_keeper.into()), cluster.least_to_keeper.into()),
        number_cell(&format!("{sampled}{}", alike(least)), least),
        count_cell(cluster.chain.into()),
        format!("<td>{}</td>", shares(cluster)),
    ]
}

/// Which part of a cluster each source has.
fn shares(cluster: &ClusterReport) -> String {
    let size = cluster.size as u64;
    let named: u64 = cluster.sources.iter().map(|source| source.documents as u64).sum();
    let of = |name: &str, documents: u64| format!("{} {}", escape(name), share(documents, size));
    let mut shares: Vec<String> =
        cluster.sources.iter().map(|source| of(&source.source, source.documents as u64)).collect();
    if named < size {
        shares.push(of("others", size - named));
    }
    shares.join(", ")
}

pub(super) fn examples(report: &Report) -> String {
    if report.examples.is_empty() {
        return "<p class=none>There are none: nothing but exact copies was removed, if anything.</p>\n".into();
    }
    let mut html = "<p>What only the removed document has is <del>struck through</del>, what only its keeper has is \
                    <ins>underlined</ins>.</p>\n"
        .to_owned();
    for (number, example) in report.examples.iter().enumerate() {
        html += &side_by_side(example, number < 3);
    }
    html
}

fn side_by_side(example: &Example, open: bool) -> String {
    let [removed, keeper] = differences::marked(&example.removed_text, &example.keeper_text);
    let open = if open { " open" } else { "" };
    let same = match example.removed_text == example.keeper_text {
        true => "<p>As far as they are shown here, the texts are the same.</p>\n",
        false => "",
    };
    format!(
        "<details class=example{open}>\n<summary><b>{0}</b> removed for <b>{1}</b> <span>similarity {2}, distance {3}</span></summary>\n\
         {same}<div class=pair>\n\
         <article><h3>Removed: {0}</h3><div class=text dir=auto>{removed}</div></article>\n\
         <article><h3>Keeper: {1}</h3><div class=text dir=auto>{keeper}</div></article>\n</div>\n</details>\n",
        escape(&example.removed),
        escape(&example.keeper),
        alike(example.similarity),
        example.distance,
    )
}
