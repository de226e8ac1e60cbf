//! The figures of the thesis, drawn from what was measured here.

use lookalike_thesis::{
    plot::{Axis, Plot, Series},
    weak_bits::random_share,
};

use super::results::Results;

pub(super) fn log_axis(title: &str) -> Axis {
    Axis { title: title.to_owned(), log: true }
}

/// Figure 2: the share of the neighbors that is found within a number of flips, weakest bits first and in random order.
pub(crate) fn weak_bits(results: &Results) -> String {
    let weakest = results.weak_bits.iter().map(|row| Series {
        name: format!("distance {}, weakest first", row.distance),
        points: row.curve.clone(),
    });
    let random = results.weak_bits.iter().map(|row| Series {
        name: format!("distance {}, random", row.distance),
        points: random(row.distance, row.combinations),
    });
    let plot = Plot {
        title: "Neighbors found after so many flips".to_owned(),
        x: log_axis("flips"),
        y: Axis { title: "share of the neighbors".to_owned(), log: false },
        series: weakest.chain(random).collect(),
    };
    plot.svg()
}

/// In random order, at steps that are even on a logarithmic axis.
fn random(distance: u32, combinations: u64) -> Vec<(f64, f64)> {
    const STEPS: i32 = 40;
    let at = |step| (combinations as f64).powf(f64::from(step) / f64::from(STEPS)).round();
    (0..=STEPS).map(at).map(|flips| (flips, random_share(distance, flips as usize))).collect()
}

/// Figures 7 and 8: speed by the number of stored rows.
pub(crate) fn growth(results: &Results) -> String {
    let mut series: Vec<Series> = Vec::new();
    for row in &results.growth {
        let point = (row.rows as f64, row.queries_a_second);
        match series.iter_mut().find(|series| series.name == row.name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: row.name.clone(), points: vec![point] }),
        }
    }
    let plot = Plot {
        title: "Speed by the number of stored rows, all within 3 bits".to_owned(),
        x: log_axis("stored rows"),
        y: log_axis("queries a second"),
        series,
    };
    plot.svg()
}
