//! What filters mean, how they are written, and what is said of those that are not.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn record() -> Value {
    json!({
        "lang": "en",
        "year": 2020,
        "score": 0.5,
        "big": u64::MAX,
        "small": i64::MIN,
        "draft": false,
        "parent": null,
        "tags": ["news", "harbour", 7, null],
        "none": [],
        "metadata": { "lang": "de", "page type": "a\"b\\c", "in": 1 },
        "authors": [{ "name": "Ada", "born": 1815 }, { "name": "Grace", "born": 1906 }],
        "id": "the payload's own",
        "Größe": "1\n2",
        "starts": 3,
        "and": 4,
        "": 5,
        "a.b": 6,
    })
}

#[test]
fn filters_that_are_true() {
    for text in [
        "lang = 'en'",
        r#"lang = "en" and year >= 2020"#,
        "LANG exists or Lang exists OR NOT (lang != 'en')",
        "year=2020 and year = 2020.0 and year = 2.02e3 and year = 2020e+0",
        "year < 2020.5 and year > 2019.5 and year <= 2020 and year >= 2020",
        "score = 0.5 and score > 0 and score < 1 and score > -1 and score = 5e-1",
        "big = 18446744073709551615 and big > 18446744073709551614 and big < 1.9e19",
        "small = -9223372036854775808 and small < -9223372036854775807 and small > -1e300",
        "big < 18446744073709551616",
        "draft = false and draft != true and draft != 0 and draft != 'false'",
        "parent = null and parent exists and parent != 'x'",
        "missing != 1 and missing not in (1, null) and not missing exists and missing != null",
        "not missing < 1 and not missing >= 1 and not missing starts with ''",
        "lang in ('de', 'en') and lang not in ('de', 1, null)",
        "lang > 'e' and lang < 'eo' and lang <= 'en' and lang < 'é'",
        "not lang < 5 and not lang >= 5 and lang != 5 and year != '2020'",
        "lang starts with 'e' and lang STARTS  WITH '' and not lang starts with 'n'",
        "tags = 'news' and tags = 7 and tags = null and tags in (7, 8)",
        "tags > 6 and tags < 8 and tags starts with 'har' and tags exists",
        "tags != 'old' and not tags != 'news' and tags not in ('x', 'y')",
        "none exists and none != 1 and not none = null",
        "metadata.lang = 'de' and metadata exists and metadata.in = 1 and metadata != 1",
        r#"metadata.`page type` = "a\"b\\c" and metadata.`page type` = 'a"b\\c'"#,
        "authors.name = 'Ada' and authors.born > 1900 and not authors.name = 'Alan'",
        "lang.x != 1 and not lang.x exists and not year.y.z exists",
        "id = 'r-1' and id starts with 'r' and `id` = 'r-1' and not id.x exists",
        r"Größe = '1\n2' and Größe starts with '1' and `Größe` != ''",
        "starts = 3 and starts exists and not starts starts with '3'",
        "`and` = 4 and `` = 5 and `a.b` = 6 and not a.b exists",
        "lang = 'de' and year = 1 or lang = 'en'",
        "lang = 'en' or lang = 'de' and year = 1",
        "not lang = 'de' and year = 2020",
        "not not lang = 'en' and ((((year = 2020))))",
        "\n lang\t=\n'en' ",
    ] {
        assert!(filter(text).matches("r-1", &record()), "{text}");
        assert!(!filter(text).not().matches("r-1", &record()), "{text}");
    }
}

#[test]
fn filters_that_are_false() {
    for text in [
        "lang = 'EN'",
        "lang = 'en' and missing = 1",
        "(lang = 'en' or lang = 'de') and year = 1",
        "big = 18446744073709551614 or big = 18446744073709551616 or big = 1.8446744073709552e19",
        "missing = null or missing exists or missing in (null)",
        "tags = 'harb' or tags != 7 or tags not in (7) or tags < 7",
        "metadata = 'de' or metadata > 0 or parent > 0 or draft > 0",
        "id = \"the payload's own\"",
        "authors.name = 'Ada' and authors.born > 2000",
    ] {
        assert!(!filter(text).matches("r-1", &record()), "{text}");
    }
}

#[test]
fn a_record_without_payload() {
    assert!(filter("id = 'r' and lang != 'en' and not lang exists").matches("r", &Value::Null));
    assert!(!filter("lang = null").matches("r", &Value::Null));
}

