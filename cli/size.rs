//! Sizes of memory as people write them: `500M`, `4G`.

/// The units, each 1024 of the one before.
const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];

/// Bytes from `500M`, `4G`, `1.5 GB`; a plain number is MB.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    read(text, 2).ok_or_else(|| "sizes are written as 500M or 4G; a plain number is MB".to_owned())
}

/// The same for sizes that may be small: a plain number is bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    read(text, 0)
        .ok_or_else(|| "sizes are written as 64M or 2G; a plain number is bytes".to_owned())
}

/// A size whose unit is this power of 1024 if none is written.
fn read(text: &str, plain: i32) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = text[digits.len()..].trim().to_ascii_uppercase();
    let power = match unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit) {
        "" if unit == "B" => 0,
        "" if unit.is_empty() => plain,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let number: f64 = digits.parse().ok().filter(|_| !digits.contains(['e', 'E', '+']))?;
    let bytes = number * 1024_f64.powi(power);
    (1.0..u64::MAX as f64).contains(&bytes).then_some(bytes as u64)
}

/// A size for people.
pub(crate) fn display(bytes: u64) -> String {
    let power = (0..UNITS.len() - 1).find(|&power| bytes >> (10 * power) < 1024);
    let power = power.unwrap_or(UNITS.len() - 1);
    match bytes as f64 / 1024_f64.powi(power as i32) {
        number if power == 0 || number >= 100.0 => format!("{number:.0} {}", UNITS[power]),
        number => format!("{number:.1} {}", UNITS[power]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [
            ("4G", 4 << 30),
            ("500M", 500 << 20),
            ("500", 500 << 20),
            ("1.5g", 3 << 29),
            ("64K", 1 << 16),
            ("2 TiB", 1 << 41),
            ("10GB", 10 << 30),
            ("1024B", 1024),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "G",
            "-1G",
            "0",
            "4X",
            "1e9",
            "4GG",
            "nan",
            "inf",
            "1..5G",
            "4 G B",
            "99999999999G",
            "IB",
        ] {
            assert!(parse(text).is_err() && parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64k"), Ok(65536));
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KB"),
            (500 << 20, "500 MB"),
            (3 << 29, "1.5 GB"),
            (5 << 50, "5120 TB"),
        ] {
            assert_eq!(display(bytes), text);
        }
    }
}
