//! Line plots as SVG: enough for the figures, readable on light and on dark pages, nothing to run.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
// The frame around the curves; titles and ticks are outside, the legend on the right.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 560.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 360.0;

/// Told apart by colour and, for those who do not see colours, by dashes.
const COLOURS: [&str; 6] = ["#3b82c4", "#d55e00", "#1a9e77", "#b860a0", "#b58900", "#808080"];
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "9 3 2 3"];

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:15px}.paper{fill:#fff}\
.grid{stroke:#ddd}.line{fill:none;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#161616}.grid{stroke:#3a3a3a}}";

/// A plot of some curves.
#[derive(Debug, Clone, Default)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
}

/// An axis: its title says the unit.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// Whether equal distances are equal ratios. Points that are not positive have no place on such an axis.
    pub log: bool,
}

/// A named curve.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    /// The plot as an SVG document.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Scale::over(self.x.log, points().map(|point| point.0));
        let y = Scale::over(self.y.log, points().map(|point| point.1));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
             <title>{0}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"26\">{0}</text>\n",
            escape(&self.title)
        );
        self.write_axes(&x, &y, &mut svg);
        for (number, series) in self.series.iter().enumerate() {
            write_series(number, series, &x, &y, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn write_axes(&self, x: &Scale, y: &Scale, svg: &mut String) {
        for tick in x.ticks() {
            let (at, label) = (across(x.place(tick)), label(tick));
            put(svg, format_args!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
            put(svg, text(at, BOTTOM + 18.0, "middle", &label));
        }
        for tick in y.ticks() {
            let (at, label) = (up(y.place(tick)), label(tick));
            put(svg, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
            put(svg, text(LEFT - 8.0, at + 4.0, "end", &label));
        }
        put(svg, text((LEFT + RIGHT) / 2.0, BOTTOM + 44.0, "middle", &self.x.title));
        let (title, middle) = (escape(&self.y.title), (TOP + BOTTOM) / 2.0);
        put(
            svg,
            format_args!(
                "<text transform=\"translate(20 {middle})rotate(-90)\" text-anchor=\"middle\">{title}</text>"
            ),
        );
    }
}

fn write_series(number: usize, series: &Series, x: &Scale, y: &Scale, svg: &mut String) {
    let places = series.points.iter().filter(|point| x.has(point.0) && y.has(point.1));
    let places: Vec<(f64, f64)> =
        places.map(|point| (across(x.place(point.0)), up(y.place(point.1)))).collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (colour, dash) = (COLOURS[number % COLOURS.len()], DASHES[number % DASHES.len()]);
    let look = format!("class=\"line\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\"");
    put(svg, format_args!("<polyline {look} points=\"{}\"/>", line.join(" ")));
    // Few points were measured one by one, many are a curve.
    for (x, y) in places.iter().filter(|_| places.len() <= 32) {
        put(svg, format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
    }
    let (left, middle) = (RIGHT + 16.0, TOP + 10.0 + 22.0 * number as f64);
    put(svg, format_args!("<path {look} d=\"M{left} {middle}h28\"/>"));
    put(svg, text(left + 36.0, middle + 4.0, "start", &series.name));
}

fn put(svg: &mut String, element: impl std::fmt::Display) {
    writeln!(svg, "{element}").expect("a string takes all");
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    let words = escape(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>")
}

fn escape(words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    words.replace('"', "&quot;")
}

fn across(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share
}

fn up(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}

/// Where values are on an axis. In the units of the axis: on a logarithmic one, powers of ten.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// Covers the values, from one round number to another.
    fn over(log: bool, values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Scale { log, low: f64::INFINITY, high: f64::NEG_INFINITY, step: 1.0 };
        for value in values {
            if scale.has(value) {
                let value = scale.unit(value);
                (scale.low, scale.high) = (scale.low.min(value), scale.high.max(value));
            }
        }
        if scale.low > scale.high {
            (scale.low, scale.high) = (0.0, 1.0);
        }
        if !log {
            scale.widen();
        }
        scale.low = (scale.low / scale.step).floor() * scale.step;
        scale.high = ((scale.high / scale.step).ceil() * scale.step).max(scale.low + scale.step);
        scale
    }

    /// Down to zero unless the values are far from it, and cut into about six steps.
    fn widen(&mut self) {
        if self.low == self.high {
            self.high += self.low.abs().max(1.0);
        }
        if self.low > 0.0 && self.low < self.high / 2.0 {
            self.low = 0.0;
        }
        self.step = round_step((self.high - self.low) / 6.0);
    }

    fn has(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || !self.log)
    }

    fn unit(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    fn place(&self, value: f64) -> f64 {
        (self.unit(value) - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let steps = ((self.high - self.low) / self.step).round() as u32;
        let at = |number| self.low + self.step * f64::from(number);
        (0..=steps).map(at).map(|unit| if self.log { 10_f64.powf(unit) } else { unit })
    }
}

/// 1, 2 or 5 times a power of ten, and at least `step`.
pub fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0]
        .map(|times| times * power)
        .into_iter()
        .find(|&s| s >= step)
        .unwrap_or(10.0 * power)
}

/// A number as short as ticks need it: 20K, 1.5M.
pub fn label(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "K"),
        _ => (value, ""),
    };
    // Nine digits, so that a sum of steps shows as the round number that it is.
    let digits = format!("{value:.9}");
    format!("{}{suffix}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(log: bool, points: &[(f64, f64)]) -> String {
        let axis = |title: &str, log| Axis { title: title.to_owned(), log };
        let series = |name: &str| Series { name: name.to_owned(), points: points.to_vec() };
        Plot {
            title: "Recall & \"flips\" <h = 3>".to_owned(),
            x: axis("k > 0", log),
            y: axis("recall", false),
            series: vec![series("a<b"), series("c&d")],
        }
        .svg()
    }

    /// Every element that opens closes, in order, and what is not markup is escaped.
    fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("a tag ends");
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?} stay open");
        assert!(
            svg.replace("&amp;", "").split('&').skip(1).all(|rest| {
                ["lt;", "gt;", "quot;"].iter().any(|entity| rest.starts_with(entity))
            })
        );
    }

    #[test]
    fn plots_are_well_formed_whatever_the_points() {
        let odd = [
            (0.0, 1.0),
            (-5.0, f64::NAN),
            (f64::INFINITY, 2.0),
            (3.0, 3.0),
            (3.0, -1e300),
            (1e300, 1.0),
        ];
        for log in [false, true] {
            for count in 0..=odd.len() {
                let svg = plot(log, &odd[..count]);
                assert_well_formed(&svg);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
        let svg = plot(false, &[(1.0, 2.0)]);
        assert!(svg.contains("Recall &amp; &quot;flips&quot; &lt;h = 3&gt;"));
        assert!(svg.contains(">a&lt;b</text>") && svg.contains(">k &gt; 0</text>"));
        assert_eq!(svg.matches("<polyline").count(), 2);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let ticks = |log, values: &[f64]| {
            let scale = Scale::over(log, values.iter().copied());
            scale.ticks().map(label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(false, &[0.1, 0.95]), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(ticks(false, &[60e6, 1e6]), "0 10M 20M 30M 40M 50M 60M");
        assert_eq!(ticks(false, &[7.0]), "6 8 10 12 14");
        assert_eq!(ticks(true, &[1.0, 41_664.0]), "1 10 100 1000 10K 100K");
        assert_eq!(ticks(true, &[0.02, 0.0, 0.5]), "0.01 0.1 1");
    }

    #[test]
    fn points_are_where_they_belong() {
        let svg = plot(true, &[(1.0, 0.0), (10.0, 0.5), (100.0, 1.0)]);
        assert!(svg.contains("points=\"76.0,360.0 318.0,202.0 560.0,44.0\""), "{svg}");
    }
}