#[test]
fn what_is_not_a_filter() {
    for (text, at, problem) in [
        ("", 1, "expected the name of a field"),
        ("  ", 3, "expected the name of a field"),
        ("lang", 5, "expected `=`, `!=`, `<`"),
        ("lang = ", 8, "expected a value"),
        ("lang = en", 8, "expected a value: a string in quotes"),
        ("lang == 'en'", 7, "expected a value"),
        ("lang = 'en", 8, "the quote that begins here does not end"),
        ("größe = 'a\\d'", 11, "a backslash stands before"),
        ("lang = 'en\\", 11, "a backslash stands before"),
        ("lang = 'en' year = 1", 13, "expected `and`, `or` or the end"),
        ("lang = 'en' && year = 1", 13, "expected `and`, `or` or the end"),
        ("lang = 'en' and", 16, "expected the name of a field"),
        ("(lang = 'en'", 13, "expected `and`, `or` or `)`"),
        ("lang = 'en')", 12, "expected `and`, `or` or the end"),
        ("lang in 'en'", 9, "expected values in parentheses"),
        ("lang in ()", 10, "expected a value"),
        ("lang in ('a' 'b')", 14, "expected `,` or `)`"),
        ("lang not 'a'", 10, "expected `in`"),
        ("lang starts 'a'", 13, "expected `with`"),
        ("year starts with 2", 18, "expected a string in quotes"),
        ("draft > true", 9, "expected a number or a string"),
        ("year = 20x", 8, "`20x` is not a number"),
        ("year = 1e999", 8, "`1e999` is not a number"),
        ("year = -", 8, "expected a value"),
        ("and = 1", 1, "expected a field: one that is called so is written as `and` in backquotes"),
        ("a. = 1", 3, "expected the name of a field"),
        ("odd name = 1", 5, "expected `=`, `!=`"),
    ] {
        match text.parse::<Filter>() {
            Err(Error::Filter { text: whole, at: found, problem: said }) => {
                assert_eq!((whole.as_str(), found), (text, at), "{said}");
                assert!(said.starts_with(problem), "{text}: {said}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let error = "year > x".parse::<Filter>().unwrap_err().to_string();
    assert!(error.starts_with("filter `year > x`: at character 8, expected a value"), "{error}");
}

#[test]
fn nesting_has_an_end_and_length_has_none() {
    let nested = |depth| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(filter(&nested(100)), filter("a = 1"));
    for text in [nested(101), nested(1_000_000), "(".repeat(100_000), "not ".repeat(100_000)] {
        let error = text.parse::<Filter>().unwrap_err();
        assert!(matches!(error, Error::Filter { at, .. } if at > 100), "{at}", at = text.len());
    }
    let long = vec!["a = 1"; 100_000].join(" and ");
    assert_eq!(filter(&long).to_string(), long);
}

#[test]
fn filters_are_written_in_one_way() {
    for (text, written) in [
        ("a='x' AND(b=1)", r#"a = "x" and b = 1"#),
        ("not a = 1 and not not b = 1 or not (c != 1)", "a != 1 and b = 1 or c = 1"),
        ("not a in (1, 'x') or b in (1.0)", r#"a not in (1, "x") or b = 1.0"#),
        ("(a exists or b exists) and not (c exists and d exists)", ""),
        ("not a exists and not b starts with \"c\" and not d < 1", ""),
        ("(a = 1 and b = 2) and (c = 3 and (d = 4))", "a = 1 and b = 2 and c = 3 and d = 4"),
        ("`a`.`in`.`b c`.x = '\"\n'", r#"a.`in`.`b c`.x = "\"\n""#),
    ] {
        assert_eq!(filter(text).to_string(), if written.is_empty() { text } else { written });
    }
}

#[test]
fn filters_made_by_code() {
    let made = Filter::field_is("lang", "en".into()).and(Filter::field_is("m.year", 1.into()));
    assert_eq!(made, filter("lang = 'en' and m.year = 1"));
    assert_eq!(made.clone().or(made.clone().not()).to_string().parse::<Filter>().unwrap(), {
        filter("(lang = 'en' and m.year = 1) or not (lang = 'en' and m.year = 1)")
    });
    let whole =
        Filter::field_is("m", json!({ "a": [1, 2], "b c": { "d": null }, "e": {}, "f": [] }));
    let parts = filter("m.a = 1 and m.a = 2 and m.`b c`.d = null and m.e exists and m.f exists");
    assert_eq!(whole, parts);
}

#[test]
fn filters_go_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Filter>();
}

/// Few names and values, so that filters and payloads meet.
fn name() -> impl Strategy<Value = String> {
    let odd =
        ["a", "b", "c", "id", "not", "in", "", "b c", "d.e", "`", "\\", "ü", "-", "1", "\n'\""];
    prop_oneof![4 => select(vec!["a", "b", "c"]), 1 => select(odd.to_vec())].prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    let near = [i64::MAX as u64, 1 << 53, (1 << 53) + 1, u64::MAX];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3i64).prop_map(Value::from),
        (-4..5i32).prop_map(|half| Value::from(f64::from(half) / 2.0)),
        select(near.to_vec()).prop_map(Value::from),
        select(near.to_vec()).prop_map(|whole| Value::from(whole as f64)),
        any::<f64>()
            .prop_filter_map("JSON has it", |float| Number::from_f64(float).map(Value::from)),
        any::<i64>().prop_map(Value::from),
        name().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn payload() -> impl Strategy<Value = Value> {
    let fields = scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    });
    vec((name(), fields), 0..6).prop_map(|fields| fields.into_iter().collect())
}

fn test() -> impl Strategy<Value = Test> {
    let order = select(vec![Order::Less, Order::AtMost, Order::Greater, Order::AtLeast]);
    let ordered =
        scalar().prop_filter("has an order", |value| value.is_number() || value.is_string());
    prop_oneof![
        Just(Test::Exists),
        vec(scalar(), 1..4).prop_map(Test::OneOf),
        any::<String>().prop_map(Test::StartsWith),
        name().prop_map(Test::StartsWith),
        (order, ordered).prop_map(|(order, bound)| Test::Order(order, bound)),
    ]
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let field = (vec(name(), 1..4), test());
    let leaf = field.prop_map(|(path, test)| Filter(Condition::Field(Field(path), test)));
    leaf.prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| left.and(right)),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| left.or(right)),
            inner.prop_map(Filter::not),
        ]
    })
}

