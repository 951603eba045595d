//! libFuzzer on `fuzz::public_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::public_key(data));
