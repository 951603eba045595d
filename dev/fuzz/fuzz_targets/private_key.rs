//! libFuzzer on `fuzz::private_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::private_key(data));
