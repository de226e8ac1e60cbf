//! From a text to a filter, by recursive descent: `or`, `and`, `not`, comparison.

use serde_json::{Number, Value};

use super::{Condition, Field, Order, Test};
use crate::{Error, Result};

/// Each level takes some of the stack, and no one writes so many.
const DEEPEST: usize = 100;

/// These would be misread as names of fields.
const RESERVED: [&str; 7] = ["and", "or", "not", "in", "true", "false", "null"];

/// Reads a filter.
pub(super) fn parse(text: &str) -> Result<Condition> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let condition = reader.any()?;
    match reader.rest() {
        "" => Ok(condition),
        _ => Err(reader.expected("`and`, `or` or the end")),
    }
}

/// Whether a name needs no backquotes.
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_of_name) && !is_reserved(name)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// A text, and how far it is read.
struct Reader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    /// How many parentheses and `not`s we are in.
    depth: usize,
}

impl<'a> Reader<'a> {
    fn any(&mut self) -> Result<Condition> {
        let mut parts = vec![self.all()?];
        while self.takes_word("or") {
            parts.push(self.all()?);
        }
        Ok(Condition::any(parts))
    }

    fn all(&mut self) -> Result<Condition> {
        let mut parts = vec![self.one()?];
        while self.takes_word("and") {
            parts.push(self.one()?);
        }
        Ok(Condition::all(parts))
    }

    fn one(&mut self) -> Result<Condition> {
        if self.takes_word("not") {
            return Ok(self.nested(Self::one)?.negated());
        }
        if self.takes("(") {
            let inner = self.nested(Self::any)?;
            self.needs(")", "`and`, `or` or `)`")?;
            return Ok(inner);
        }
        self.comparison()
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Result<Condition>) -> Result<Condition> {
        if self.depth == DEEPEST {
            return Err(self.error(format!("conditions are nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let condition = read(self)?;
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition> {
        let field = self.field()?;
        if self.takes("!=") {
            return Ok(Condition::Field(field, Test::OneOf(vec![self.value()?])).negated());
        }
        if self.takes_word("not") {
            self.needs_word("in")?;
            return Ok(Condition::Field(field, Test::OneOf(self.values()?)).negated());
        }
        Ok(Condition::Field(field, self.test()?))
    }

    fn test(&mut self) -> Result<Test> {
        if self.takes("=") {
            return Ok(Test::OneOf(vec![self.value()?]));
        }
        if self.takes_word("in") {
            return Ok(Test::OneOf(self.values()?));
        }
        if self.takes_word("starts") {
            self.needs_word("with")?;
            return Ok(Test::StartsWith(self.string()?));
        }
        if self.takes_word("exists") {
            return Ok(Test::Exists);
        }
        // The longer ones first: `<=` begins with `<`.
        let orders = [Order::AtMost, Order::AtLeast, Order::Less, Order::Greater];
        match orders.into_iter().find(|order| self.takes(order.symbol())) {
            Some(order) => Ok(Test::Order(order, self.bound()?)),
            None => Err(self.expected(
                "`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `starts with` or `exists`",
            )),
        }
    }

    fn field(&mut self) -> Result<Field> {
        self.skip_space();
        let start = self.at;
        let mut names = vec![self.name()?];
        while self.text[self.at..].starts_with('.') {
            self.at += 1;
            names.push(self.name()?);
        }
        let written = &self.text[start..self.at];
        if is_reserved(written) {
            self.at = start;
            return Err(self.expected(&format!(
                "a field: one that is called so is written as `{written}` in backquotes"
            )));
        }
        Ok(Field(names))
    }

    /// A name that begins right here.
    fn name(&mut self) -> Result<String> {
        let rest = &self.text[self.at..];
        if rest.starts_with('`') {
            return self.quoted('`');
        }
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.expected("the name of a field"));
        }
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    /// Values in parentheses.
    fn values(&mut self) -> Result<Vec<Value>> {
        self.needs("(", "values in parentheses")?;
        let mut values = vec![self.value()?];
        while self.takes(",") {
            values.push(self.value()?);
        }
        self.needs(")", "`,` or `)`")?;
        Ok(values)
    }

    fn value(&mut self) -> Result<Value> {
        let words = [("true", true.into()), ("false", false.into()), ("null", Value::Null)];
        if let Some((_, value)) = words.into_iter().find(|(word, _)| self.takes_word(word)) {
            return Ok(value);
        }
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            return self.string().map(Value::String);
        }
        if rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
            return self.number().map(Value::Number);
        }
        Err(self.expected("a value: a string in quotes, a number, `true`, `false` or `null`"))
    }

    /// A value that others are less than.
    fn bound(&mut self) -> Result<Value> {
        self.skip_space();
        let start = self.at;
        match self.value()? {
            value @ (Value::Number(_) | Value::String(_)) => Ok(value),
            _ => {
                self.at = start;
                Err(self.expected("a number or a string, since nothing else has an order"))
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => Err(self.expected("a string in quotes")),
        }
    }

    /// What is between the quote that is right here and the next one.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        let mut text = String::new();
        let mut rest = self.text[start..].char_indices().skip(1);
        while let Some((at, c)) = rest.next() {
            match c {
                '\\' => {
                    self.at = start + at;
                    let escaped = rest.next().and_then(|(_, c)| unescaped(c));
                    text.push(escaped.ok_or_else(|| self.error(ESCAPES.into()))?);
                }
                c if c == quote => {
                    self.at = start + at + c.len_utf8();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        self.at = start;
        Err(self.error("the quote that begins here does not end".into()))
    }

    fn number(&mut self) -> Result<Number> {
        let rest = self.rest();
        let is_of_number = |c| is_of_name(c) || c == '.' || c == '+';
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let written = &rest[..end];
        let whole = || written.parse::<i64>().map(Number::from).ok();
        let positive = || written.parse::<u64>().map(Number::from).ok();
        let float = || written.parse().ok().and_then(Number::from_f64);
        let number = whole().or_else(positive).or_else(float);
        let number = number.ok_or_else(|| self.error(format!("`{written}` is not a number")))?;
        self.at += end;
        Ok(number)
    }

    /// What is still to be read, from its first sign that is not space.
    fn rest(&mut self) -> &'a str {
        self.skip_space();
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Goes past a sign, if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    /// Goes past a word, if it comes next. In `order` or `or.x` no `or` comes next.
    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let is_next = rest.get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word))
            && !rest[word.len()..].starts_with(|c| is_of_name(c) || c == '.');
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn needs(&mut self, sign: &str, wanted: &str) -> Result<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(wanted)) }
    }

    fn needs_word(&mut self, word: &str) -> Result<()> {
        if self.takes_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    fn expected(&self, wanted: &str) -> Error {
        self.error(format!("expected {wanted}"))
    }

    /// An error about the sign that comes next.
    fn error(&self, problem: String) -> Error {
        let at = self.text[..self.at].chars().count() + 1;
        Error::Filter { text: self.text.to_owned(), at, problem }
    }
}

/// What a sign means after a backslash.
fn unescaped(c: char) -> Option<char> {
    match c {
        '"' | '\'' | '`' | '\\' => Some(c),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        _ => None,
    }
}

const ESCAPES: &str =
    "a backslash stands before a quote, `n`, `r`, `t` or another: a plain one is written twice";
