//! Blocks of whole lines. Looking for line ends is all the reading thread does.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::args::Options;
use super::chunk::{Body, CHUNK_BYTES, Closed, Flow, Outlet, Record};
use super::record::{At, BadRecord, Place};
use super::source::Reading;

/// Some whole lines of a file.
pub(super) struct Lines {
    pub(super) file: Arc<str>,
    pub(super) bytes: Vec<u8>,
    /// The number of the first one.
    pub(super) first: u64,
}

impl Lines {
    /// Has `parse` make a document of every line that is not blank.
    pub(super) fn parse(
        &self,
        options: &Options,
        found: &mut Vec<Record>,
        parse: impl Fn(Place, &str) -> Record,
    ) {
        // One check for all lines is much faster than one for each.
        let all_valid = simdutf8::basic::from_utf8(&self.bytes).ok();
        for (number, range) in self.numbered() {
            let line = &self.bytes[range.clone()];
            let place = Place::new(&self.file, At::Line(number));
            let text = match all_valid {
                Some(all) => Ok(&all[range]),
                None => utf8(line, &place),
            };
            found.push(match text {
                _ if line.len() as u64 > options.max_document_bytes => {
                    Err(too_long(place, options))
                }
                Ok(text) => parse(place, text),
                Err(bad) => Err(bad),
            });
        }
    }

    /// Where each line that is not blank is, without its end.
    pub(super) fn records(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.numbered().map(|(_, range)| range)
    }

    /// The same, with the numbers of the lines.
    fn numbered(&self) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let lines = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let mut start = Some(0);
        let ranges = std::iter::from_fn(move || {
            let from = start?;
            let end = memchr::memchr(b'\n', &lines[from..]).map_or(lines.len(), |n| from + n);
            start = Some(end + 1).filter(|&next| next <= lines.len());
            let cut = usize::from(lines[from..end].ends_with(b"\r"));
            Some(from..end - cut)
        });
        let numbered = (self.first..).zip(ranges);
        numbered.filter(|(_, range)| !self.bytes[range.clone()].trim_ascii().is_empty())
    }
}

/// `bytes` as text, or where they are none.
pub(super) fn utf8<'a>(bytes: &'a [u8], place: &Place) -> Result<&'a str, BadRecord> {
    simdutf8::compat::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        BadRecord::new(place.clone(), format!("invalid UTF-8 at byte {at} (0x{:02x})", bytes[at]))
            .hint("convert it to UTF-8 first, for example with iconv")
    })
}

pub(super) fn read_json(
    stream: &mut dyn Read,
    reading: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    Cutter::new(stream, reading, Body::JsonLines).run(out)
}

pub(super) fn read_text(
    stream: &mut dyn Read,
    reading: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    Cutter::new(stream, reading, Body::TextLines).run(out)
}

struct Cutter<'a, 'r> {
    stream: &'a mut dyn Read,
    reading: &'a Reading<'r>,
    body: fn(Lines) -> Body,
    /// The number of the line at which `block` starts.
    line: u64,
    /// Read, but not handed out.
    block: Vec<u8>,
}

impl<'a, 'r> Cutter<'a, 'r> {
    fn new(stream: &'a mut dyn Read, reading: &'a Reading<'r>, body: fn(Lines) -> Body) -> Self {
        Cutter { stream, reading, body, line: 1, block: Vec::new() }
    }

    fn run(&mut self, out: &mut Outlet<'_>) -> Flow {
        let mut at_start = true;
        loop {
            let filled = self.fill();
            if std::mem::take(&mut at_start) && self.block.starts_with(BOM) {
                self.block.drain(..BOM.len());
            }
            match filled {
                Ok(false) => self.hand_out_whole_lines(out)?,
                Ok(true) => return self.hand_out(self.block.len(), out),
                Err(error) => {
                    self.hand_out_whole_lines(out)?;
                    return out.broken(&self.reading.name, At::Line(self.line), &error);
                }
            }
            if self.block.len() > self.longest()
                && let Err(error) = self.skip_long_line(out)?
            {
                return out.broken(&self.reading.name, At::Line(self.line), &error);
            }
        }
    }

    fn longest(&self) -> usize {
        usize::try_from(self.reading.options.max_document_bytes).unwrap_or(usize::MAX)
    }

    /// Reads a block more; true at the end of the stream. What was read before an error is kept.
    fn fill(&mut self) -> io::Result<bool> {
        // Doubling, so that a very long line is not moved for every block of it.
        let room = self.longest().saturating_sub(self.block.len()).saturating_add(1);
        let wanted = CHUNK_BYTES.max(self.block.len().min(room));
        self.block.reserve(wanted);
        let got = self.stream.take(wanted as u64).read_to_end(&mut self.block)?;
        Ok(got < wanted)
    }

    fn hand_out_whole_lines(&mut self, out: &mut Outlet<'_>) -> Flow {
        match memchr::memrchr(b'\n', &self.block) {
            Some(last) => self.hand_out(last + 1, out),
            None => Ok(()),
        }
    }

    fn hand_out(&mut self, end: usize, out: &mut Outlet<'_>) -> Flow {
        if end == 0 {
            return Ok(());
        }
        let rest = self.block[end..].to_vec();
        let mut bytes = std::mem::replace(&mut self.block, rest);
        bytes.truncate(end);
        let first = self.line;
        self.line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        out.put((self.body)(Lines { file: Arc::clone(&self.reading.name), bytes, first }))
    }

    /// The block is the start of a line that is longer than any document may be.
    fn skip_long_line(&mut self, out: &mut Outlet<'_>) -> Result<io::Result<()>, Closed> {
        out.bad(too_long(self.reading.place(At::Line(self.line)), self.reading.options))?;
        loop {
            self.block.clear();
            let filled = self.fill();
            if let Some(end) = memchr::memchr(b'\n', &self.block) {
                self.block.drain(..=end);
                self.line += 1;
                self.hand_out_whole_lines(out)?;
                return Ok(filled.map(drop));
            }
            match filled {
                Ok(false) => {}
                Ok(true) => {
                    self.block.clear();
                    return Ok(Ok(()));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }
}

/// A line longer than any document may be.
fn too_long(place: Place, options: &Options) -> BadRecord {
    let problem = format!("the line is longer than {} bytes", options.max_document_bytes);
    BadRecord::new(place, problem).hint("raise --max-document-bytes")
}

/// The byte order mark with which some programs start their UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";
