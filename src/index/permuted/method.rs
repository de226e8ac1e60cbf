//! The numbers of permuted orders, as text.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// How many orders there are, and how many rows a query looks at. Written as in `permuted`, `permuted-16`,
/// `permuted-16x1024`; what is left out has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PermutedMethod {
    /// How many orders there are.
    pub orders: usize,
    /// How many rows a query looks at; one met in several orders counts once.
    pub walks: usize,
}

/// More orders than this are never worth their memory.
pub(super) const MOST_ORDERS: usize = 4096;
const ORDERS: usize = 16;
const WALKS_PER_ORDER: usize = 32;

impl PermutedMethod {
    /// So many orders, and as many looks as suit them.
    pub fn new(orders: usize) -> Self {
        PermutedMethod { orders, walks: orders.saturating_mul(WALKS_PER_ORDER) }
    }

    /// How much memory the orders of so many rows take at most, with what leads from a signature to its copies.
    pub fn bytes(&self, rows: usize) -> u64 {
        (12 * self.orders as u64 + 4).saturating_mul(rows as u64)
    }

    /// The numbers, if they can be built.
    pub(super) fn checked(self) -> Result<Self> {
        match (1..=MOST_ORDERS).contains(&self.orders) && self.walks > 0 {
            true => Ok(self),
            false => {
                let problem = format!("needs 1 to {MOST_ORDERS} orders and at least one look");
                Err(Error::Method { method: self.to_string(), problem })
            }
        }
    }
}

impl Default for PermutedMethod {
    fn default() -> Self {
        PermutedMethod::new(ORDERS)
    }
}

impl fmt::Display for PermutedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permuted-{}", self.orders)?;
        match *self == PermutedMethod::new(self.orders) {
            true => Ok(()),
            false => write!(f, "x{}", self.walks),
        }
    }
}

impl FromStr for PermutedMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
            text.parse().ok().filter(|_| plain)
        };
        let parse = || {
            let numbers = text.strip_prefix("permuted")?;
            if numbers.is_empty() {
                return Some(PermutedMethod::default());
            }
            match numbers.strip_prefix('-')?.split_once('x') {
                None => Some(PermutedMethod::new(number(&numbers[1..])?)),
                Some((orders, walks)) => {
                    Some(PermutedMethod { orders: number(orders)?, walks: number(walks)? })
                }
            }
        };
        let problem = "is not a method: it is written as permuted, permuted-16, permuted-16x1024";
        let wrong = || Error::Method { method: text.to_owned(), problem: problem.to_owned() };
        parse().ok_or_else(wrong)?.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["permuted-1", "permuted-16", "permuted-20x7", "permuted-4096x1000000"] {
            assert_eq!(text.parse::<PermutedMethod>().unwrap().to_string(), text);
        }
        let parsed = |text: &str| text.parse::<PermutedMethod>().unwrap();
        assert_eq!(parsed("permuted"), PermutedMethod::default());
        assert_eq!(parsed("permuted"), parsed("permuted-16"));
        assert_eq!(parsed("permuted-16"), parsed("permuted-16x512"));
        assert_eq!(parsed("permuted-8x99"), PermutedMethod { orders: 8, walks: 99 });
    }

    #[test]
    fn other_texts_are_refused() {
        let texts = [
            "",
            "permute",
            "permuted-",
            "permuted-x",
            "permuted-0",
            "permuted-016",
            "permuted-+4",
            "permuted-4x",
            "permuted-4x0",
            "permuted-4x8x2",
            "permuted-4-8",
            "permuted4",
            "permuted-4097",
            "permuted-99999999999999999999",
            "pieces-4",
            "Permuted",
        ];
        for text in texts {
            let parsed = text.parse::<PermutedMethod>();
            assert!(matches!(parsed, Err(Error::Method { .. })), "{text}");
        }
    }
}
