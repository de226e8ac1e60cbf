//! Collections as commands open them, and their records as they are shown.

use std::path::Path;

use lookalike::collection::{Collection, Record};
use serde_json::{Value, json};

use crate::{commands::Global, failure::hinted, output::say};

/// Opens a collection to write to it.
pub(crate) fn open(folder: &Path, global: &Global) -> anyhow::Result<Collection> {
    check_folder(folder)?;
    Ok(told(Collection::open(folder)?, global))
}

/// Opens a collection to read it, whoever else writes.
pub(crate) fn open_reader(folder: &Path, global: &Global) -> anyhow::Result<Collection> {
    check_folder(folder)?;
    Ok(told(Collection::open_reader(folder)?, global))
}

/// Refuses what is no collection, and says what it is instead.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    if Collection::is_in(folder) {
        return Ok(());
    }
    let path = folder.display();
    let make = format!("`lookalike create {path}` makes one");
    let (problem, hint) = match (folder.is_dir(), folder.exists()) {
        (true, _) => (
            "is a folder, but no collection",
            "`lookalike create FOLDER` makes one in a new folder",
        ),
        (_, true) => (
            "is a file, not a collection",
            "a collection is a folder; `lookalike create FOLDER` makes one",
        ),
        _ => ("there is no such collection", make.as_str()),
    };
    Err(hinted(format!("{path}: {problem}"), hint))
}

/// Tells what was noticed when a collection was opened.
fn told(collection: Collection, global: &Global) -> Collection {
    collection.notes().iter().for_each(|note| say(global, || format!("note: {note}")));
    collection
}

/// A record for programs.
pub(crate) fn json_of(record: &Record) -> Value {
    let mut json = json!({
        "id": record.id,
        "signature": record.signature.to_string(),
        "payload": record.payload_value(),
        "time_ms": record.time,
    });
    if let Some(text) = &record.text {
        json["text"] = text.as_str().into();
    }
    json
}

/// A time in milliseconds since 1970 as RFC 3339 writes it, in UTC.
pub(crate) fn rfc3339(time: i64) -> String {
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
