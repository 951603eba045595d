//! libFuzzer on `fuzz::agent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::agent(data));
