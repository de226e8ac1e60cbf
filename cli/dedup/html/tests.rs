use lookalike::dedup::{Checked, Counts, Dial, audit::SourceAudit};
use serde_json::json;

use super::{words::alike, *};
use crate::dedup::report::{ClusterReport, ClusterSource, Example, SourceReport, Stage};

/// What must not come through as it is.
const NASTY: &str = "<script>alert(1)</script>&\"'";

/// The report of a run on so many documents that are all different.
fn empty(documents: u64) -> Report {
    Report {
        program: "lookalike 0.1.0".into(),
        settings: json!({ "similarity": 0.7, "linkage": "star", "keep": "first" }),
        dial: Dial::new(0.7, 256, None).unwrap(),
        documents,
        kept: documents,
        removed: 0,
        copies: 0,
        unsigned: 0,
        without_field: 0,
        elsewhere: 0,
        elsewhere_compared: 0,
        added: None,
        skipped: 0,
        text_bytes: 100 * documents,
        removed_bytes: 0,
        clusters: 0,
        checked: Checked::default(),
        counts: Counts::default(),
        max_loss: 0.5,
        alarms: Vec::new(),
        sources: Vec::new(),
        largest: Vec::new(),
        loosest: Vec::new(),
        sizes: Vec::new(),
        distances: vec![0; 54],
        similarities: vec![0; 101],
        examples: Vec::new(),
        stages: Vec::new(),
        peak_memory: None,
    }
}

fn nasty_cluster() -> ClusterReport {
    let source = ClusterSource { source: NASTY.into(), documents: 3 };
    ClusterReport {
        id: NASTY.into(),
        size: 4,
        least_to_keeper: 0.75,
        least: 0.6,
        sampled: true,
        chain: 2,
        sources: vec![source],
    }
}

/// A report with something in every place, and names and texts that try to break out.
fn full() -> Report {
    let mut report = empty(2000);
    (report.kept, report.removed, report.copies, report.removed_bytes) = (1200, 800, 500, 80_000);
    (report.unsigned, report.skipped, report.clusters) = (7, 1, 150);
    report.settings =
        json!({ "input": [[NASTY, 12, "1"]], "keep": NASTY, "fields": { "id": NASTY } });
    report.counts.huge = vec![5000];
    report.alarms = vec![NASTY.into(); 25];
    report.checked = Checked {
        documents: 1000,
        with_pairs: 90,
        pairs: 120,
        recall_of_pairs: Some(0.985),
        recall: Some(0.99),
        kept: 600,
        left_behind: 2,
        ..Checked::default()
    };
    let audit = SourceAudit { documents: 1000, removed: 700 };
    report.sources = vec![SourceReport { source: NASTY.into(), audit }; 30];
    report.largest = vec![nasty_cluster()];
    report.loosest = vec![nasty_cluster(); 2];
    report.sizes = vec![(2, 100), (4, 40), (1024, 10)];
    (report.distances[0], report.distances[20]) = (510, 290);
    (report.similarities[85], report.similarities[100]) = (290, 510);
    report.examples = vec![Example {
        removed: NASTY.into(),
        keeper: NASTY.into(),
        distance: 20,
        similarity: 0.85,
        removed_text: format!("one {NASTY} two"),
        keeper_text: format!("one {NASTY} three"),
    }];
    let stage =
        |name, seconds, resumed| Stage { name, seconds, peak_memory: Some(1 << 28), resumed };
    report.stages = vec![stage("sign", 2.0, true), stage("decide", 3.0, false)];
    report.peak_memory = Some(1 << 29);
    report
}

/// Every element that opens closes, in order.
fn assert_well_formed(html: &str) {
    const VOID: [&str; 3] = ["!doctype", "meta", "link"];
    let (head, rest) = html.split_once("<style>").unwrap();
    let (body, _) = rest.split_once("</style>").unwrap().1.split_once("<script>").unwrap();
    let markup = [head, body].concat();
    let mut open = Vec::new();
    for tag in markup.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(tag.matches('"').count() % 2 == 0 && !text.contains('>'), "{tag} {text}");
        let name = tag.split([' ', '\n']).next().unwrap();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if tag.ends_with('/') || VOID.contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, ["html", "body"]);
    assert!(!html.contains("NaN") && !html.contains("inf%"));
}

