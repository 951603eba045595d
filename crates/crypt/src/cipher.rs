//! Names and sizes of ciphers and MACs, and which of them go together (B9).
//!
//! `proto` negotiates names and gets a [`Protection`]; `packet` asks for its [`Shape`] and makes
//! the keys.

/// A negotiable cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// RFC 5647 AES-GCM as OpenSSH negotiates it: by cipher name alone.
    Aes128Gcm,
    /// The same with a 256-bit key.
    Aes256Gcm,
    /// OpenSSH's PROTOCOL.chacha20poly1305.
    ChaCha20Poly1305,
    /// RFC 4344 section 4.
    Aes128Ctr,
    /// RFC 4344 section 4.
    Aes192Ctr,
    /// RFC 4344 section 4.
    Aes256Ctr,
}

/// How packets are built: decides which keys exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Gcm,
    ChaCha,
    Ctr,
}

/// One row of the cipher table; sizes in bytes.
struct CipherRow {
    name: &'static str,
    family: Family,
    key: usize,
    iv: usize,
    block: usize,
}

const fn row(name: &'static str, family: Family, sizes: [usize; 3]) -> CipherRow {
    let [key, iv, block] = sizes;
    CipherRow { name, family, key, iv, block }
}

impl Cipher {
    /// Every cipher, in the order preferred on a CPU with AES and carry-less multiply.
    pub const ALL: &'static [Self] = &[
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20Poly1305,
        Self::Aes128Ctr,
        Self::Aes192Ctr,
        Self::Aes256Ctr,
    ];

    const fn row(self) -> CipherRow {
        match self {
            Self::Aes128Gcm => row("aes128-gcm@openssh.com", Family::Gcm, [16, 12, 16]),
            Self::Aes256Gcm => row("aes256-gcm@openssh.com", Family::Gcm, [32, 12, 16]),
            Self::ChaCha20Poly1305 => {
                row("chacha20-poly1305@openssh.com", Family::ChaCha, [64, 0, 8])
            }
            Self::Aes128Ctr => row("aes128-ctr", Family::Ctr, [16, 16, 16]),
            Self::Aes192Ctr => row("aes192-ctr", Family::Ctr, [24, 16, 16]),
            Self::Aes256Ctr => row("aes256-ctr", Family::Ctr, [32, 16, 16]),
        }
    }

    /// Name in KEXINIT.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The cipher of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.name() == name)
    }

    /// Whether integrity comes with it and the negotiated MAC is ignored.
    pub const fn is_aead(self) -> bool {
        !matches!(self.row().family, Family::Ctr)
    }

    /// Bytes of encryption key.
    pub const fn key_len(self) -> usize {
        self.row().key
    }

    /// Bytes of initial IV.
    pub const fn iv_len(self) -> usize {
        self.row().iv
    }

    /// What the encrypted part of a packet is a multiple of.
    pub const fn block_len(self) -> usize {
        self.row().block
    }
}

/// A negotiable MAC (RFC 6668; the `-etm` ones are OpenSSH's PROTOCOL section 1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mac {
    /// Encrypt, then MAC, the length in clear.
    HmacSha256Etm,
    /// Encrypt, then MAC, the length in clear.
    HmacSha512Etm,
    /// MAC of the plaintext, which is then encrypted with its length.
    HmacSha256,
    /// MAC of the plaintext, which is then encrypted with its length.
    HmacSha512,
}

impl Mac {
    /// Every MAC, most preferred first.
    pub const ALL: &'static [Self] =
        &[Self::HmacSha256Etm, Self::HmacSha512Etm, Self::HmacSha256, Self::HmacSha512];

    /// Name, bytes of key and of tag.
    const fn row(self) -> (&'static str, usize) {
        match self {
            Self::HmacSha256Etm => ("hmac-sha2-256-etm@openssh.com", 32),
            Self::HmacSha512Etm => ("hmac-sha2-512-etm@openssh.com", 64),
            Self::HmacSha256 => ("hmac-sha2-256", 32),
            Self::HmacSha512 => ("hmac-sha2-512", 64),
        }
    }

