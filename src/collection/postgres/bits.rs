//! Signatures as PostgreSQL's bit strings: the leading bit of the leading byte is the first of the string.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// The bytes of a signature, on their way to or from a column of type `bit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits<'a>(pub(super) &'a [u8]);

/// The bytes of the number of bits, which come before the bits.
const LENGTH: usize = 4;

impl ToSql for Bits<'_> {
    fn to_sql(&self, _: &Type, to: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        to.put_i32(i32::try_from(self.0.len() * 8)?);
        to.put_slice(self.0);
        Ok(IsNull::No)
    }

    accepts!(BIT);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Bits<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match raw.split_first_chunk::<LENGTH>() {
            Some((length, bytes)) if i32::from_be_bytes(*length) as usize == bytes.len() * 8 => {
                Ok(Bits(bytes))
            }
            _ => Err("a bit string that is not whole bytes".into()),
        }
    }

    accepts!(BIT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back() {
        let mut wire = BytesMut::new();
        Bits(&[0x80, 0x01]).to_sql(&Type::BIT, &mut wire).unwrap();
        assert_eq!(wire[..], [0, 0, 0, 16, 0x80, 0x01]);
        assert_eq!(Bits::from_sql(&Type::BIT, &wire).unwrap(), Bits(&[0x80, 0x01]));
        assert!(Bits::from_sql(&Type::BIT, &[0, 0, 0, 12, 0x80, 0]).is_err());
        assert!(Bits::from_sql(&Type::BIT, &[0, 0]).is_err());
    }
}
