//! Raw signature keys: Ed25519, ECDSA over the NIST curves, RSA.
