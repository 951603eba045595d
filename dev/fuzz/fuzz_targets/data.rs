//! libFuzzer on `fuzz::data`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::data(data));
