//! Sizes and rates: read from the command line, written for people.

use std::num::NonZeroU64;
use std::time::Duration;

const BINARY: [(&str, f64); 4] =
    [("K", 1024.0), ("M", 1048576.0), ("G", 1073741824.0), ("T", 1099511627776.0)];
const BITS: [(&str, f64); 3] = [("KBIT", 1e3 / 8.0), ("MBIT", 1e6 / 8.0), ("GBIT", 1e9 / 8.0)];

/// Bytes: `4096`, `64K`, `1.5G`, in steps of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size, such as 64K or 4G");
    let (number, unit) = split(text);
    let factor = match unit.strip_suffix('B').unwrap_or(&unit) {
        "" => Some(1.0),
        unit => find(&BINARY, unit),
    };
    scaled(number, factor).ok_or_else(wrong)
}

/// Bytes per second: `500K`, `10M` (of 1024), or bits: `80Mbit` (of 1000). A bare number is refused:
/// rsync would take it for KiB, scp's `-l` for Kbit.
pub(crate) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let wrong = || format!("'{text}' is not a rate, such as 500K or 10M (bytes) or 80Mbit");
    let (number, unit) = split(text);
    let unit = unit.strip_suffix("/S").unwrap_or(&unit);
    let factor =
        find(&BITS, unit).or_else(|| find(&BINARY, unit.strip_suffix('B').unwrap_or(unit)));
    scaled(number, factor).and_then(NonZeroU64::new).ok_or_else(wrong)
}

/// scp's `-l`: Kbit per second, of 1024 bits as there.
pub(crate) fn kbit(text: &str) -> Result<NonZeroU64, String> {
    let rate = text.parse::<u64>().ok().and_then(|kbit| kbit.checked_mul(1024 / 8));
    rate.and_then(NonZeroU64::new).ok_or_else(|| format!("'{text}' is not a number of Kbit/s"))
}

fn split(text: &str) -> (&str, String) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.to_ascii_uppercase())
}

fn find(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn scaled(number: &str, factor: Option<f64>) -> Option<u64> {
    let bytes = number.parse::<f64>().ok()? * factor?;
    (bytes.is_finite() && bytes < u64::MAX as f64).then_some(bytes.round() as u64)
}

/// `1.50 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    scaled_text(count as f64, 1024.0, &units).unwrap_or_else(|| format!("{count} B"))
}

/// `0.36 GB/s`, of 1000, as links and disks are rated.
pub(crate) fn per_second(rate: f64) -> String {
    let units = ["kB/s", "MB/s", "GB/s", "TB/s"];
    scaled_text(rate, 1000.0, &units).unwrap_or_else(|| format!("{rate:.0} B/s"))
}

/// Three digits with the largest unit that leaves at least one before the point.
fn scaled_text(count: f64, step: f64, units: &[&str]) -> Option<String> {
    let (mut count, mut units, mut shown) = (count, units.iter(), None);
    while count >= step {
        let Some(unit) = units.next() else { break };
        (count, shown) = (count / step, Some(unit));
    }
    let digits = if count < 10.0 { 2 } else { usize::from(count < 100.0) };
    shown.map(|unit| format!("{count:.digits$} {unit}"))
}

/// `20,003`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `3.2 s`, `4:05`, `2:03:09`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_are_read() {
        let sizes = [("0", 0), ("4096", 4096), ("64K", 65536), ("64kb", 65536), ("1.5G", 3 << 29)];
        for (text, want) in sizes {
            assert_eq!(size(text), Ok(want), "{text}");
        }
        let rates =
            [("500K", 512_000), ("10M", 10 << 20), ("10MB/s", 10 << 20), ("80Mbit", 10_000_000)];
        for (text, want) in rates {
            assert_eq!(rate(text).unwrap().get(), want, "{text}");
        }
        assert_eq!(kbit("8").unwrap().get(), 1024);
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for wrong in ["", "x", "-1", "1.2.3K", "1X", "K", "1e3K", "99999999999T", " 1"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "1000", "0K", "-1M", "10bit", "0.0001K"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "-1", "1.5", "x", "99999999999999999999"] {
            assert!(kbit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_written_with_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(per_second(0.0), "0 B/s");
        assert_eq!(per_second(362e6), "362 MB/s");
        assert_eq!(per_second(1.34e9), "1.34 GB/s");
        assert_eq!([count(0), count(999), count(20003)], ["0", "999", "20,003"]);
        assert_eq!(time(Duration::from_millis(3240)), "3.2 s");
        assert_eq!(time(Duration::from_secs(245)), "4:05");
        assert_eq!(time(Duration::from_secs(7389)), "2:03:09");
    }
}
