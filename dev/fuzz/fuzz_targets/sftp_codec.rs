//! libFuzzer on `fuzz::sftp_codec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::sftp_codec(data));
