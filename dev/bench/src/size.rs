//! Sizes on the command line: `8G`, `256M`, `64K`, plain bytes. Powers of 1024, as in ssh options.

use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            unit => return Err(format!("unknown unit {unit}: use K, M or G")),
        };
        let number: u64 = digits.parse().map_err(|why| format!("{text}: {why}"))?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(|| format!("{text}: too large"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        assert_eq!("8G".parse(), Ok(Size(8 << 30)));
        assert_eq!("64k".parse(), Ok(Size(64 << 10)));
        assert_eq!("17".parse(), Ok(Size(17)));
        assert!("1T".parse::<Size>().is_err());
        assert!("G".parse::<Size>().is_err());
        assert!("99999999999G".parse::<Size>().is_err());
    }
}
