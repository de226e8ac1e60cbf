//! `.json` files: an array of objects, objects one after the other (however printed), or JSON lines.
//!
//! The reading thread only finds where values begin and end.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use super::args::Options;
use super::chunk::{Body, CHUNK_BYTES, Flow, Outlet, Record};
use super::jsonl::parse_object;
use super::lines::{self, BOM, utf8};
use super::record::{At, BadRecord, Place};
use super::source::Reading;

/// Some whole values of a file.
pub(super) struct Values {
    file: Arc<str>,
    bytes: Vec<u8>,
    /// Where in `bytes` each value is, and the line of the file where it starts.
    spans: Vec<(Range<usize>, u64)>,
}

pub(super) fn parse(values: &Values, options: &Options, found: &mut Vec<Record>) {
    for (span, line) in &values.spans {
        let place = Place::new(&values.file, At::Line(*line));
        let bytes = &values.bytes[span.clone()];
        found.push(match utf8(bytes, &place) {
            Ok(json) => parse_object(place, json, options),
            Err(bad) => Err(bad),
        });
    }
}

pub(super) fn read(mut stream: impl Read, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    let mut start = Vec::new();
    let got = stream.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut start);
    if start.starts_with(BOM) {
        start.drain(..BOM.len());
    }
    let failure = got.err();
    if failure.is_none() && is_json_lines(&start) {
        return lines::read_json(&mut Cursor::new(start).chain(stream), reading, out);
    }
    let mut splitter = Splitter::new(reading);
    splitter.feed(&start, out)?;
    match failure {
        Some(error) => splitter.fail(&error, out),
        None => splitter.run(&mut stream, out),
    }
}

/// Whether the first line is a whole object: then a broken line need not hide the lines after it.
fn is_json_lines(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let Some(end) = memchr::memchr(b'\n', start) else { return false };
    start.starts_with(b"{") && start[..end].trim_ascii_end().ends_with(b"}") && {
        let first: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&start[..end]);
        first.is_ok()
    }
}

/// Cuts a stream of JSON into its top-level values, or into the elements of its top-level arrays.
struct Splitter<'a, 'r> {
    reading: &'a Reading<'r>,
    values: Values,
    /// Where in `values.bytes` the current value starts, and on which line.
    current: Option<(usize, u64)>,
    line: u64,
    /// Brackets open in the current value.
    depth: u64,
    in_string: bool,
    escaped: bool,
    /// Whether we are inside an array of documents, which is not a value itself.
    in_array: bool,
}

impl<'a, 'r> Splitter<'a, 'r> {
    fn new(reading: &'a Reading<'r>) -> Self {
        Splitter {
            reading,
            values: Values::new(&reading.name),
            current: None,
            line: 1,
            depth: 0,
            in_string: false,
            escaped: false,
            in_array: false,
        }
    }

    fn run(&mut self, stream: &mut dyn Read, out: &mut Outlet<'_>) -> Flow {
        let mut block = Vec::with_capacity(CHUNK_BYTES);
        loop {
            block.clear();
            let got = stream.take(CHUNK_BYTES as u64).read_to_end(&mut block);
            self.feed(&block, out)?;
            match got {
                Err(error) => return self.fail(&error, out),
                Ok(0) => return self.end(out),
                Ok(_) if self.is_too_long() => return self.give_up(out),
                Ok(_) => {}
            }
        }
    }

    fn feed(&mut self, mut bytes: &[u8], out: &mut Outlet<'_>) -> Flow {
        while let Some(&byte) = bytes.first() {
            let taken = if self.in_string { self.string(bytes) } else { self.byte(byte) };
            bytes = &bytes[taken..];
        }
        if self.values.bytes.len() >= CHUNK_BYTES {
            self.hand_out(out)?;
        }
        Ok(())
    }

    /// Copies a string up to its end, or up to what needs a closer look.
    fn string(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.escaped) {
            self.copy(&bytes[..1]);
            return 1;
        }
        let end = memchr::memchr2(b'"', b'\\', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.copy(&bytes[..taken]);
        match end.map(|end| bytes[end]) {
            Some(b'"') => {
                self.in_string = false;
                self.close_if_whole();
            }
            Some(_) => self.escaped = true,
            None => {}
        }
        taken
    }

    /// Takes one byte that is in no string.
    fn byte(&mut self, byte: u8) -> usize {
        let outside = self.depth == 0;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' if outside => {
                self.close();
                self.line += u64::from(byte == b'\n');
            }
            b'[' if outside && !self.in_array => {
                self.close();
                self.in_array = true;
            }
            b']' if outside && self.in_array => {
                self.close();
                self.in_array = false;
            }
            b'"' => {
                self.copy(b"\"");
                self.in_string = true;
            }
            b'{' | b'[' => {
                if outside {
                    self.close();
                }
                self.copy(&[byte]);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.copy(&[byte]);
                self.depth = self.depth.saturating_sub(1);
                self.close_if_whole();
            }
            _ => self.copy(&[byte]),
        }
        1
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.current.get_or_insert((self.values.bytes.len(), self.line));
        self.values.bytes.extend_from_slice(bytes);
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }

    fn close_if_whole(&mut self) {
        if self.depth == 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some((start, line)) = self.current.take() {
            self.values.spans.push((start..self.values.bytes.len(), line));
        }
    }

    /// Hands out the whole values and keeps the start of the current one.
    fn hand_out(&mut self, out: &mut Outlet<'_>) -> Flow {
        if self.values.spans.is_empty() {
            return Ok(());
        }
        let mut rest = Values::new(&self.reading.name);
        if let Some((start, _)) = &mut self.current {
            rest.bytes = self.values.bytes.split_off(*start);
            *start = 0;
        }
        out.put(Body::JsonValues(std::mem::replace(&mut self.values, rest)))
    }

    fn end(&mut self, out: &mut Outlet<'_>) -> Flow {
        // A value that does not end is broken, as its parser will say.
        let cut = self.current.is_some() && (self.depth > 0 || self.in_string);
        self.close();
        self.hand_out(out)?;
        if self.in_array && !cut {
            let place = self.reading.place(At::Line(self.line));
            return out.bad(BadRecord::new(place, "the file ends inside its array of documents"));
        }
        Ok(())
    }

    fn fail(&mut self, error: &io::Error, out: &mut Outlet<'_>) -> Flow {
        self.hand_out(out)?;
        out.broken(&self.reading.name, At::Line(self.line), error)
    }

    fn is_too_long(&self) -> bool {
        let start = self.current.as_ref().map(|(start, _)| *start);
        start.is_some_and(|start| {
            (self.values.bytes.len() - start) as u64 > self.reading.options.max_document_bytes
        })
    }

    fn give_up(&mut self, out: &mut Outlet<'_>) -> Flow {
        let line = self.current.as_ref().map_or(self.line, |(_, line)| *line);
        self.hand_out(out)?;
        let most = self.reading.options.max_document_bytes;
        let place = self.reading.place(At::Line(line));
        let problem = format!("the JSON value that starts here is longer than {most} bytes");
        out.bad(BadRecord::broken(place, problem).hint("raise --max-document-bytes"))
    }
}

impl Values {
    pub(super) fn file(&self) -> Arc<str> {
        Arc::clone(&self.file)
    }

    fn new(file: &Arc<str>) -> Self {
        Values { file: Arc::clone(file), bytes: Vec::new(), spans: Vec::new() }
    }
}
