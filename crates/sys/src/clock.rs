//! Local time (localtime_r(3)).

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds that the local zone is east of Greenwich at `time`; 0 where that is not known.
pub fn utc_offset(time: SystemTime) -> i32 {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Ok(seconds) = libc::time_t::try_from(seconds) else { return 0 };
    // SAFETY: tm is plain numbers and a pointer, for which all zeroes are valid.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both live through the call; the result points to `tm` and is only compared.
    let done = unsafe { libc::localtime_r(&raw const seconds, &raw mut tm) };
    if done.is_null() { 0 } else { i32::try_from(tm.tm_gmtoff).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_that_of_date() {
        let output = std::process::Command::new("date").arg("+%z").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let number: i32 = text.trim().parse().unwrap();
        let seconds = (number / 100) * 3600 + (number % 100) * 60;
        assert_eq!(utc_offset(SystemTime::now()), seconds);
    }
}
