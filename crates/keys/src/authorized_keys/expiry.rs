//! `expiry-time="YYYYMMDD[HHMM[SS]][Z]"`: until when a key may be used.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time of the calendar, in UTC or in the zone of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryTime {
    /// Seconds since 1970, as if the digits were UTC.
    seconds: u64,
    utc: bool,
}

impl ExpiryTime {
    /// Parses the value of `expiry-time=`; years before 1970 are refused.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (digits, utc) = match text.strip_suffix(['Z', 'z']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let field = |at: usize, len: usize| match digits.get(at..at + len) {
            Some(text) => text.parse::<u64>().ok(),
            None => Some(0),
        };
        let days = days_since_1970(field(0, 4)?, field(4, 2)?, field(6, 2)?)?;
        let (hour, minute, second) = (field(8, 2)?, field(10, 2)?, field(12, 2)?);
        let valid = hour < 24 && minute < 60 && second < 60;
        valid.then_some(Self { seconds: days * 86_400 + hour * 3600 + minute * 60 + second, utc })
    }

    /// Whether the time has come. `utc_offset` is the local zone's, in seconds east of Greenwich;
    /// it counts for times without `Z`. A clock before 1970 cannot be believed: expired.
    pub fn has_passed(self, now: SystemTime, utc_offset: i32) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::MAX).as_secs();
        let offset = if self.utc { 0 } else { i64::from(utc_offset) };
        now.saturating_add_signed(offset) >= self.seconds
    }
}

/// Days from 1970-01-01 in the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let length = |m: u64| match m {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=length(month)).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(|y| 365 + u64::from(leap(y))).sum();
    Some(years + (1..month).map(length).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("19700101Z", 0),
            ("20000229Z", 951_782_400),
            ("20240229235959Z", 1_709_251_199),
            ("202403010000Z", 1_709_251_200),
            ("20380119031408Z", 2_147_483_648),
            ("99991231Z", 253_402_214_400),
        ] {
            let time = ExpiryTime::parse(text).expect(text);
            let at = UNIX_EPOCH + Duration::from_secs(seconds);
            assert!(time.has_passed(at, 7_200), "{text}");
            let before = at.checked_sub(Duration::from_secs(1)).expect("time");
            assert_eq!(time.has_passed(before, 7_200), seconds == 0, "{text}");
        }
    }

    #[test]
    fn a_time_without_z_is_local() {
        let time = ExpiryTime::parse("197001020000").expect("time");
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(time.has_passed(at(86_400 - 3_600), 3_600));
        assert!(!time.has_passed(at(86_400 - 3_601), 3_600));
        assert!(!time.has_passed(at(86_400 + 3_599), -3_600));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in ["", "Z", "2024", "20240230", "20230229", "20241301", "20240100", "2024010125"]
            .iter()
            .chain(&["202401012460", "20240101 000", "20240101000061", "19691231", "２０２４0101"])
        {
            assert_eq!(ExpiryTime::parse(bad), None, "{bad}");
        }
    }
}
