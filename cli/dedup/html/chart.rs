//! Bars as SVG, drawn for the width of a phone, with words that are read aloud or shown on hover.

use std::fmt::Write;

use lookalike_thesis::plot::{label, round_step};

use super::words::{escape, grouped};

// Texts keep their size relative to this: on a phone it is about the width of the screen.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 230.0;
// The frame of a histogram; ticks and titles are outside.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 422.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 182.0;
/// The height of a row: a line of text, a bar, a gap.
const ROW: f64 = 42.0;
/// Where its bar begins, and how high that is.
const BAR: f64 = 21.0;
const THICK: f64 = 14.0;
/// Few columns need not fill the frame.
const WIDEST: f64 = 56.0;
/// So many letters fit above a bar.
const LETTERS: usize = 54;

/// Columns side by side, one for each number from `first` on.
pub(super) struct Histogram<'a> {
    pub(super) title: &'a str,
    /// What the numbers are.
    pub(super) axis: &'a str,
    pub(super) first: usize,
    pub(super) counts: &'a [u64],
    /// The name of a number; those that are multiples of `every` are written below their columns.
    pub(super) name: &'a dyn Fn(usize) -> String,
    pub(super) every: usize,
    /// Whether equal heights are equal ratios.
    pub(super) log: bool,
}

/// A bar with a line of text above it.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: String,
    /// Stretches from the left, as shares of the width, and their kinds.
    pub(super) parts: Vec<(f64, &'static str)>,
}

impl Histogram<'_> {
    pub(super) fn svg(&self) -> String {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let scale = Scale::up_to(most, self.log);
        let mut svg = opening(self.title, HEIGHT);
        for tick in scale.ticks() {
            let y = up(scale.place(tick));
            put(&mut svg, format_args!("<path class=grid d=\"M{LEFT} {y:.1}H{RIGHT}\"/>"));
            put(&mut svg, text(LEFT - 6.0, y + 4.0, "end", &label(tick)));
        }
        let step = (RIGHT - LEFT) / self.counts.len().max(1) as f64;
        for (number, &count) in (self.first..).zip(self.counts) {
            let left = LEFT + step * (number - self.first) as f64;
            if count > 0 {
                self.column(number, count, (left, step), &scale, &mut svg);
            }
            if number % self.every == 0 {
                let name = (self.name)(number);
                put(&mut svg, text(left + step / 2.0, BOTTOM + 17.0, "middle", &name));
            }
        }
        put(&mut svg, text((LEFT + RIGHT) / 2.0, BOTTOM + 40.0, "middle", self.axis));
        svg + "</svg>"
    }

    fn column(
        &self,
        number: usize,
        count: u64,
        (left, step): (f64, f64),
        scale: &Scale,
        svg: &mut String,
    ) {
        // One of many is still seen.
        let height = (BOTTOM - up(scale.place(count as f64))).max(1.5);
        let gap = (step * 0.15).min(4.0);
        let words = format!("{}: {}", (self.name)(number), grouped(count));
        let width = (step - gap).min(WIDEST);
        let (x, y) = (left + (step - width) / 2.0, BOTTOM - height);
        put(
            svg,
            format_args!(
                "<rect class=bar x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"><title>{}</title></rect>",
                escape(&words)
            ),
        );
    }
}

/// Rows one below the other; a mark is a line across each of the bars, at a share of the width.
pub(super) fn rows(title: &str, rows: &[Row], mark: Option<(f64, &str)>) -> String {
    let foot = if mark.is_some() { 26.0 } else { 4.0 };
    let height = ROW * rows.len() as f64 + foot;
    let mut svg = opening(title, height);
    for (number, row) in rows.iter().enumerate() {
        row.draw(ROW * number as f64, &mut svg);
    }
    if let Some((share, words)) = mark {
        let x = (WIDTH * share).clamp(1.0, WIDTH - 1.0);
        let lines = (0..rows.len()).map(|number| ROW * number as f64 + BAR - 3.0);
        let lines: String = lines.map(|y| format!("M{x:.1} {y:.1}v{:.1}", THICK + 6.0)).collect();
        put(&mut svg, format_args!("<path class=mark d=\"{lines}\"/>"));
        // The words stay inside the picture.
        let anchor = match share {
            share if share < 0.2 => "start",
            share if share > 0.8 => "end",
            _ => "middle",
        };
        put(&mut svg, text(x, height - 6.0, anchor, words));
    }
    svg + "</svg>"
}

impl Row {
    fn draw(&self, top: f64, svg: &mut String) {
        let name = clipped(&self.name, LETTERS.saturating_sub(self.value.chars().count()).max(8));
        put(svg, format_args!("<g><title>{}: {}</title>", escape(&self.name), escape(&self.value)));
        put(svg, text(0.0, top + 15.0, "start", &name));
        put(svg, text(WIDTH, top + 15.0, "end", &self.value));
        let mut x = 0.0;
        for &(share, kind) in &self.parts {
            let width = (WIDTH * share).clamp(0.0, WIDTH - x);
            let y = top + BAR;
            put(
                svg,
                format_args!(
                    "<rect class={kind} x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{THICK}\"/>"
                ),
            );
            x += width;
        }
        put(svg, "</g>");
    }
}

