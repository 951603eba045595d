//! The mode and the time in a line of `ls -l`, as OpenSSH's `ls_file` writes them: for the longname
//! of the server (draft section 7) and the listings of the client.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is older, or of the future, shows its year instead of the time of day: half of one.
const RECENT: i64 = 365 * 24 * 60 * 60 / 2;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Type and permissions of a `st_mode` in ten letters, as strmode(3).
pub fn mode(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        0o100_000 => '-',
        _ => '?',
    };
    let mut text = String::from(kind);
    for (shift, special, letters) in [(6, 0o4000, "sS"), (3, 0o2000, "sS"), (0, 0o1000, "tT")] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        let (with, without) = letters.split_at(1);
        text.push_str(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => with,
            (true, false) => without,
            (false, true) => "x",
            (false, false) => "-",
        });
    }
    text
}

/// A time of modification in the local zone; both in seconds since 1970.
pub fn time(seconds: i64, now: i64) -> String {
    let at = u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default();
    let local = seconds.saturating_add(i64::from(sys::utc_offset(UNIX_EPOCH + at)));
    let (year, month, day) = date(local.div_euclid(86_400));
    let month = MONTHS.get(month).copied().unwrap_or("???");
    if seconds <= now && now.saturating_sub(seconds) < RECENT {
        let minutes = local.rem_euclid(86_400) / 60;
        format!("{month} {day:>2} {:02}:{:02}", minutes / 60, minutes % 60)
    } else {
        format!("{month} {day:>2}  {year}")
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Year, month from 0 and day from 1 of a number of days since 1970, in the Gregorian calendar.
fn date(days: i64) -> (i64, usize, i64) {
    // Years that begin in March have their leap day at the end; 400 of them are 146,097 days.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let calendar = (month + 2) % 12;
    let year = year + era * 400 + i64::from(calendar < 2);
    (year, usize::try_from(calendar).unwrap_or(0), in_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 0, 1)),
            (-1, (1969, 11, 31)),
            (11_016, (2000, 1, 29)),
            (11_017, (2000, 2, 1)),
            (19_782, (2024, 1, 29)),
            (20_089, (2025, 0, 1)),
            (47_540, (2100, 1, 28)),
            (47_541, (2100, 2, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn modes_are_as_ls_shows_them() {
        for (bits, text) in [
            (0o100_644, "-rw-r--r--"),
            (0o040_755, "drwxr-xr-x"),
            (0o120_777, "lrwxrwxrwx"),
            (0o104_755, "-rwsr-xr-x"),
            (0o102_640, "-rw-r-S---"),
            (0o041_777, "drwxrwxrwt"),
            (0o041_776, "drwxrwxrwT"),
            (0o010_600, "prw-------"),
            (0, "?---------"),
        ] {
            assert_eq!(mode(bits), text);
        }
    }

    #[test]
    fn only_the_last_half_year_shows_the_time_of_day() {
        let now = 1_700_000_000;
        for (age, has_time) in
            [(0, true), (RECENT - 1, true), (RECENT, false), (-1, false), (-RECENT, false)]
        {
            assert_eq!(time(now - age, now).contains(':'), has_time, "{age}");
        }
    }
}
