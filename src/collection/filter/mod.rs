//! Which records are meant? Conditions on the payload.

mod parse;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt, str::FromStr};

use serde_json::{Number, Value};

use crate::{Error, Result};

/// A condition on a record's id and payload.
///
/// ```
/// use lookalike::collection::Filter;
/// use serde_json::json;
///
/// let filter: Filter = r#"lang = "en" and year >= 2020"#.parse()?;
/// assert!(filter.matches("a", &json!({ "lang": "en", "year": 2024 })));
/// assert!(!filter.matches("b", &json!({ "lang": "en" })));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # How it is written
///
/// | Condition                  | is true if the field                       |
/// |----------------------------|--------------------------------------------|
/// | `lang = "en"`              | has this value                             |
/// | `lang != "en"`             | has another value, or is not there         |
/// | `year < 2020`              | is less; also `<=`, `>` and `>=`           |
/// | `lang in ("en", "de")`     | has one of these values                    |
/// | `lang not in ("en", "de")` | has none of these values, or is not there  |
/// | `url starts with "https:"` | is a string that begins so                 |
/// | `lang exists`              | is there, be it `null`                     |
///
/// Conditions are joined by `and`, `or` and `not`; `not` binds closest, then `and`, and parentheses come before all.
/// These words may be in capital letters, too.
///
/// A field is a name of letters, digits, `_` and `-`; any other name, and one that is a word of the language, is
/// written in backquotes. Dots lead into objects: `` metadata.`page type` ``. The name `id` means the record's id,
/// whatever the payload has by that name.
///
/// A value is a string in double or single quotes, a number, `true`, `false` or `null`. In quotes of any kind a
/// backslash stands before a quote or a backslash that is meant as it is, and `\n`, `\r` and `\t` are what they are in
/// JSON.
///
/// # What it means
///
/// - A comparison with a field that is not there is false. `!=` and `not in` are the opposite of `=` and `in`, and so
///   they are true of it; and `not` is the opposite of whatever it stands before.
/// - Numbers are compared with numbers, by their exact value: 1 is 1.0. Strings are compared with strings, byte by
///   byte. Values of different types are never equal, and neither is less.
/// - An array is what any of its elements is: `tags = "news"` is true if one of the tags is `"news"`, and `tags !=
///   "news"` if none is. So it is on the way to a field, too: `authors.name = "Ada"` asks for one author of that name.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Condition);

/// No `All` stands in an `All`, no `Any` in an `Any`, no `Not` in a `Not`, and lists have two members at least: what
/// means the same by these rules is the same value.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Field(Field, Test),
}

/// The names that lead to a field, from the outermost object; there is one at least.
#[derive(Debug, Clone, PartialEq)]
struct Field(Vec<String>);

/// What is asked of a field that is there. `!=` and `not in` are negations of these.
#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    /// The field has one of these values, of which there is one at least; none is an array or an object.
    OneOf(Vec<Value>),
    StartsWith(String),
    /// The value is a number or a string: nothing else has an order.
    Order(Order, Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Filter {
    /// Whether a record is meant. The payload is an object, or `null` if there is none.
    pub fn matches(&self, id: &str, payload: &Value) -> bool {
        self.0.matches(id, payload)
    }

    /// A field has this value. The path is a name, or names from the outermost object inwards with dots between them;
    /// no sign in it has another meaning. Of an object every field is asked for, of an array every element, and of
    /// empty ones only that the field is there.
    pub fn field_is(path: &str, value: Value) -> Self {
        Filter(field_is(path.split('.').map(str::to_owned).collect(), value))
    }

    /// Both are true.
    pub fn and(self, other: Filter) -> Self {
        Filter(Condition::all(vec![self.0, other.0]))
    }

    /// One of them is true, or both.
    pub fn or(self, other: Filter) -> Self {
        Filter(Condition::any(vec![self.0, other.0]))
    }

    /// The opposite.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is used in one chain with `and` and `or`"
    )]
    pub fn not(self) -> Self {
        Filter(self.0.negated())
    }
}

fn field_is(path: Vec<String>, value: Value) -> Condition {
    let parts: Vec<Condition> = match value {
        Value::Object(fields) => {
            let inner = |name| path.iter().cloned().chain([name]).collect();
            fields.into_iter().map(|(name, value)| field_is(inner(name), value)).collect()
        }
        Value::Array(values) => {
            values.into_iter().map(|value| field_is(path.clone(), value)).collect()
        }
        value => return Condition::Field(Field(path), Test::OneOf(vec![value])),
    };
    if parts.is_empty() {
        return Condition::Field(Field(path), Test::Exists);
    }
    Condition::all(parts)
}