fn opening(title: &str, height: f64) -> String {
    let title = escape(title);
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=img aria-label=\"{title}\">\n")
}

fn put(svg: &mut String, element: impl std::fmt::Display) {
    writeln!(svg, "{element}").expect("a string takes all");
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    let words = escape(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor={anchor}>{words}</text>")
}

fn up(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}

/// A name without its middle if it is long: paths differ at their ends.
fn clipped(name: &str, most: usize) -> String {
    let width = |c: &char| if *c < '\u{1100}' { 1 } else { 2 };
    let letters: Vec<char> = name.chars().collect();
    if letters.iter().map(width).sum::<usize>() <= most {
        return name.to_owned();
    }
    let fitting = |letters: &mut dyn Iterator<Item = &char>, most: usize| {
        let mut used = 0;
        letters.take_while(|c| (used += width(c), used <= most).1).count()
    };
    let start = fitting(&mut letters.iter(), most / 3);
    let end = fitting(&mut letters.iter().rev(), most - most / 3 - 1);
    let text = |letters: &[char]| letters.iter().collect::<String>();
    format!("{}…{}", text(&letters[..start]), text(&letters[letters.len() - end..]))
}

/// Heights of counts.
struct Scale {
    top: f64,
    step: f64,
    log: bool,
}

/// Where a logarithmic scale begins: below one, so that one is seen.
const LOG_BASE: f64 = 0.5;

impl Scale {
    fn up_to(most: f64, log: bool) -> Self {
        // Counts have no fractions.
        let step = round_step(most / 4.0).max(1.0);
        let top = if log { most.max(2.0) } else { (most / step).ceil() * step };
        Scale { top, step, log }
    }

    fn place(&self, count: f64) -> f64 {
        match self.log {
            true => ((count / LOG_BASE).ln() / (self.top / LOG_BASE).ln()).max(0.0),
            false => count / self.top,
        }
    }

    fn ticks(&self) -> Vec<f64> {
        let next = |tick: &f64| Some(if self.log { tick * 10.0 } else { tick + self.step });
        let first = if self.log { 1.0 } else { 0.0 };
        let ticks = std::iter::successors(Some(first), next);
        ticks.take_while(|&tick| tick <= self.top * 1.000_001).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[u64], log: bool) -> String {
        let name = |number: usize| number.to_string();
        Histogram { title: "t", axis: "a", first: 0, counts, name: &name, every: 1, log }.svg()
    }

    /// The value of an attribute of each bar.
    fn values(svg: &str, attribute: &str) -> Vec<f64> {
        let bars = svg.split("<rect ").skip(1);
        let value = |bar: &str| {
            let (_, rest) = bar.split_once(&format!(" {attribute}=\""))?;
            rest.split_once('"')?.0.parse().ok()
        };
        bars.filter_map(value).collect()
    }

    #[test]
    fn columns_are_as_high_as_their_counts() {
        let svg = histogram(&[4, 0, 1, 2], false);
        assert_eq!(values(&svg, "height"), [170.0, 42.5, 85.0]);
        let log = values(&histogram(&[1, 10, 100, 1000], true), "height");
        let steps: Vec<f64> = log.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 0.02) && log[0] > 5.0, "{log:?}");
        assert_eq!(log[3], 170.0);
    }

    #[test]
    fn odd_counts_have_pictures() {
        for counts in [&[][..], &[0], &[1], &[u64::MAX, 1]] {
            for log in [false, true] {
                let svg = histogram(counts, log);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                let inside = |y: f64| (TOP - 0.1..=BOTTOM).contains(&y);
                assert!(values(&svg, "y").into_iter().all(inside), "{svg}");
            }
        }
        assert!(rows("t", &[], None).ends_with("</svg>"));
    }

    #[test]
    fn parts_share_the_width() {
        let row = |parts| Row { name: "<a>".into(), value: "1".into(), parts };
        let svg = rows("t", &[row(vec![(0.25, "removed"), (0.75, "kept")])], Some((0.5, "50%")));
        assert_eq!(values(&svg, "width"), [110.0, 330.0]);
        assert_eq!(values(&svg, "x")[1], 110.0);
        assert!(
            svg.contains("M220.0 18.0v20.0") && svg.contains("&lt;a&gt;") && !svg.contains("<a>")
        );
        let over = rows("t", &[row(vec![(f64::INFINITY, "bar")])], None);
        assert_eq!(values(&over, "width"), [WIDTH]);
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(clipped("short", 8), "short");
        assert_eq!(clipped("crawl/2024/part-17.jsonl", 13), "craw…17.jsonl");
        assert_eq!(clipped("一二三四五六七八", 9), "一…七八");
    }
}
