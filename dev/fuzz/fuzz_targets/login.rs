//! libFuzzer on `fuzz::login`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::login(data));
