//! The files behind the inputs, read ahead by a few threads and handed out in order.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::args::{Options, ReadArgs};
use super::chunk::{CHUNK_BYTES, Chunk, Flow, Outlet, Record};
use super::compression::decompressed;
use super::format::{Compression, Format};
use super::record::{At, BadRecord, InputError, Place};
use super::walk::{self, Input, Origin};
use super::{csv, json, lines, parquet, tar, text, warc};

/// How many chunks of a file wait for the workers.
const AHEAD: usize = 4;

/// How deep archives may lie within archives.
const ARCHIVE_DEPTH: usize = 4;

/// All inputs of a command.
pub(crate) struct Sources(Arc<Shared>);

struct Shared {
    inputs: Vec<Input>,
    /// Runs of inputs that one thread reads at a time: one file, or many small ones.
    units: Vec<Range<usize>>,
    options: Options,
    total_bytes: Option<u64>,
    bytes_read: AtomicU64,
    tally: Tally,
    unknown: Vec<String>,
}

/// What was left out because it is no text, which is no error.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Files and archive members whose names tell no format.
    pub(super) files: AtomicU64,
    /// Web archive records that are neither HTML nor text, or not what was asked for.
    pub(super) records: AtomicU64,
}

/// What was left out so far because it is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Files and archive members whose names tell no format.
    pub(crate) files: u64,
    /// Some suffixes of such files.
    pub(crate) suffixes: Vec<String>,
    /// Web archive records that are neither HTML nor text, or tell of a failure.
    pub(crate) records: u64,
}

impl Sources {
    /// Finds the files; nothing is read yet. `payload`: whether documents keep their other fields.
    pub(crate) fn open(
        inputs: &[String],
        args: &ReadArgs,
        payload: bool,
    ) -> Result<Self, InputError> {
        Sources::find(inputs, Options::new(args, payload)?)
    }

    /// The same, with documents named by their place, whatever ids they have.
    pub(crate) fn open_by_place(inputs: &[String], args: &ReadArgs) -> Result<Self, InputError> {
        let options = Options { by_place: true, id_field: None, ..Options::new(args, false)? };
        Sources::find(inputs, options)
    }

    /// The same, with documents that keep only these of their other fields.
    pub(crate) fn open_with_fields(
        inputs: &[String],
        args: &ReadArgs,
        fields: Vec<String>,
    ) -> Result<Self, InputError> {
        let payload = !fields.is_empty();
        // Nested fields take the longer way.
        let some_fields = fields.iter().all(|field| !field.contains('.')).then_some(fields);
        Sources::find(inputs, Options { some_fields, ..Options::new(args, payload)? })
    }

    fn find(inputs: &[String], options: Options) -> Result<Self, InputError> {
        let found = walk::find(inputs, options.format, options.lines)?;
        let sources = Sources::new(found.inputs, options, found.unknown.into_iter().collect());
        sources.0.tally.files.store(found.left_out, Ordering::Relaxed);
        Ok(sources)
    }

    fn new(inputs: Vec<Input>, options: Options, unknown: Vec<String>) -> Self {
        let total_bytes = inputs.iter().map(|input| input.bytes).sum();
        Sources(Arc::new(Shared {
            units: units(&inputs),
            inputs,
            options,
            total_bytes,
            bytes_read: AtomicU64::new(0),
            tally: Tally::default(),
            unknown,
        }))
    }

