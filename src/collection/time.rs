//! Times, as people and programs read them.

/// A time in milliseconds since 1970 as RFC 3339 writes it, in UTC.
pub fn rfc3339(time: i64) -> String {
    let (days, rest) = (time.div_euclid(86_400_000), time.rem_euclid(86_400_000));
    let (year, month, day) = date_of(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, thousandths) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}Z")
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Years begin in March here, so that the
/// day that not every year has is the last one.
fn date_of(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months have 153 days, whichever they are.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_735_689_599_007, "2024-12-31T23:59:59.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(time), text);
        }
    }
}
