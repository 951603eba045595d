//! libFuzzer on `fuzz::known_hosts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::known_hosts(data));
