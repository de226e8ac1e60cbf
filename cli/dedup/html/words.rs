//! Numbers, texts and tables as HTML.

use std::fmt::Write;

/// A table that scrolls by itself where it is too wide, by keyboard as well.
pub(super) fn table(title: &str, head: &[&str], lines: &[Vec<String>]) -> String {
    let head: String = head.iter().map(|name| format!("<th scope=col>{name}</th>")).collect();
    let lines: String =
        lines.iter().map(|cells| format!("<tr>{}</tr>\n", cells.concat())).collect();
    format!(
        "<div class=scroll role=region aria-label=\"{title}\" tabindex=0>\n<table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{lines}</tbody>\n</table>\n</div>\n"
    )
}

pub(super) fn name_cell(name: &str) -> String {
    format!("<th scope=row dir=auto>{}</th>", escape(name))
}

pub(super) fn count_cell(count: u64) -> String {
    number_cell(&grouped(count), count as f64)
}

/// A number as people read it, and as it is sorted.
pub(super) fn number_cell(html: &str, value: f64) -> String {
    format!("<td class=number data-value=\"{value}\">{html}</td>")
}

/// Similarities are not rounded up: 1 is said of nothing less.
pub(super) fn alike(similarity: f64) -> String {
    // Single precision may be a little below the hundredth that it stands for.
    format!("{:.3}", ((similarity * 1000.0 + 1e-3).floor() / 1000.0))
}

pub(super) fn share(part: u64, all: u64) -> String {
    percent(part as f64 / all.max(1) as f64)
}

/// Neither nothing nor all is said of what is only nearly so.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 0.1 => "under 0.1%".into(),
        percent if percent < 100.0 && percent > 99.9 => "over 99.9%".into(),
        percent if (percent - percent.round()).abs() < 0.05 => format!("{percent:.0}%"),
        percent => format!("{percent:.1}%"),
    }
}

pub(super) fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        _ if seconds < 0.1 => format!("{:.0} ms", 1000.0 * seconds),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        _ if whole < 60 => format!("{whole} s"),
        _ if whole < 3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 document`, `2,000 documents`.
pub(super) fn many(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Text for HTML, in elements and in quoted attributes. Characters that no page may have are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c if c.is_control() && !c.is_whitespace() => html.push(char::REPLACEMENT_CHARACTER),
            c => html.push(c),
        }
    }
    html
}

pub(super) fn put(html: &mut String, element: impl std::fmt::Display) {
    writeln!(html, "{element}").expect("a string takes all");
}
