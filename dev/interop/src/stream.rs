//! A deterministic stream: any test can make it, and check it byte for byte without keeping it.
//!
//! One block of noise, stamped in each 4 KiB page with the page's number, so that lost, repeated
//! and reordered pages differ as surely as flipped bits; making it costs a copy.

use std::io::{Error, ErrorKind, Read, Result, Write};

const PAGE: usize = 4096;
const PAGES: usize = 16;

/// Makes the stream of one seed, from its start.
pub struct Stream {
    block: Vec<u8>,
    page: u64,
}

impl Stream {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        let mut word = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        let block = (0..PAGE * PAGES / 8).flat_map(|_| word()).collect();
        Self { block, page: 0 }
    }

    /// The next 64 KiB.
    fn next_block(&mut self) -> &[u8] {
        for page in self.block.chunks_exact_mut(PAGE) {
            if let Some(stamp) = page.first_chunk_mut() {
                *stamp = self.page.to_be_bytes();
            }
            self.page += 1;
        }
        &self.block
    }
}

/// Writes the first `size` bytes of the stream of `seed`.
pub fn make(out: &mut dyn Write, size: u64, seed: u64) -> Result<()> {
    let mut stream = Stream::new(seed);
    let mut left = size;
    while left > 0 {
        let block = stream.next_block();
        let part = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(block.get(..part).unwrap_or(block))?;
        left -= part as u64;
    }
    out.flush()
}

/// Reads `input` to its end and compares it with the first `size` bytes of the stream of `seed`.
pub fn check(input: &mut dyn Read, size: u64, seed: u64) -> Result<()> {
    let mut stream = Stream::new(seed);
    let mut buffer = vec![0; PAGE * PAGES];
    let mut at = 0;
    loop {
        let got = fill(input, &mut buffer)?;
        let want = stream.next_block();
        let pairs = got.iter().zip(want);
        if got != want.get(..got.len()).unwrap_or_default() {
            let same = pairs.take_while(|(a, b)| a == b).count();
            return wrong(format!("byte {} differs", at + same as u64));
        }
        at += got.len() as u64;
        if got.len() < want.len() || at > size {
            break;
        }
    }
    if at == size { Ok(()) } else { wrong(format!("{at} bytes came, not {size}")) }
}

fn wrong(what: String) -> Result<()> {
    Err(Error::new(ErrorKind::InvalidData, what))
}

/// As much of `buffer` as the input has; less than all only at its end.
fn fill<'a>(input: &mut dyn Read, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    let mut have = 0;
    while let Some(rest) = buffer.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            got => have += got,
        }
    }
    Ok(buffer.get(..have).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(size: u64, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        make(&mut out, size, seed).unwrap();
        out
    }

    #[test]
    fn a_stream_is_equal_to_itself_and_to_no_other() {
        for size in [0, 1, 65_535, 65_536, 65_537, 1_000_000] {
            check(&mut &made(size, 7)[..], size, 7).unwrap();
        }
        assert!(check(&mut &made(100, 7)[..], 100, 8).is_err());
    }

    #[test]
    fn a_flipped_bit_is_found_where_it_is() {
        let mut bytes = made(200_000, 7);
        bytes[131_073] ^= 1;
        let why = check(&mut &bytes[..], 200_000, 7).unwrap_err().to_string();
        assert_eq!(why, "byte 131073 differs");
    }

    #[test]
    fn missing_extra_and_swapped_bytes_are_found() {
        let bytes = made(1_000_000, 7);
        assert!(check(&mut &bytes[..999_999], 1_000_000, 7).is_err());
        assert!(check(&mut &bytes[..], 999_999, 7).is_err());
        let swapped = [&bytes[4096..8192], &bytes[..4096], &bytes[8192..]].concat();
        assert!(check(&mut &swapped[..], 1_000_000, 7).is_err());
    }
}