impl Condition {
    /// All of the parts, of which there is one at least.
    fn all(parts: Vec<Condition>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Condition::All(inner) => inner,
            other => vec![other],
        });
        single(flat.collect()).unwrap_or_else(Condition::All)
    }

    /// Any of the parts, of which there is one at least.
    fn any(parts: Vec<Condition>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Condition::Any(inner) => inner,
            other => vec![other],
        });
        single(flat.collect()).unwrap_or_else(Condition::Any)
    }

    fn negated(self) -> Self {
        match self {
            Condition::Not(inner) => *inner,
            other => Condition::Not(Box::new(other)),
        }
    }

    fn matches(&self, id: &str, payload: &Value) -> bool {
        match self {
            Condition::All(parts) => parts.iter().all(|part| part.matches(id, payload)),
            Condition::Any(parts) => parts.iter().any(|part| part.matches(id, payload)),
            Condition::Not(inner) => !inner.matches(id, payload),
            Condition::Field(Field(path), test) if path[0] == ID => {
                test.is_true_of(&path[1..], &Value::from(id))
            }
            Condition::Field(Field(path), test) => test.is_true_of(path, payload),
        }
    }
}

/// The field that is the record's id.
const ID: &str = "id";

/// The only member of a list, or the list again.
fn single(mut parts: Vec<Condition>) -> Result<Condition, Vec<Condition>> {
    match parts.pop() {
        Some(only) if parts.is_empty() => Ok(only),
        last => {
            parts.extend(last);
            Err(parts)
        }
    }
}

impl Test {
    /// Whether the test holds for what the path leads to, or for any of it where there are arrays.
    fn is_true_of(&self, path: &[String], value: &Value) -> bool {
        if path.is_empty() && self.holds(value) {
            return true;
        }
        match (value, path) {
            (Value::Array(elements), _) => {
                elements.iter().any(|element| self.is_true_of(path, element))
            }
            (Value::Object(fields), [name, rest @ ..]) => {
                fields.get(name).is_some_and(|field| self.is_true_of(rest, field))
            }
            _ => false,
        }
    }

    /// Whether the test holds for this very value.
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Test::Exists, _) => true,
            (Test::OneOf(wanted), _) => wanted.iter().any(|wanted| is_equal(value, wanted)),
            (Test::StartsWith(prefix), Value::String(text)) => text.starts_with(prefix),
            (Test::StartsWith(_), _) => false,
            (Test::Order(order, bound), _) => {
                compare(value, bound).is_some_and(|found| order.holds(found))
            }
        }
    }
}

impl Order {
    fn holds(self, found: Ordering) -> bool {
        match self {
            Order::Less => found.is_lt(),
            Order::AtMost => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::AtLeast => found.is_ge(),
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Order::Less => "<",
            Order::AtMost => "<=",
            Order::Greater => ">",
            Order::AtLeast => ">=",
        }
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare_numbers(left, right).is_some_and(Ordering::is_eq)
        }
        _ => left == right,
    }
}

/// The order of two values, if they have one.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => compare_whole(left, right.as_f64()?),
        (None, Some(right)) => compare_whole(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Compares without rounding: a whole number beyond 2^53 may have no float of its value. A float past the bounds of 128
/// bits becomes a bound, which no number of a payload reaches.
fn compare_whole(whole: i128, float: f64) -> Option<Ordering> {
    let fraction = 0.0.partial_cmp(&float.fract())?;
    Some(whole.cmp(&(float as i128)).then(fraction))
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse::parse(text).map(Filter)
    }
}

/// A text that is read as the same filter, unless code has nested it deeper than a text may be.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::All(parts) => join(f, " and ", parts, |f, part| match part {
                Condition::Any(_) => write!(f, "({part})"),
                _ => part.fmt(f),
            }),
            Condition::Any(parts) => join(f, " or ", parts, |f, part| part.fmt(f)),
            Condition::Not(inner) => match &**inner {
                Condition::Field(field, Test::OneOf(values)) => match &values[..] {
                    [value] => write!(f, "{field} != {}", Shown(value)),
                    _ => write!(f, "{field} not in {}", List(values)),
                },
                Condition::Field(..) => write!(f, "not {inner}"),
                _ => write!(f, "not ({inner})"),
            },
            Condition::Field(field, test) => write!(f, "{field} {test}"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Exists => f.write_str("exists"),
            Test::OneOf(values) => match &values[..] {
                [value] => write!(f, "= {}", Shown(value)),
                _ => write!(f, "in {}", List(values)),
            },
            Test::StartsWith(prefix) => write!(f, "starts with {}", Quoted('"', prefix)),
            Test::Order(order, bound) => write!(f, "{} {}", order.symbol(), Shown(bound)),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        join(f, ".", &self.0, |f, name| match parse::is_bare(name) {
            true => f.write_str(name),
            false => Quoted('`', name).fmt(f),
        })
    }
}

/// A value as it is written in a filter.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => Quoted('"', text).fmt(f),
            other => other.fmt(f),
        }
    }
}

/// Values in parentheses.
struct List<'a>(&'a [Value]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        join(f, ", ", self.0, |f, value| Shown(value).fmt(f))?;
        f.write_str(")")
    }
}

/// A text between quotes of a kind.
struct Quoted<'a>(char, &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quoted(quote, text) = *self;
        write!(f, "{quote}")?;
        for c in text.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\\' => f.write_str("\\\\")?,
                c if c == quote => write!(f, "\\{c}")?,
                c => write!(f, "{c}")?,
            }
        }
        write!(f, "{quote}")
    }
}

fn join<T>(
    f: &mut fmt::Formatter<'_>,
    between: &str,
    parts: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        write(f, part)?;
    }
    Ok(())
}