    /// Whether a file is one of the inputs.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.0.inputs.iter().any(|input| match &input.origin {
            Origin::Path(input) => input.canonicalize().is_ok_and(|input| input == path),
            Origin::Stream(_) => false,
        })
    }

    /// The same, with standard input read from a file that has its content.
    pub(crate) fn with_standard_input(self, path: &Path) -> Self {
        let Ok(shared) = Arc::try_unwrap(self.0) else { unreachable!("nobody reads yet") };
        let Shared { mut inputs, options, unknown, tally, .. } = shared;
        for input in &mut inputs {
            if let Origin::Stream(_) = input.origin {
                input.origin = Origin::Path(path.to_owned());
                input.bytes = path.metadata().ok().map(|about| about.len());
            }
        }
        let sources = Sources::new(inputs, options, unknown);
        sources.0.tally.files.store(tally.files.into_inner(), Ordering::Relaxed);
        sources
    }

    /// What tells whether the input is still the same: names, sizes and times of change.
    pub(crate) fn fingerprint(&self) -> serde_json::Value {
        let of = |input: &Input| {
            let Origin::Path(path) = &input.origin else {
                return serde_json::json!([&*input.name]);
            };
            if &*input.name == "-" {
                // A copy of standard input is new every time.
                let content =
                    std::fs::read(path).map_or(0, |bytes| xxhash_rust::xxh3::xxh3_64(&bytes));
                return serde_json::json!(["-", input.bytes, format!("{content:016x}")]);
            }
            fingerprint_of(&input.name, path)
        };
        self.0.inputs.iter().map(of).collect()
    }

    /// The folder that all files are in.
    pub(crate) fn root(&self) -> std::path::PathBuf {
        let mut folders = self.0.inputs.iter().filter_map(|input| match &input.origin {
            Origin::Path(_) => Some(Path::new(&*input.name).parent()?.to_owned()),
            Origin::Stream(_) => None,
        });
        let first = folders.next().unwrap_or_default();
        folders.fold(first, |root, folder| {
            let common = root.components().zip(folder.components());
            common.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
        })
    }

    /// An input file that is in this folder, if there is one.
    pub(crate) fn file_in(&self, folder: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let inside = |input: &&Input| match &input.origin {
            // A copy of standard input may well be there.
            Origin::Path(path) if &*input.name != "-" => {
                path.canonicalize().is_ok_and(|path| path.starts_with(&folder))
            }
            _ => false,
        };
        Some(self.0.inputs.iter().find(inside)?.name.to_string())
    }

    /// The names of all inputs.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.inputs.iter().map(|input| input.name.to_string()).collect()
    }

    /// An input that can be read only once.
    pub(crate) fn pipe(&self) -> Option<String> {
        let pipe = self.0.inputs.iter().find(|input| input.bytes.is_none());
        pipe.map(|input| input.name.to_string())
    }

    /// Bytes of all files as they are stored; `None` if one of them is a pipe.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.0.total_bytes
    }

    /// How many bytes have been read so far, pipes included.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.0.bytes_read.load(Ordering::Relaxed)
    }

    /// What was left out so far because it is no text.
    pub(crate) fn left_out(&self) -> LeftOut {
        LeftOut {
            files: self.0.tally.files.load(Ordering::Relaxed),
            suffixes: self.0.unknown.clone(),
            records: self.0.tally.records.load(Ordering::Relaxed),
        }
    }

    /// The documents of a chunk and what is wrong with the others. Any thread may do this.
    pub(crate) fn parse(&self, chunk: Chunk) -> Vec<Record> {
        chunk.parse(&self.0.options, &self.0.tally)
    }

    /// All chunks in the order of the inputs, read ahead by up to `readers` threads.
    pub(crate) fn chunks(&self, readers: usize) -> Chunks {
        let readers = readers.clamp(1, self.0.units.len().max(1));
        let (units, receiver) = bounded(readers);
        let queue = Arc::new(Mutex::new(Queue { next: 0, units }));
        for _ in 0..readers {
            let (shared, queue) = (Arc::clone(&self.0), Arc::clone(&queue));
            // Not joined: a thread that waits for standard input must not hold up the end.
            thread::spawn(move || read_units(&shared, &queue));
        }
        let (stop, stopped) = bounded(0);
        Chunks { units: receiver, current: None, stop: Some(stop), stopped }
    }
}

/// A file's name, size and time of change.
pub(crate) fn fingerprint_of(name: &str, path: &Path) -> serde_json::Value {
    let about = path.metadata().ok();
    let changed = about.as_ref().and_then(|about| about.modified().ok());
    let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let bytes = about.map(|about| about.len());
    serde_json::json!([name, bytes, changed.map(|since| since.as_nanos().to_string())])
}

/// Small whole files are read together: a folder may hold millions of them.
fn units(inputs: &[Input]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (i, input) in inputs.iter().enumerate() {
        let small = match (input.format, input.bytes) {
            (Format::Text | Format::Html, Some(bytes)) if bytes < CHUNK_BYTES as u64 => Some(bytes),
            _ => None,
        };
        match (units.last_mut(), small) {
            (Some(unit), Some(bytes)) if bytes < room => {
                unit.end = i + 1;
                // An empty file costs something, too.
                room -= bytes.max(1024).min(room);
            }
            _ => {
                units.push(i..i + 1);
                room = small.map_or(0, |bytes| CHUNK_BYTES as u64 - bytes);
            }
        }
    }
    units
}

/// The units that no thread has taken yet.
struct Queue {
    next: usize,
    /// One receiver of chunks per unit, in order.
    units: Sender<Receiver<Chunk>>,
}

impl Queue {
    /// The next unit, and where its chunks go. Order is kept because the lock is.
    fn take(&mut self, shared: &Shared) -> Option<(Range<usize>, Sender<Chunk>)> {
        let unit = shared.units.get(self.next)?.clone();
        self.next += 1;
        let (sender, receiver) = bounded(AHEAD);
        self.units.send(receiver).ok()?;
        Some((unit, sender))
    }
}

