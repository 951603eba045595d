//! Key exchange: public values in, a shared secret out (B6). `proto` does the messages.
//!
//! ```text
//! client   Initiator::start  ->  public value  ...  finish(server's public value) -> SharedSecret
//! server   respond(client's public value)  ->  own public value, SharedSecret
//! ```
//!
//! What SSH calls a public value may be two things back to back: in a hybrid method the client
//! sends a KEM's public key and an X25519 point, the server a ciphertext and a point.

mod dh;
mod ecdh;
mod groups;
mod hybrid;
mod method;
mod mlkem;
mod secret;
#[cfg(feature = "sntrup")]
mod sntrup;
#[cfg(test)]
mod tests;
mod x25519;

pub use method::Method;
pub use secret::SharedSecret;

use crate::{CryptError, KexError};

/// The client's side between its public value and the server's. Secrets are wiped on drop.
pub struct Initiator(Secret);

/// Each method's ephemeral secret.
enum Secret {
    X25519(x25519::Ephemeral),
    Ecdh(ecdh::Ephemeral),
    Group14(Box<dh::Group14>),
    Group16(Box<dh::Group16>),
    MlKem(mlkem::Ephemeral),
    #[cfg(feature = "sntrup")]
    Sntrup(Box<sntrup::Ephemeral>),
}

impl Initiator {
    /// A fresh secret and the public value to send: the content of the string, or for
    /// Diffie-Hellman ([`Method::is_dh`]) the magnitude of the mpint.
    pub fn start(method: Method) -> Result<(Self, Vec<u8>), CryptError> {
        let (secret, public) = match method {
            Method::Curve25519 => with(x25519::Ephemeral::generate()?, Secret::X25519),
            Method::EcdhP256 | Method::EcdhP384 | Method::EcdhP521 => {
                with(ecdh::Ephemeral::generate(method)?, Secret::Ecdh)
            }
            Method::DhGroup14Sha256 => with(dh::Group14::generate(), |s| Secret::Group14(s.into())),
            Method::DhGroup16Sha512 => with(dh::Group16::generate(), |s| Secret::Group16(s.into())),
            Method::MlKem768X25519 => with(mlkem::Ephemeral::generate()?, Secret::MlKem),
            #[cfg(feature = "sntrup")]
            Method::Sntrup761X25519 => {
                with(sntrup::Ephemeral::generate()?, |s| Secret::Sntrup(s.into()))
            }
        };
        Ok((Self(secret), public))
    }

    /// The secret shared with whoever sent `server_public`.
    pub fn finish(self, server_public: &[u8]) -> Result<SharedSecret, KexError> {
        match self.0 {
            Secret::X25519(own) => own.agree(server_public),
            Secret::Ecdh(own) => own.agree(server_public),
            Secret::Group14(own) => own.agree(server_public),
            Secret::Group16(own) => own.agree(server_public),
            Secret::MlKem(own) => own.finish(server_public),
            #[cfg(feature = "sntrup")]
            Secret::Sntrup(own) => own.finish(server_public),
        }
    }
}

/// Wraps the secret half of a generated pair.
fn with<T>((secret, public): (T, Vec<u8>), wrap: impl FnOnce(T) -> Secret) -> (Secret, Vec<u8>) {
    (wrap(secret), public)
}

/// The server's side: answers the client's public value with ours and the shared secret.
pub fn respond(method: Method, client_public: &[u8]) -> Result<(Vec<u8>, SharedSecret), KexError> {
    match method {
        Method::MlKem768X25519 => mlkem::respond(client_public),
        #[cfg(feature = "sntrup")]
        Method::Sntrup761X25519 => sntrup::respond(client_public),
        // Symmetric methods: both sides do the same.
        _ => {
            let (own, public) = Initiator::start(method)?;
            Ok((public, own.finish(client_public)?))
        }
    }
}
