//! The text of an HTML page, as a reader sees it.
//!
//! A page is read once from left to right, by the tokenizer rules of the HTML standard, without building
//! a tree; time is linear in its length whatever it holds. We do not use html5ever's tokenizer for this:
//! it collects attributes, and looks each up among those before it, so that one tag with very many of
//! them takes quadratic time. The tests hold the two against each other.
//!
//! What is kept: all text, and the title. What is not: scripts, styles, comments, attributes (`alt` and
//! `title` too), `noscript` (browsers do not show it), `template`, `svg`, and the insides of frames.
//! Block-level elements, cells, list items and `<br>` end a line; pictures and form controls end a word;
//! all other elements leave words whole. White space is folded.

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use memchr::{memchr, memchr_iter, memchr2};

/// The text of a page, its lines separated by line feeds.
pub fn text_of_html(html: &str) -> String {
    let mut text = String::new();
    append_text_of_html(html, &mut text);
    text
}

/// Appends the text of a page to `text`.
pub fn append_text_of_html(html: &str, text: &mut String) {
    let mut scanner = Scanner { html, at: 0, page: Page::new(text) };
    scanner.run();
}

/// What follows a start tag, up to its end tag.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Content {
    /// More markup.
    Markup,
    /// Text without tags, but with character references.
    Escapable,
    /// Text as it is.
    Raw,
    /// Text as it is, up to the end of the page.
    Plain,
}

/// What an element does to the text around it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    None,
    Word,
    Line,
}

fn content_of(name: &[u8]) -> Content {
    match name {
        b"title" | b"textarea" => Content::Escapable,
        b"script" | b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" | b"noscript" => {
            Content::Raw
        }
        b"plaintext" => Content::Plain,
        _ => Content::Markup,
    }
}

/// Elements whose text is not shown, and in which markup does not count.
fn is_hidden_raw(name: &[u8]) -> bool {
    matches!(name, b"script" | b"style" | b"iframe" | b"noembed" | b"noframes" | b"noscript")
}

fn break_of(name: &[u8]) -> Break {
    match name {
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"br" | b"caption"
        | b"center" | b"dd" | b"details" | b"dialog" | b"dir" | b"div" | b"dl" | b"dt"
        | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"frame"
        | b"frameset" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"header"
        | b"hgroup" | b"hr" | b"html" | b"legend" | b"li" | b"listing" | b"main" | b"menu"
        | b"nav" | b"ol" | b"optgroup" | b"option" | b"p" | b"plaintext" | b"pre" | b"search"
        | b"section" | b"summary" | b"table" | b"tbody" | b"td" | b"tfoot" | b"th" | b"thead"
        | b"title" | b"tr" | b"ul" | b"xmp" => Break::Line,
        b"audio" | b"button" | b"canvas" | b"embed" | b"iframe" | b"img" | b"input" | b"meter"
        | b"object" | b"progress" | b"select" | b"svg" | b"textarea" | b"video" => Break::Word,
        _ => Break::None,
    }
}

/// What becomes of tags and text, whoever tells them apart.
struct Page<'t> {
    text: &'t mut String,
    /// Where this page starts in `text`.
    start: usize,
    /// What stands between the last word and the next.
    gap: Break,
    hidden: Hidden,
}

/// The element that hides its content, and how many of its name are open.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hidden {
    No,
    Template {
        open: u32,
    },
    /// `foreign`: how many `foreignObject` are open, in which HTML is at home.
    Svg {
        open: u32,
        foreign: u32,
    },
}

impl<'t> Page<'t> {
    fn new(text: &'t mut String) -> Self {
        Page { start: text.len(), text, gap: Break::None, hidden: Hidden::No }
    }

    fn start_tag(&mut self, name: &[u8], self_closing: bool) -> Content {
        self.gap(break_of(name));
        match (&mut self.hidden, name) {
            (Hidden::No, b"template") => self.hidden = Hidden::Template { open: 1 },
            (Hidden::No, b"svg") if !self_closing => {
                self.hidden = Hidden::Svg { open: 1, foreign: 0 };
            }
            (Hidden::Template { open }, b"template") => *open += 1,
            (Hidden::Svg { open, .. }, b"svg") if !self_closing => *open += 1,
            (Hidden::Svg { foreign, .. }, b"foreignobject") if !self_closing => *foreign += 1,
            // A drawing that was not closed ends where HTML goes on.
            (Hidden::Svg { foreign: 0, .. }, name)
                if break_of(name) == Break::Line && name != b"title" =>
            {
                self.hidden = Hidden::No;
            }
            _ => {}
        }
        match self.hidden {
            // In a drawing, `title` and `style` are ordinary elements.
            Hidden::Svg { foreign: 0, .. } => Content::Markup,
            _ => content_of(name),
        }
    }