fn read_units(shared: &Shared, queue: &Mutex<Queue>) {
    loop {
        let taken = match queue.lock() {
            Ok(mut queue) => queue.take(shared),
            Err(_) => None,
        };
        let Some((unit, sender)) = taken else { return };
        let mut send = |chunk| sender.send(chunk).is_ok();
        let mut out = Outlet::new(&mut send);
        let read_all = unit.into_iter().try_for_each(|i| read_input(shared, i, &mut out));
        if read_all.and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn read_input(shared: &Shared, i: usize, out: &mut Outlet<'_>) -> Flow {
    let input = &shared.inputs[i];
    let place = Place::new(&input.name, At::File);
    guarded(place.clone(), out, |out| {
        let reading = reading(shared, input);
        let path = match &input.origin {
            // Parquet is read here and there, unless that is impossible.
            Origin::Path(path)
                if input.format == Format::Parquet
                    && input.compression.is_none()
                    && input.bytes.is_some() =>
            {
                return parquet::read(path.clone(), &reading, out);
            }
            Origin::Path(path) => path,
            Origin::Stream(stream) => {
                let stream = stream.lock().ok().and_then(|mut stream| stream.take());
                let inner = stream.unwrap_or_else(|| Box::new(io::empty()));
                let counted = Counted { inner, read: &shared.bytes_read };
                return reading.stream(Box::new(counted), out);
            }
        };
        match File::open(path) {
            Ok(file) => {
                let counted = Counted { inner: file, read: &shared.bytes_read };
                reading.stream(Box::new(counted), out)
            }
            Err(error) => out.bad(BadRecord::broken(place, error)),
        }
    })
}

fn reading<'a>(shared: &'a Shared, input: &Input) -> Reading<'a> {
    Reading {
        name: Arc::clone(&input.name),
        format: input.format,
        compression: input.compression,
        options: &shared.options,
        tally: &shared.tally,
        bytes_read: &shared.bytes_read,
        depth: 0,
    }
}

/// Libraries that meet damaged files have been seen to panic; that must not lose the other files, nor
/// pass for the end of this one.
pub(super) fn guarded<'a>(
    place: Place,
    out: &mut Outlet<'a>,
    read: impl FnOnce(&mut Outlet<'a>) -> Flow,
) -> Flow {
    match panic::catch_unwind(AssertUnwindSafe(|| read(out))) {
        Ok(flow) => flow,
        Err(panic) => out.bad(BadRecord::broken(place, panic_message(&*panic))),
    }
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("its reader gave up ({})", said.unwrap_or("for no given reason"))
}

/// One stream being read: a file, or a member of an archive.
pub(super) struct Reading<'a> {
    pub(super) name: Arc<str>,
    pub(super) format: Format,
    pub(super) compression: Option<Compression>,
    pub(super) options: &'a Options,
    pub(super) tally: &'a Tally,
    pub(super) bytes_read: &'a AtomicU64,
    /// How many archives it is in.
    pub(super) depth: usize,
}

impl Reading<'_> {
    pub(super) fn place(&self, at: At) -> Place {
        Place::new(&self.name, at)
    }

    /// Whether this is an archive within too many others.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth > ARCHIVE_DEPTH
    }

    /// Reads a stream to its end or to the first damage that hides the rest.
    pub(super) fn stream<'s>(&self, stream: Box<dyn Read + 's>, out: &mut Outlet<'_>) -> Flow {
        let mut stream = match decompressed(stream, self.compression) {
            Ok(stream) => stream,
            Err(error) => return out.broken(&self.name, At::File, &error),
        };
        match self.format {
            Format::Jsonl => lines::read_json(&mut stream, self, out),
            Format::Text if self.options.lines => lines::read_text(&mut stream, self, out),
            Format::Json => json::read(stream, self, out),
            Format::Csv => csv::read(stream, b',', self, out),
            Format::Tsv => csv::read(stream, b'\t', self, out),
            Format::Text | Format::Html => text::read(stream, self, out),
            Format::Warc | Format::Wet => warc::read(stream, self, out),
            Format::Tar => tar::read(stream, self, out),
            Format::Parquet => parquet::read_stream(stream, self, out),
        }
    }
}

/// Counts the bytes of a stored file, for those who show progress.
struct Counted<'a, R> {
    inner: R,
    read: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The chunks of all inputs, in order.
pub(crate) struct Chunks {
    units: Receiver<Receiver<Chunk>>,
    current: Option<Receiver<Chunk>>,
    /// Held here so that nothing stops before somebody takes it and drops it.
    stop: Option<Sender<()>>,
    stopped: Receiver<()>,
}

impl Chunks {
    /// When the returned value is dropped, there are no more chunks, even if a thread waits for one.
    pub(super) fn stopper(&mut self) -> Option<Sender<()>> {
        self.stop.take()
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        loop {
            if let Some(current) = &self.current {
                select! {
                    recv(current) -> chunk => match chunk {
                        Ok(chunk) => return Some(chunk),
                        Err(_) => self.current = None,
                    },
                    recv(self.stopped) -> _ => return None,
                }
            } else {
                select! {
                    recv(self.units) -> unit => self.current = Some(unit.ok()?),
                    recv(self.stopped) -> _ => return None,
                }
            }
        }
    }
}

#[cfg(test)]
impl Sources {
    /// `stream` in place of standard input.
    pub(crate) fn of_stream(stream: impl Read + Send + 'static, options: Options) -> Self {
        let format = options.format.unwrap_or(Format::Jsonl);
        let input = Input::stream(Box::new(stream), format);
        Sources::new(vec![input], options, Vec::new())
    }

    /// Everything, read and parsed by this thread.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.chunks(2).flat_map(|chunk| self.parse(chunk)).collect()
    }
}