#[test]
fn nothing_breaks_out_of_its_place() {
    let html = page(&full());
    assert_well_formed(&html);
    // Our own script, and nothing else.
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("alert(1)</") && !html.contains("&\"'"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;"));
    assert_eq!(escape("a\0b\x1b\tc\n\u{85}"), "a\u{fffd}b\u{fffd}\tc\n\u{85}");
}

#[test]
fn every_section_is_there() {
    let html = page(&full());
    for (id, heading, _) in SECTIONS {
        assert!(html.contains(&format!("<section id={id} ")), "{id}");
        assert!(html.contains(&format!("<a href=\"#{id}\">{heading}</a>")), "{id}");
    }
    for words in [
        "800 of 2,000 documents (40%) were removed, 78.1 KB of text.",
        "<strong>300</strong><small>15%</small>",
        "⚠ 25 alarms.",
        "and 5 more, in report.json",
        "99% of the near-duplicates in the sample were found",
        "at least as many as promised (98%)",
        "120 pairs, of which 98.5% were found",
        "2 of 600 kept documents of the sample (0.3%)",
        "without 500 exact copies",
        "<h3>Distances</h3>",
        "<h3>Similarities</h3>",
        "<h3>Cluster sizes</h3>",
        "<h3>Loss of each source</h3>",
        "limit 50%",
        "700 of 1,000 (70%), over the limit",
        "<h3>Time</h3>",
        "done by an earlier run",
        "<h3>Memory</h3>",
        "others 25%",
        "<del>two</del>",
        "<ins>three</ins>",
        "<th scope=row dir=auto>fields.id</th>",
        "<strong>5,000 documents</strong> in groups",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn nothing_comes_from_elsewhere() {
    for html in [page(&full()), page(&empty(0))] {
        let html = html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http://", "https://", "src=", "@import", "url(", "fetch("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}

#[test]
fn empty_reports_say_so() {
    for (documents, sentence) in [
        (0, "There were no documents."),
        (1, "Nothing was removed: there is one document only."),
        (3, "Nothing was removed: none of 3 documents is like another."),
    ] {
        let html = page(&empty(documents));
        assert_well_formed(&html);
        assert!(html.contains(&format!("<h1>{sentence}</h1>")), "{documents}");
        assert!(html.contains("no check") && html.contains("No near-duplicates."));
        assert_eq!(html.matches("There are no clusters").count(), 2);
        assert!(!html.contains("class=alarm") && !html.contains("<del>"));
    }
}

#[test]
fn checks_are_told_as_they_are() {
    let told = |change: &dyn Fn(&mut Checked)| {
        let mut report = full();
        change(&mut report.checked);
        check(&report)
    };
    assert!(told(&|checked| checked.recall = Some(0.9)).contains("⚠ fewer than promised"));
    assert!(told(&|checked| checked.pairs = 12).contains("a rough number"));
    assert!(told(&|checked| checked.left_behind = 0).contains("No document that is kept"));
    assert!(told(&|checked| checked.recall = None).contains("there was nothing to miss"));
}

#[test]
fn the_page_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    write(&full(), &path).unwrap();
    let html = std::fs::read_to_string(&path).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
}

#[test]
fn numbers_are_for_people() {
    assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(
        [0.0, 0.000_1, 0.5, 0.123_4, 0.999_9, 1.0].map(percent),
        ["0%", "under 0.1%", "50%", "12.3%", "over 99.9%", "100%"]
    );
    assert_eq!(
        [0.012, 2.34, 59.4, 61.0, 3720.0].map(time),
        ["12 ms", "2.3 s", "59 s", "1 min 1 s", "1 h 2 min"]
    );
    assert_eq!([f64::from(0.7_f32), 0.999_96, 1.0].map(alike), ["0.700", "0.999", "1.000"]);
}