    fn end_tag(&mut self, name: &[u8]) {
        self.gap(break_of(name));
        match (&mut self.hidden, name) {
            (Hidden::Template { open }, b"template") => *open -= 1,
            (Hidden::Svg { open, .. }, b"svg") => *open -= 1,
            (Hidden::Svg { foreign, .. }, b"foreignobject") => *foreign = foreign.saturating_sub(1),
            _ => {}
        }
        if matches!(self.hidden, Hidden::Template { open: 0 } | Hidden::Svg { open: 0, .. }) {
            self.hidden = Hidden::No;
        }
    }

    /// Text between tags.
    fn text(&mut self, text: &str) {
        if self.hidden != Hidden::No || text.is_empty() {
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.gap(Break::Word);
        }
        for word in text.split_whitespace() {
            self.word(word);
            self.gap = Break::Word;
        }
        if !text.ends_with(char::is_whitespace) {
            self.gap = Break::None;
        }
    }

    fn gap(&mut self, gap: Break) {
        match (self.gap, gap) {
            (_, Break::None) | (Break::Line, _) => {}
            (_, gap) => self.gap = gap,
        }
    }

    fn word(&mut self, word: &str) {
        if self.text.len() > self.start {
            match self.gap {
                Break::None => {}
                Break::Word => self.text.push(' '),
                Break::Line => self.text.push('\n'),
            }
        }
        self.text.push_str(word);
    }
}

/// Tells tags from text.
struct Scanner<'h, 't> {
    html: &'h str,
    at: usize,
    page: Page<'t>,
}

impl<'h> Scanner<'h, '_> {
    fn run(&mut self) {
        while self.at < self.html.len() {
            self.text_up_to(memchr2(b'<', b'&', self.rest().as_bytes()));
            match self.rest().as_bytes() {
                [] => {}
                [b'&', ..] => self.reference(),
                [b'<', b'a'..=b'z' | b'A'..=b'Z', ..] => self.start_tag(),
                [b'<', b'/', ..] => self.end_tag(),
                [b'<', b'!', b'-', b'-', ..] => self.comment(),
                [b'<', b'!' | b'?', ..] => self.skip_past(b'>'),
                _ => self.literal(1),
            }
        }
    }

    fn rest(&self) -> &'h str {
        &self.html[self.at..]
    }

    /// Takes text up to an offset from here, or all of it.
    fn text_up_to(&mut self, end: Option<usize>) {
        let end = end.unwrap_or(self.html.len() - self.at);
        if end > 0 {
            self.literal(end);
        }
    }

    fn literal(&mut self, length: usize) {
        let text = &self.rest()[..length];
        self.page.text(text);
        self.at += length;
    }

    /// Moves behind the next `byte`, or to the end.
    fn skip_past(&mut self, byte: u8) {
        let end = memchr(byte, self.rest().as_bytes());
        self.at = end.map_or(self.html.len(), |end| self.at + end + 1);
    }

    fn comment(&mut self) {
        self.at += "<!--".len();
        let comment = self.rest().as_bytes();
        let closes = |end: &usize| {
            let inside = &comment[..*end];
            inside.ends_with(b"--") || inside.ends_with(b"--!") || matches!(inside, b"" | b"-")
        };
        let end = memchr_iter(b'>', comment).find(closes);
        self.at = end.map_or(self.html.len(), |end| self.at + end + 1);
    }

    fn start_tag(&mut self) {
        self.at += 1;
        let Some((name, self_closing)) = self.tag() else { return };
        let content = self.page.start_tag(name.as_bytes(), self_closing);
        match content {
            Content::Markup => {}
            Content::Plain => self.text_up_to(None),
            Content::Raw | Content::Escapable => self.element_text(name.as_bytes(), content),
        }
    }

    fn end_tag(&mut self) {
        match self.rest().as_bytes().get(2) {
            Some(b'a'..=b'z' | b'A'..=b'Z') => {
                self.at += 2;
                if let Some((name, _)) = self.tag() {
                    self.page.end_tag(name.as_bytes());
                }
            }
            Some(_) => self.skip_past(b'>'),
            None => self.literal(2),
        }
    }

    /// Takes the rest of a tag from its name on: the name, and whether it closes itself. A tag that does
    /// not end before the page does is none.
    fn tag(&mut self) -> Option<(Name, bool)> {
        let rest = self.rest().as_bytes();
        let end = rest.iter().position(|byte| b" \t\n\x0c\r/>".contains(byte));
        let end = end.unwrap_or(rest.len());
        let name = Name::new(&rest[..end]);
        match attributes_end(&rest[end..]) {
            Some((length, self_closing)) => {
                self.at += end + length;
                Some((name, self_closing))
            }
            None => {
                self.at = self.html.len();
                None
            }
        }
    }

    /// Takes the text of an element in which there are no tags but its end tag.
    fn element_text(&mut self, name: &[u8], content: Content) {
        let rest = self.rest();
        let end = end_tag_of(rest.as_bytes(), name).unwrap_or(rest.len());
        match (content, is_hidden_raw(name)) {
            (_, true) => self.at += end,
            (Content::Escapable, _) => self.escapable(self.at + end),
            _ => self.literal(end),
        }
    }

    fn escapable(&mut self, end: usize) {
        while self.at < end {
            let text = &self.html.as_bytes()[self.at..end];
            match memchr(b'&', text) {
                Some(0) => self.reference(),
                reference => self.literal(reference.unwrap_or(text.len())),
            }
        }
    }

    /// Takes a character reference, or an ampersand that is none.
    fn reference(&mut self) {
        let rest = &self.rest()[1..];
        let (chars, length) = match rest.as_bytes() {
            [b'#', ..] => numeric_reference(rest),
            _ => named_reference(rest),
        };
        if length == 0 {
            return self.literal(1);
        }
        self.at += 1 + length;
        let mut buffer = [0; 4];
        for char in chars.into_iter().flatten() {
            self.page.text(char.encode_utf8(&mut buffer));
        }
    }
}