    /// Name in KEXINIT.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The MAC of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|m| m.name() == name)
    }

    /// Bytes of integrity key (RFC 6668 section 2: as long as the digest).
    pub const fn key_len(self) -> usize {
        self.row().1
    }

    /// Bytes of tag; none of them is truncated.
    pub const fn tag_len(self) -> usize {
        self.row().1
    }

    /// Whether the tag covers the ciphertext.
    pub const fn is_etm(self) -> bool {
        matches!(self, Self::HmacSha256Etm | Self::HmacSha512Etm)
    }
}

/// How one direction is protected: a cipher that authenticates, or a cipher and a MAC (B9).
/// There is no other value: integrity cannot be left out or chosen twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protection(Shape);

/// A [`Protection`] taken apart, for whoever makes the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// [`GcmKey`](crate::GcmKey) with this cipher.
    Gcm(Cipher),
    /// [`ChaChaKey`](crate::ChaChaKey).
    ChaCha,
    /// [`CtrKey`](crate::CtrKey) with this cipher, and a [`MacKey`](crate::MacKey).
    Ctr(Cipher, Mac),
}

impl Protection {
    /// The two as negotiated. An AEAD has no MAC, whatever was negotiated for one; any other
    /// cipher without a MAC is refused.
    pub fn new(cipher: Cipher, mac: Option<Mac>) -> Option<Self> {
        match cipher.row().family {
            Family::Gcm => Some(Self(Shape::Gcm(cipher))),
            Family::ChaCha => Some(Self(Shape::ChaCha)),
            Family::Ctr => mac.map(|mac| Self(Shape::Ctr(cipher, mac))),
        }
    }

    /// Every protection there is.
    pub fn all() -> impl Iterator<Item = Self> {
        let aeads = Cipher::ALL.iter().filter_map(|c| Self::new(*c, None));
        let pairs = Cipher::ALL.iter().filter(|c| !c.is_aead());
        aeads.chain(pairs.flat_map(|c| Mac::ALL.iter().filter_map(|m| Self::new(*c, Some(*m)))))
    }

    /// Which keys it needs.
    pub const fn shape(self) -> Shape {
        self.0
    }

    /// The cipher.
    pub const fn cipher(self) -> Cipher {
        match self.0 {
            Shape::Gcm(cipher) | Shape::Ctr(cipher, _) => cipher,
            Shape::ChaCha => Cipher::ChaCha20Poly1305,
        }
    }

    /// The MAC; none for an AEAD.
    pub const fn mac(self) -> Option<Mac> {
        match self.0 {
            Shape::Ctr(_, mac) => Some(mac),
            Shape::Gcm(_) | Shape::ChaCha => None,
        }
    }

    /// Bytes of encryption key.
    pub const fn key_len(self) -> usize {
        self.cipher().key_len()
    }

    /// Bytes of initial IV.
    pub const fn iv_len(self) -> usize {
        self.cipher().iv_len()
    }

    /// Bytes of integrity key.
    pub const fn mac_key_len(self) -> usize {
        match self.0 {
            Shape::Ctr(_, mac) => mac.key_len(),
            Shape::Gcm(_) | Shape::ChaCha => 0,
        }
    }

    /// Bytes of tag behind each packet.
    pub const fn tag_len(self) -> usize {
        match self.0 {
            Shape::Ctr(_, mac) => mac.tag_len(),
            Shape::Gcm(_) | Shape::ChaCha => AEAD_TAG_LEN,
        }
    }

    /// What the encrypted part of a packet is a multiple of.
    pub const fn block_len(self) -> usize {
        self.cipher().block_len()
    }
}

/// Bytes of tag of AES-GCM and of ChaCha20-Poly1305.
pub const AEAD_TAG_LEN: usize = 16;

/// Whether this CPU has AES and carry-less multiply, so that AES-GCM is the fast choice. Without
/// them ChaCha20 is both faster and free of cache-timing questions.
pub fn has_fast_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
