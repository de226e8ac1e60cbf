//! Which format a file is in, by its name.

use std::path::Path;

use clap::ValueEnum;

/// A format of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// JSON objects in an array, pretty-printed, or one a line
    Json,
    /// Apache Parquet
    Parquet,
    /// Comma-separated values, the first row names the fields
    Csv,
    /// Tab-separated values, the first row names the fields
    Tsv,
    /// Plain text: a file is a document (with --lines: a line is a document)
    Text,
    /// HTML: a file is a document
    Html,
    /// Web archive: HTML and text of its responses
    Warc,
    /// Extracted text of a web archive
    Wet,
    /// Archive of files, each in the format of its own name
    Tar,
}

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

/// Prose, markup that reads as prose, and source code: people look for copied code, too.
const TEXT_SUFFIXES: &[&str] = &[
    "txt", "text", "md", "markdown", "rst", "adoc", "org", "tex", "srt", "vtt", // prose
    "asm", "bash", "bat", "c", "cc", "clj", "cljs", "cob", "cpp", "cr", "cs", "css", "cu", "cxx",
    "d", "dart", "el", "elm", "erl", "ex", "exs", "f", "f90", "for", "fs", "go", "gradle",
    "groovy", "h", "hh", "hpp", "hrl", "hs", "hxx", "java", "jl", "js", "jsx", "kt", "kts", "less",
    "lisp", "lua", "m", "mjs", "ml", "mli", "mm", "nim", "pas", "php", "pl", "pm", "proto", "ps1",
    "py", "pyi", "r", "rb", "rs", "s", "sass", "scala", "scm", "scss", "sh", "sol", "sql", "sv",
    "swift", "tcl", "ts", "tsx", "v", "vb", "vhd", "vhdl", "vue", "zig", "zsh",
];

/// The format and the compression that a file's name tells.
pub(crate) fn of_name(name: &str) -> (Option<Format>, Option<Compression>) {
    let name = name.to_ascii_lowercase();
    let (stem, compression) = if let Some(stem) = name.strip_suffix(".gz") {
        (stem, Some(Compression::Gzip))
    } else if let Some(stem) = name.strip_suffix(".zst").or(name.strip_suffix(".zstd")) {
        (stem, Some(Compression::Zstd))
    } else {
        (&*name, None)
    };
    let suffix = Path::new(stem).extension().and_then(|suffix| suffix.to_str()).unwrap_or("");
    if compression.is_none() && suffix == "tgz" {
        return (Some(Format::Tar), Some(Compression::Gzip));
    }
    (of_suffix(suffix), compression)
}

fn of_suffix(suffix: &str) -> Option<Format> {
    Some(match suffix {
        "jsonl" | "ndjson" => Format::Jsonl,
        "json" => Format::Json,
        "parquet" => Format::Parquet,
        "csv" => Format::Csv,
        "tsv" => Format::Tsv,
        "html" | "htm" | "xhtml" => Format::Html,
        "warc" => Format::Warc,
        "wet" => Format::Wet,
        "tar" => Format::Tar,
        suffix if TEXT_SUFFIXES.contains(&suffix) => Format::Text,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        use Compression::*;
        use Format::*;
        let cases = [
            ("a/news.jsonl", Some(Jsonl), None),
            ("NEWS.JSONL.GZ", Some(Jsonl), Some(Gzip)),
            ("x.ndjson.zst", Some(Jsonl), Some(Zstd)),
            ("CC-MAIN-1.warc.gz", Some(Warc), Some(Gzip)),
            ("CC-MAIN-1.warc.wet.gz", Some(Wet), Some(Gzip)),
            ("pages.tgz", Some(Tar), Some(Gzip)),
            ("pages.tar.zst", Some(Tar), Some(Zstd)),
            ("main.rs", Some(Text), None),
            ("photo.jpg", None, None),
            ("photo.gz", None, Some(Gzip)),
            ("README", None, None),
        ];
        for (name, format, compression) in cases {
            assert_eq!(of_name(name), (format, compression), "{name}");
        }
    }
}
