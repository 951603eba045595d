//! libFuzzer on `fuzz::sftp_server`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::sftp_server(data));
