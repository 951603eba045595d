//! libFuzzer on `fuzz::inflate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::inflate(data));
