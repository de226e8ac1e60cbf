//! Archives of files: each member is read as if it lay in a folder.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::chunk::{Flow, Outlet};
use super::format;
use super::record::{At, BadRecord};
use super::source::Reading;

/// Members start at multiples of this.
const BLOCK: u64 = 512;

pub(super) fn read(stream: impl Read, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    if reading.is_too_deep() {
        let problem = "an archive in an archive in an archive …: too deep";
        return out.bad(BadRecord::new(reading.place(At::File), problem));
    }
    let mut archive = tar::Archive::new(stream);
    let mut position = 0;
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => return out.bad(damaged(reading, position, &error)),
    };
    for entry in entries {
        match entry {
            Ok(entry) => {
                let data = entry.raw_file_position();
                position = data.saturating_add(entry.size()).div_ceil(BLOCK).saturating_mul(BLOCK);
                read_member(entry, reading, out)?;
            }
            Err(error) => return out.bad(damaged(reading, position, &error)),
        }
    }
    Ok(())
}

fn read_member<R: Read>(
    entry: tar::Entry<'_, R>,
    archive: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let path = path.strip_prefix("./").unwrap_or(&path);
    if !entry.header().entry_type().is_file() || is_hidden(path) {
        return Ok(());
    }
    let (Some(format), compression) = format::of_name(path) else {
        archive.tally.files.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    };
    let member = Reading {
        name: Arc::from(format!("{}/{path}", archive.name)),
        format,
        compression,
        depth: archive.depth + 1,
        ..*archive
    };
    let left = entry.size();
    member.stream(Box::new(Member { inner: entry, left }), out)
}

fn is_hidden(path: &str) -> bool {
    Path::new(path).iter().any(|part| {
        let part = part.as_encoded_bytes();
        part.starts_with(b".") && part != b"." && part != b".."
    })
}

fn damaged(reading: &Reading<'_>, position: u64, error: &io::Error) -> BadRecord {
    let what = match position {
        0 => "this is no tar archive, or it is damaged",
        _ => "the tar archive is damaged here",
    };
    BadRecord::broken(reading.place(At::Byte(position)), format!("{what} ({error})"))
}

/// A member that knows how long it should be: a cut archive must not pass for a short file.
struct Member<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Member<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(n as u64);
        if n == 0 && self.left > 0 && !buffer.is_empty() {
            let problem = format!("the archive is cut short: {} bytes are missing here", self.left);
            return Err(io::Error::other(problem));
        }
        Ok(n)
    }
}
