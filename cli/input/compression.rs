//! Streams as they were before compression.

use std::io::{self, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::format::Compression;

const BUFFER: usize = 256 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Window of up to 2 GiB, which `zstd --long=31` needs and some well-known corpora use.
const ZSTD_WINDOW_LOG: u32 = 31;

/// `stream` without its compression.
///
/// The first bytes decide: no document starts like a compressed stream, and files are misnamed.
/// The name matters when the bytes are neither.
pub(crate) fn decompressed<'a>(
    mut stream: impl Read + 'a,
    told: Option<Compression>,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::with_capacity(ZSTD.len());
    stream.by_ref().take(ZSTD.len() as u64).read_to_end(&mut start)?;
    let compression = match (&*start, told) {
        (start, _) if start.starts_with(GZIP) => Some(Compression::Gzip),
        (start, _) if start.starts_with(ZSTD) => Some(Compression::Zstd),
        (_, None) => None,
        (_, Some(told)) => return Err(not_compressed(&start, told)),
    };
    let stream = Cursor::new(start).chain(stream);
    Ok(match compression {
        None => Box::new(stream),
        Some(Compression::Gzip) => {
            let inner = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, stream));
            Box::new(Named { inner, name: "gzip" })
        }
        Some(Compression::Zstd) => {
            let mut inner =
                zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, stream))?;
            inner.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(Named { inner, name: "zstd" })
        }
    })
}

fn not_compressed(start: &[u8], told: Compression) -> io::Error {
    let name = match told {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    };
    io::Error::other(match start {
        [] => format!("the file is empty, where {name} data should be"),
        _ => format!("this is not {name} data, although its name says so"),
    })
}

/// A decoder whose errors say what they are about.
struct Named<R> {
    inner: R,
    name: &'static str,
}

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => {
                io::Error::other(format!("the {} data is cut short", self.name))
            }
            _ => io::Error::other(format!("the {} data is damaged ({error})", self.name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8], told: Option<Compression>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        decompressed(bytes, told)?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn streams_of_several_members_are_one_stream() {
        let members = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
        assert_eq!(read(&members, Some(Compression::Gzip)).unwrap(), b"one two");
        let frames =
            [zstd::encode_all(&b"one "[..], 1).unwrap(), zstd::encode_all(&b"two"[..], 1).unwrap()];
        assert_eq!(read(&frames.concat(), Some(Compression::Zstd)).unwrap(), b"one two");
    }

    #[test]
    fn first_bytes_decide() {
        assert_eq!(read(&gzip(b"x"), None).unwrap(), b"x");
        assert_eq!(read(&gzip(b"x"), Some(Compression::Zstd)).unwrap(), b"x");
        assert_eq!(read(b"x", None).unwrap(), b"x");
        assert_eq!(read(b"", None).unwrap(), b"");
        let error = read(b"plain", Some(Compression::Gzip)).unwrap_err();
        assert_eq!(error.to_string(), "this is not gzip data, although its name says so");
    }

    #[test]
    fn damage_is_named() {
        let good = gzip(&[7; 1000]);
        let error = read(&good[..good.len() - 3], None).unwrap_err();
        assert_eq!(error.to_string(), "the gzip data is cut short");
        let good = zstd::encode_all(&b"abcdefgh"[..], 1).unwrap();
        let error = read(&good[..good.len() - 3], None).unwrap_err();
        assert_eq!(error.to_string(), "the zstd data is cut short");
    }
}