/// Texts that are nearly filters.
fn nearly() -> impl Strategy<Value = String> {
    let parts = [
        "and",
        "or",
        "not",
        "in",
        "starts with",
        "exists",
        "(",
        ")",
        ",",
        "=",
        "!=",
        "<",
        ">=",
        "a",
        "`b",
        "`",
        ".",
        "'",
        "\"x\"",
        "\\",
        "1",
        "-",
        "1e9",
        "true",
        "null",
        " ",
        "ü",
        "\u{a0}",
        "\u{1f600}",
    ];
    vec(select(parts.to_vec()), 0..20).prop_map(|parts| parts.concat())
}

/// The order of two numbers by their decimal digits: no arithmetic that could round.
fn by_digits(left: &Number, right: &Number) -> Ordering {
    let key = |number: &Number| {
        let digits = match number.as_i128() {
            Some(whole) => format!("{whole}.0"),
            None => format!("{:.1100}", number.as_f64().unwrap()),
        };
        let (whole, fraction) = digits.trim_start_matches('-').split_once('.').unwrap();
        let key = (format!("{whole:0>400}"), fraction.trim_end_matches('0').to_owned());
        let is_zero = key.0.bytes().chain(key.1.bytes()).all(|digit| digit == b'0');
        (digits.starts_with('-') && !is_zero, key)
    };
    match (key(left), key(right)) {
        ((false, left), (false, right)) => left.cmp(&right),
        ((true, left), (true, right)) => right.cmp(&left),
        ((left, _), (right, _)) => right.cmp(&left),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(filter in any_filter()) {
        prop_assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
    }

    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![any::<String>(), nearly()], payload in payload()) {
        match text.parse::<Filter>() {
            Ok(filter) => {
                filter.matches("a", &payload);
                prop_assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
            }
            Err(Error::Filter { at, .. }) => prop_assert!((1..=text.chars().count() + 1).contains(&at)),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }

    #[test]
    fn and_or_and_not_are_those_of_logic(
        left in any_filter(), right in any_filter(), id in name(), payload in payload(),
    ) {
        let of = |filter: &Filter| filter.matches(&id, &payload);
        let (both, either) = (left.clone().and(right.clone()), left.clone().or(right.clone()));
        prop_assert_eq!(of(&both), of(&left) && of(&right));
        prop_assert_eq!(of(&either), of(&left) || of(&right));
        prop_assert_eq!(of(&both.clone().not()), of(&left.clone().not().or(right.clone().not())));
        prop_assert_eq!(of(&either.not()), of(&left.not().and(right.not())));
        prop_assert_eq!(of(&both.clone().not()), !of(&both));
    }

    #[test]
    fn values_are_compared_by_what_they_are(left in scalar(), right in scalar()) {
        let record = json!({ "a": left, "many": [[], ["x", left]] });
        let expected = match (&left, &right) {
            (Value::Number(left), Value::Number(right)) => Some(by_digits(left, right)),
            (Value::String(left), Value::String(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
            _ => None,
        };
        let is = |symbol: &str| {
            let text = format!("a {symbol} {}", Shown(&right));
            text.parse::<Filter>().is_ok_and(|filter| filter.matches("r", &record))
        };
        let equal = expected.map_or(left == right, Ordering::is_eq);
        prop_assert_eq!((is("="), is("!=")), (equal, !equal));
        prop_assert_eq!((is("<"), is("<=")), (
            expected.is_some_and(Ordering::is_lt), expected.is_some_and(Ordering::is_le)
        ));
        prop_assert_eq!((is(">"), is(">=")), (
            expected.is_some_and(Ordering::is_gt), expected.is_some_and(Ordering::is_ge)
        ));
        prop_assert!(!equal || Filter::field_is("many", right).matches("r", &record));
    }
}
