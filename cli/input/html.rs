//! The characters of HTML: which encoding its bytes are in.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its own word on the encoding may be: what browsers look at.
const PRESCAN: usize = 1024;

/// HTML bytes as text: by byte order mark, by what the server said, by what the page says, as UTF-8 if
/// that is valid, and else as windows-1252, which everything is.
pub(super) fn decoded(bytes: Vec<u8>, content_type: Option<&str>) -> String {
    if let Some(text) = by_order_mark(&bytes) {
        return text;
    }
    let encoding = content_type.and_then(charset_of_content_type).or_else(|| told(&bytes));
    match encoding {
        Some(encoding) if encoding != UTF_8 => {
            encoding.decode_without_bom_handling(&bytes).0.into_owned()
        }
        Some(_) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        },
        None => String::from_utf8(bytes).unwrap_or_else(|error| {
            WINDOWS_1252.decode_without_bom_handling(error.as_bytes()).0.into_owned()
        }),
    }
}

/// The text of bytes that start with a byte order mark, without it.
pub(super) fn by_order_mark(bytes: &[u8]) -> Option<String> {
    let (encoding, length) = Encoding::for_bom(bytes)?;
    if encoding == UTF_8 && simdutf8::basic::from_utf8(bytes).is_err() {
        return None;
    }
    Some(encoding.decode_without_bom_handling(&bytes[length..]).0.into_owned())
}

/// `text/html; charset="utf-8"` says UTF-8.
fn charset_of_content_type(content_type: &str) -> Option<&'static Encoding> {
    charset_in(content_type.as_bytes())
}

/// What a page says of itself, in `<meta charset>` or `<meta http-equiv>`.
fn told(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(PRESCAN)];
    let metas = memchr::memchr_iter(b'<', start).filter_map(|at| {
        let tag = &start[at + 1..];
        let is_meta = tag.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"));
        let end = memchr::memchr(b'>', tag).unwrap_or(tag.len());
        is_meta.then(|| &tag[..end])
    });
    let encoding = { metas }.find_map(charset_in)?;
    // Whoever could read that in single bytes was not reading UTF-16.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

/// The encoding after `charset=`.
fn charset_in(bytes: &[u8]) -> Option<&'static Encoding> {
    const KEY: &[u8] = b"charset";
    let at = bytes.windows(KEY.len()).position(|window| window.eq_ignore_ascii_case(KEY))?;
    let value = bytes[at + KEY.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
    let ends = |byte: &u8| b"\"'; \t\r\n/>".contains(byte);
    let end = value.iter().position(ends).unwrap_or(value.len());
    Encoding::for_label(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found() {
        let cases: [(&[u8], Option<&str>, &str); 9] = [
            (b"caf\xc3\xa9", None, "café"),
            (b"caf\xe9 \x93x\x94", None, "café “x”"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", Some("text/html; charset=latin1"), "café"),
            (b"\xff\xfeh\0i\0", None, "hi"),
            (b"caf\xe9", Some("text/html; Charset = \"ISO-8859-1\""), "café"),
            (b"caf\xe9", Some("text/html;charset=nonsense"), "café"),
            (b"<meta charset=shift_jis>\x93\xfa\x96{", None, "<meta charset=shift_jis>日本"),
            (
                b"<META http-equiv=content-type content='text/html; charset=koi8-r'>\xc4\xc1",
                None,
                "<META http-equiv=content-type content='text/html; charset=koi8-r'>да",
            ),
            (b"<meta charset=utf-16>caf\xc3\xa9", None, "<meta charset=utf-16>café"),
        ];
        for (bytes, content_type, text) in cases {
            assert_eq!(decoded(bytes.to_vec(), content_type), text);
        }
    }
}
