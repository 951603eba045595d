//! `--shard K/N`: which files of a tree are this host's. N hosts given the same tree and 1/N to
//! N/N copy every file once, without talking to each other.
//!
//! A file belongs to a shard by the hash of its path below the source, so the answer is the same on
//! every host, in every run, and whatever else is in the tree. Files and links are dealt out whole;
//! directories belong to every shard, since each needs them for what it puts into them.

use std::fmt;
use std::num::NonZeroU32;

/// Part K of N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: NonZeroU32,
    of: NonZeroU32,
}

impl Shard {
    /// Reads `K/N`, with K from 1 to N.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not K/N, such as 3/16");
        let (part, of) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (part, of) = (number(part)?, number(of)?);
        let outside = || format!("'{text}': the part is from 1 to {of}");
        match (NonZeroU32::new(part), NonZeroU32::new(of)) {
            (_, None) => Err(wrong()),
            (Some(part), Some(of)) if part <= of => Ok(Self { part, of }),
            _ => Err(outside()),
        }
    }

    /// Whether the file with this path below the source is in this part.
    #[must_use]
    pub fn holds(self, path: &[u8]) -> bool {
        self.of.get() == 1
            || hash(path) % u64::from(self.of.get()) == u64::from(self.part.get() - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// The first eight bytes of BLAKE3, so that all hosts and versions agree.
fn hash(path: &[u8]) -> u64 {
    blake3::hash(path).as_bytes().iter().take(8).fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Vec<u8>> {
        let names = (0..20_000).map(|n| format!("d{}/e{}/file{n}", n % 7, n % 131).into_bytes());
        names.chain([b"odd\xff\n".to_vec(), b"".to_vec()]).collect()
    }

    #[test]
    fn the_shards_of_a_tree_are_disjoint_and_complete() {
        for of in [1, 2, 3, 16, 100] {
            let shards: Vec<_> =
                (1..=of).map(|part| Shard::parse(&format!("{part}/{of}")).unwrap()).collect();
            for path in tree() {
                assert_eq!(shards.iter().filter(|shard| shard.holds(&path)).count(), 1);
            }
        }
    }

    #[test]
    fn shards_are_about_equal() {
        let shard = Shard::parse("3/16").unwrap();
        let mine = tree().iter().filter(|path| shard.holds(path)).count();
        assert!((1000..1500).contains(&mine), "{mine} of 20000/16");
    }

    /// Hosts with different versions may share one tree: this never changes.
    #[test]
    fn the_part_of_a_path_is_fixed() {
        let part = |path: &[u8]| {
            (1..=16).find(|part| Shard::parse(&format!("{part}/16")).unwrap().holds(path)).unwrap()
        };
        assert_eq!([part(b"a"), part(b"a/b"), part(b"\xff")], [4, 10, 14]);
    }

    #[test]
    fn a_part_is_from_one_to_n() {
        assert_eq!(Shard::parse("16/16").unwrap().to_string(), "16/16");
        for wrong in
            ["", "1", "/", "0/4", "5/4", "1/0", "0/0", "a/b", "-1/4", "1/4/2", "1/99999999999"]
        {
            assert!(Shard::parse(wrong).is_err(), "{wrong}");
        }
    }
}
