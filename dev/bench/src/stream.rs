//! The fixed byte stream that runs read, and a reader of limited speed.

use anyhow::{Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BLOCK: usize = 1 << 20;

/// Writes `size` bytes: a block that does not compress, stamped with its number.
pub(crate) fn write(out: &mut dyn Write, size: u64) -> Result<()> {
    let mut block = noise();
    for number in 0..size.div_ceil(BLOCK as u64) {
        block[..8].copy_from_slice(&number.to_be_bytes());
        let rest = size - number * BLOCK as u64;
        let part = usize::try_from(rest).unwrap_or(usize::MAX).min(BLOCK);
        match out.write_all(&block[..part]) {
            Err(why) if why.kind() == ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
    Ok(())
}

/// One block of xorshift64* output.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut word = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    (0..BLOCK / 8).flat_map(|_| word()).collect()
}

/// Reads to the end, at most `rate` bytes per second, in steps of a twentieth of a second.
pub(crate) fn drain_slowly(input: &mut dyn Read, rate: u64) -> Result<()> {
    let step = usize::try_from(rate / 20)?.max(1);
    let mut buffer = vec![0; step];
    let start = Instant::now();
    let mut taken = 0_u64;
    loop {
        let got = input.read(&mut buffer)?;
        if got == 0 {
            return Ok(());
        }
        taken += got as u64;
        let due = Duration::from_secs_f64(taken as f64 / rate as f64);
        sleep(due.saturating_sub(start.elapsed()));
    }
}

/// Reads `size` bytes and no more; fails when there are fewer.
pub(crate) fn take(input: &mut dyn Read, size: u64) -> Result<()> {
    let mut buffer = vec![0; BLOCK];
    let mut left = size;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        let got = input.read(&mut buffer[..part])?;
        ensure!(got > 0, "{} of {size} bytes arrived", size - left);
        left -= got as u64;
    }
    Ok(())
}

/// What counts as early.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Bytes of `input` until `time` after the first of them; fails when it ends earlier and is shorter
/// than `size`.
pub(crate) fn early(input: &mut dyn Read, time: Duration, size: u64) -> Result<u64> {
    let mut buffer = vec![0; BLOCK];
    let mut taken = input.read(&mut buffer)? as u64;
    let start = Instant::now();
    while start.elapsed() < time && taken < size {
        let got = input.read(&mut buffer)?;
        ensure!(got > 0, "the stream ended after {taken} of {size} bytes");
        taken += got as u64;
    }
    ensure!(taken > 0, "nothing arrived");
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_has_the_asked_length_and_is_the_same_each_time() {
        let make = |size| {
            let mut out = Vec::new();
            write(&mut out, size).unwrap();
            out
        };
        let long = make(3 * BLOCK as u64 + 17);
        assert_eq!(long.len(), 3 * BLOCK + 17);
        assert_eq!(long, make(3 * BLOCK as u64 + 17));
        assert_ne!(long[..BLOCK], long[BLOCK..2 * BLOCK]);
        assert_eq!(make(0).len(), 0);
    }

    #[test]
    fn what_comes_late_does_not_count() {
        let bytes = vec![0; 3 * BLOCK];
        let whole = bytes.len() as u64;
        assert_eq!(early(&mut bytes.as_slice(), SECOND, whole).unwrap(), whole);
        assert_eq!(early(&mut bytes.as_slice(), Duration::ZERO, whole).unwrap(), BLOCK as u64);
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_figure() {
        let bytes = vec![0; BLOCK + 1];
        let whole = bytes.len() as u64;
        assert!(early(&mut bytes.as_slice(), SECOND, whole + 1).is_err());
        assert!(early(&mut [].as_slice(), Duration::ZERO, whole).is_err(), "nothing at all");

        let mut rest = bytes.as_slice();
        take(&mut rest, whole - 1).unwrap();
        assert_eq!(rest.len(), 1, "no more than was asked for");
        let why = take(&mut bytes.as_slice(), whole + 1).unwrap_err().to_string();
        assert_eq!(why, format!("{whole} of {} bytes arrived", whole + 1));
    }
}
