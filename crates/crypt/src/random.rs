//! The only source of randomness: cookies, padding, salts. Keys draw from the same generator
//! inside the crypto library.

/// Fills `out` from the operating system's generator by way of the library's own.
///
/// There is no error to handle: the library aborts the process when it cannot get entropy, and
/// so does this function, because nothing can go on safely.
pub fn random(out: &mut [u8]) {
    if aws_lc_rs::rand::fill(out).is_err() {
        std::process::abort();
    }
}

/// `N` random bytes.
pub fn random_array<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    random(&mut out);
    out
}
