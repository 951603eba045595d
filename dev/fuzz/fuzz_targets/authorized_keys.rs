//! libFuzzer on `fuzz::authorized_keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::authorized_keys(data));
