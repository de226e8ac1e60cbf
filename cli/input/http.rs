//! An HTTP response as a crawler stored it: head, transfer and content encodings.

use std::borrow::Cow;
use std::io::Read;

use httparse::{EMPTY_HEADER, ParserConfig, Status};

/// More headers than any server sends.
const MOST_HEADERS: usize = 512;

/// A response, its body still as it was sent.
pub(super) struct Response<'a> {
    status: u16,
    pub(super) content_type: String,
    /// Content encodings in the order they were applied.
    encodings: Vec<String>,
    is_chunked: bool,
    body: Cow<'a, [u8]>,
}

/// How much body to accept.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Bytes after decoding.
    pub(super) most: u64,
    /// Whether a body that ends too early is all there is.
    pub(super) may_be_cut: bool,
}

impl<'a> Response<'a> {
    pub(super) fn parse(block: &'a [u8]) -> Result<Self, String> {
        let block = as_http_1(block);
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let mut rules = ParserConfig::default();
        rules
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true)
            .ignore_invalid_headers_in_responses(true);
        let end = match rules.parse_response(&mut head, &block) {
            Ok(Status::Complete(end)) => end,
            Ok(Status::Partial) => return Err("the HTTP head is cut short".into()),
            Err(error) => return Err(format!("no HTTP response ({error})")),
        };
        let values = |wanted: &str| {
            let named =
                head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(wanted));
            named
                .map(|header| String::from_utf8_lossy(header.value.trim_ascii()))
                .collect::<Vec<_>>()
        };
        let list = |wanted: &str| {
            let all = values(wanted).join(",").to_ascii_lowercase();
            let items = all.split(',').map(|item| item.trim().to_owned());
            items.filter(|item| !item.is_empty() && item != "identity").collect::<Vec<_>>()
        };
        let status = head.code.unwrap_or(0);
        let content_type = values("content-type").pop().unwrap_or_default().into_owned();
        let (encodings, transfer) = (list("content-encoding"), list("transfer-encoding"));
        let is_chunked = transfer.iter().any(|coding| coding == "chunked");
        let body = match block {
            Cow::Borrowed(block) => Cow::Borrowed(&block[end..]),
            Cow::Owned(block) => Cow::Owned(block[end..].to_vec()),
        };
        Ok(Response { status, content_type, encodings, is_chunked, body })
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as the author wrote it.
    pub(super) fn decoded_body(&self, limit: Limit) -> Result<Vec<u8>, String> {
        let mut body = match self.is_chunked {
            true => dechunked(&self.body, limit)?,
            false => self.body.to_vec(),
        };
        for encoding in self.encodings.iter().rev() {
            body = decoded(body, encoding, limit)?;
        }
        Ok(body)
    }
}

/// The parser knows version 1; later versions differ on the wire only.
fn as_http_1(block: &[u8]) -> Cow<'_, [u8]> {
    match block {
        [b'H', b'T', b'T', b'P', b'/', b'2' | b'3', ..] => {
            let rest = memchr::memchr(b' ', block).map_or(&[][..], |space| &block[space..]);
            Cow::Owned([b"HTTP/1.1", rest].concat())
        }
        _ => Cow::Borrowed(block),
    }
}

/// Joins the chunks of a chunked body. Some crawlers joined them already and kept the header.
fn dechunked(body: &[u8], limit: Limit) -> Result<Vec<u8>, String> {
    let mut whole = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let Some((size, after)) = chunk_size(rest) else {
            return match whole.is_empty() {
                true => Ok(body.to_vec()),
                false if limit.may_be_cut => Ok(whole),
                false => {
                    Err(format!("the chunked body is damaged at byte {}", body.len() - rest.len()))
                }
            };
        };
        if size == 0 {
            return Ok(whole);
        }
        if size > after.len() {
            whole.extend_from_slice(after);
            return match limit.may_be_cut {
                true => Ok(whole),
                false => Err("the chunked body is cut short".into()),
            };
        }
        whole.extend_from_slice(&after[..size]);
        rest = &after[size..];
        rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n")).unwrap_or(rest);
    }
}

/// The size line of a chunk, and what follows it.
fn chunk_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(1024)])?;
    let line = str::from_utf8(&bytes[..end]).ok()?;
    let digits = line.split(';').next()?.trim();
    Some((usize::from_str_radix(digits, 16).ok()?, &bytes[end + 1..]))
}

fn decoded(body: Vec<u8>, encoding: &str, limit: Limit) -> Result<Vec<u8>, String> {
    let bytes = &*body;
    let mut decoder: Box<dyn Read + '_> = match encoding {
        // Some crawlers decoded it and kept the header.
        "gzip" | "x-gzip" if !bytes.starts_with(&[0x1f, 0x8b]) => return Ok(body),
        "gzip" | "x-gzip" => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        // Half of the world sends zlib, as the standard says; the other half does not.
        "deflate" if is_zlib(bytes) => Box::new(flate2::read::ZlibDecoder::new(bytes)),
        "deflate" => Box::new(flate2::read::DeflateDecoder::new(bytes)),
        "br" => Box::new(brotli::Decompressor::new(bytes, 64 << 10)),
        "zstd" => match zstd::stream::read::Decoder::new(bytes) {
            Ok(decoder) => Box::new(decoder),
            Err(error) => return Err(format!("the zstd body is damaged ({error})")),
        },
        other => return Err(format!("the body is encoded in `{other}`, which we cannot read")),
    };
    let mut whole = Vec::new();
    let read = decoder.by_ref().take(limit.most.saturating_add(1)).read_to_end(&mut whole);
    match read {
        Ok(_) if whole.len() as u64 > limit.most => {
            Err(format!("the decoded body is longer than {} bytes", limit.most))
        }
        Ok(_) => Ok(whole),
        Err(_) if limit.may_be_cut && !whole.is_empty() => Ok(whole),
        Err(error) => Err(format!("the {encoding} body is damaged ({error})")),
    }
}

fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, ..]
        if first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0)
}
