//! Numbers and tables as text.

/// Thousands.
pub(super) fn kilo(rate: f64) -> String {
    match rate / 1e3 {
        rate if rate < 10.0 => format!("{rate:.2}K"),
        rate if rate < 100.0 => format!("{rate:.1}K"),
        rate => format!("{rate:.0}K"),
    }
}

/// A table with this header, columns apart by `|`. They are as wide as their cells; the first is text, the others are
/// numbers.
pub(crate) fn table(header: &str, lines: Vec<Vec<String>>) -> String {
    let header: Vec<String> = header.split('|').map(|name| name.trim().to_owned()).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&header]).map(|line| line[column].chars().count());
        cells.max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells =
            cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(column, &width)| match column {
        0 => "-".repeat(width),
        _ => format!("{}:", "-".repeat(width - 1)),
    });
    let rule = rule.collect();
    [&header, &rule].into_iter().chain(&lines).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let lines =
            vec![vec!["a".to_owned(), "12.5".to_owned()], vec!["long".to_owned(), "3".to_owned()]];
        let text = "| name |  q/s |\n| ---- | ---: |\n| a    | 12.5 |\n| long |    3 |";
        assert_eq!(table("name | q/s", lines), text);
        assert_eq!([1_234.0, 61_960.0, 2_417_000.0].map(kilo), ["1.23K", "62.0K", "2417K"]);
    }
}