/// A tag's name in small letters; names longer than any we know are cut.
struct Name {
    bytes: [u8; 16],
    length: usize,
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let length = name.len().min(bytes.len());
        bytes[..length].copy_from_slice(&name[..length]);
        bytes.make_ascii_lowercase();
        Name { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The length of what follows a tag's name, with its `>`, and whether `/` stands before that. A `>` in a
/// quoted value does not count; quotes count only where a value begins.
fn attributes_end(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| !is_space(*byte))?;
        match bytes[at] {
            b'>' => return Some((at + 1, at > 0 && bytes[at - 1] == b'/')),
            b'/' => at += 1,
            _ => at = after_attribute(bytes, at)?,
        }
    }
}

/// Where the attribute that starts at `at` ends.
fn after_attribute(bytes: &[u8], at: usize) -> Option<usize> {
    // An equals sign that comes first belongs to the name.
    let ends_name = |byte: &u8| is_space(*byte) || b"/>=".contains(byte);
    let name_end = at + 1 + bytes[at + 1..].iter().position(ends_name)?;
    let next = name_end + bytes[name_end..].iter().position(|byte| !is_space(*byte))?;
    if bytes[next] != b'=' {
        return Some(next);
    }
    let value = next + 1 + bytes[next + 1..].iter().position(|byte| !is_space(*byte))?;
    match bytes[value] {
        b'>' => Some(value),
        quote @ (b'"' | b'\'') => Some(value + 1 + memchr(quote, &bytes[value + 1..])? + 1),
        _ => {
            let ends_value = |byte: &u8| is_space(*byte) || *byte == b'>';
            Some(value + bytes[value..].iter().position(ends_value)?)
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// Where the end tag of `name` starts.
fn end_tag_of(bytes: &[u8], name: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, b"</").find(|at| {
        let after = &bytes[at + 2..];
        let same = after.get(..name.len()).is_some_and(|other| other.eq_ignore_ascii_case(name));
        same && after.get(name.len()).is_some_and(|&next| is_space(next) || b"/>".contains(&next))
    })
}

/// One or two characters, and how many bytes after the ampersand they take; 0 if it is no reference.
type Reference = ([Option<char>; 2], usize);

/// `#38;` and `#x26;`.
fn numeric_reference(rest: &str) -> Reference {
    let (start, base) = match rest.as_bytes() {
        [_, b'x' | b'X', ..] => (2, 16),
        _ => (1, 10),
    };
    let digits = rest[start..].bytes().take_while(|byte| char::from(*byte).is_digit(base)).count();
    if digits == 0 {
        return ([None; 2], 0);
    }
    // A number too large for its type is too large for a character.
    let code = u32::from_str_radix(&rest[start..start + digits], base).unwrap_or(u32::MAX);
    let char = match code {
        0 => None,
        // What old programs wrote for windows-1252.
        0x80..=0x9f => C1_REPLACEMENTS[code as usize - 0x80].or(char::from_u32(code)),
        _ => char::from_u32(code),
    };
    let end = start + digits;
    let semicolon = usize::from(rest.as_bytes().get(end) == Some(&b';'));
    ([Some(char.unwrap_or(char::REPLACEMENT_CHARACTER)), None], end + semicolon)
}

/// `amp;`, and those old names that need no semicolon: the longest name that is one.
fn named_reference(rest: &str) -> Reference {
    let mut longest = ([None; 2], 0);
    // The table holds the starts of names, too, with no character.
    for end in 1..=rest.len() {
        let known = rest.get(..end).and_then(|name| NAMED_ENTITIES.get(name));
        match known {
            Some((0, _)) => {}
            Some(&(first, second)) => {
                let second = char::from_u32(second).filter(|char| *char != '\0');
                longest = ([char::from_u32(first), second], end);
            }
            None => break,
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::states::RawKind;
    use html5ever::tokenizer::{
        BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
    };
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::time::{Duration, Instant};

    /// The same page, its tags found by html5ever.
    struct Oracle<'t> {
        page: RefCell<Page<'t>>,
        raw: RefCell<Vec<u8>>,
    }

    impl TokenSink for Oracle<'_> {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            let mut page = self.page.borrow_mut();
            match token {
                Token::CharacterTokens(text) if !is_hidden_raw(&self.raw.borrow()) => {
                    page.text(&text);
                }
                Token::TagToken(tag) => {
                    let name = tag.name.as_bytes();
                    self.raw.borrow_mut().clear();
                    if tag.kind == TagKind::EndTag {
                        page.end_tag(name);
                        return TokenSinkResult::Continue;
                    }
                    let content = page.start_tag(name, tag.self_closing);
                    if content != Content::Markup {
                        *self.raw.borrow_mut() = name.to_vec();
                    }
                    return match content {
                        Content::Markup => TokenSinkResult::Continue,
                        Content::Plain => TokenSinkResult::Plaintext,
                        Content::Raw => TokenSinkResult::RawData(RawKind::Rawtext),
                        Content::Escapable => TokenSinkResult::RawData(RawKind::Rcdata),
                    };
                }
                _ => {}
            }
            TokenSinkResult::Continue
        }
    }

    fn by_html5ever(html: &str) -> String {
        let mut text = String::new();
        let page = RefCell::new(Page::new(&mut text));
        let oracle = Oracle { page, raw: RefCell::default() };
        let tokenizer = Tokenizer::new(oracle, TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        drop(tokenizer);
        text
    }

    #[test]
    fn pages_become_text() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("<p>One</p><p>Two</p>", "One\nTwo"),
            ("a<b>b</b>c <i>d</i>", "abc d"),
            ("one<br>two<br/>three", "one\ntwo\nthree"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</table>d", "a\nb\nc\nd"),
            ("  lots \n\t of&nbsp;&#32;space  ", "lots of space"),
            ("<ul><li>x<li>y</ul>", "x\ny"),
            ("word<img src=x alt='no'>word", "word word"),
            ("<pre>fn main() {\n    x\n}</pre>", "fn main() { x }"),
            ("5 < 6 && a<b> c", "5 < 6 && a c"),
            ("<a title='a > b' href=x>link</a>", "link"),
            ("x<!-- <p>no</p> --!>y<!-->z<!--->w", "xyzw"),
            ("<!DOCTYPE html><?php echo ?>x</>y</ z>w", "xyw"),
            ("<script>if (a < b) '</p>'</script>x<STYLE>p{}</sTyLe >y", "xy"),
            ("<noscript><img src=pixel></noscript>x", "x"),
            ("<svg><title>no</title><style>p</style><text>no</text></svg>x", "x"),
            ("a<svg/>b<svg><path>lost<p>found", "a b\nfound"),
            ("<svg><foreignObject><p>no</p></foreignObject>no</svg>yes", "yes"),
            ("<template><template>no</template>no</template>x", "x"),
            ("<textarea><b>&lt;</textarea>", "<b><"),
            ("<title>A &amp; <b>B</title>C", "A & <b>B\nC"),
            ("<plaintext>a <b> &amp;</plaintext>", "a <b> &amp;</plaintext>"),
            (
                "&eacute;&eacute &amp &notit; &#x1F98A;&#128;&#0;&#xD800; &bogus; &",
                "éé & ¬it; 🦊€\u{fffd}\u{fffd} &bogus; &",
            ),
            ("&NotEqualTilde;&#99999999999999;&#;&#x;", "≂\u{338}\u{fffd}&#;&#x;"),
            ("caf\u{e9} 日本<b>語", "café 日本語"),
            ("text <a href=\"never closed>rest", "text"),
            ("<my-element>x</my-element>y", "xy"),
            ("<h1>Title</h1>\n<p>First\nline</p>\n\n<p></p>", "Title\nFirst line"),
        ];
        for (html, text) in cases {
            assert_eq!(text_of_html(html), text, "{html}");
        }
    }

    #[test]
    fn a_whole_page() {
        let html = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Fox &ndash; News</title>
<link rel=stylesheet href=/s.css><script async src="/a.js"></script>
<script type="application/ld+json">{"headline": "<b>no</b>"}</script>
<style>.x > .y { content: "</p>" }</style></head>
<body class=main><nav><ul><li><a href="/">Home</a></li><li><a href="/news">News</a></li></ul></nav>
<main><h1>The <em>quick</em> fox</h1><p>It jumped<sup>1</sup>&#8230; over<br>
the dog.</p><figure><img src="f.jpg" alt="A fox" title="Fox"><figcaption>A&nbsp;fox</figcaption></figure>
<!-- ad --><noscript>Enable JavaScript</noscript></main><footer>&copy; 2024</footer></body></html>"#;
        let text =
            "Fox – News\nHome\nNews\nThe quick fox\nIt jumped1… over\nthe dog.\nA fox\n© 2024";
        assert_eq!(text_of_html(html), text);
    }

    #[test]
    fn appending_starts_afresh() {
        let mut text = String::from("before|");
        append_text_of_html(" <p>x", &mut text);
        assert_eq!(text, "before|x");
    }

    #[test]
    fn hostile_pages_take_linear_time() {
        let pieces = [
            "<",
            "&",
            "<a ",
            "<a b=",
            "</",
            "<!--",
            "<!-->",
            "<![CDATA[",
            "<div>",
            "<svg>",
            "<b x='",
            "<title>",
            "</title",
            "&am",
            "&#1",
            "<script></",
            "<template>",
            "a=\"b\" ",
            "<p/",
            ">",
            "<!-- --",
        ];
        for piece in pieces {
            for start in ["", "<a ", "<title>", "<script>", "<!--", "<svg>"] {
                let html = start.to_owned() + &piece.repeat((1 << 20) / piece.len());
                let began = Instant::now();
                let text = text_of_html(&html);
                assert!(text.len() <= html.len());
                // Quadratic time would be minutes.
                assert!(began.elapsed() < Duration::from_secs(5), "{start}{piece}");
            }
        }
        let attributes: String = (0..100_000).map(|i| format!(" a{i}")).collect();
        assert_eq!(text_of_html(&format!("<p{attributes}>x")), "x");
    }

    /// Soup of the things that matter to a tokenizer.
    fn soup() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "<",
            ">",
            "</",
            "/",
            "=",
            "\"",
            "'",
            " ",
            "\n",
            "!",
            "--",
            "-",
            "?",
            "<!--",
            "-->",
            "&",
            ";",
            "&amp;",
            "&not",
            "&#",
            "&#x41",
            "x",
            "word",
            "é",
            "<p>",
            "<b ",
            "</p>",
            "<br/>",
            "<svg>",
            "</svg>",
            "<title>",
            "</title>",
            "<script>",
            "</script",
            "<textarea>",
            "</TEXTAREA >",
            "<template>",
            "</template>",
            "<style>",
            "</style>",
            "<noscript>",
            "<a href=",
            "<![CDATA[",
            "<td",
            "<plaintext>",
            "foreignObject",
            "<foreignObject>",
            "<!DOCTYPE ",
        ]);
        prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn agrees_with_html5ever(html in soup()) {
            prop_assert_eq!(text_of_html(&html), by_html5ever(&html), "{}", html);
        }
    }
}
