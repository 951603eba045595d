//! What every client program needs before it reads its configuration.

use conf::{Local, Supported};
use proto::KexConfig;
use std::io;

/// What this build offers, in its default order.
pub fn supported() -> Supported {
    let all = KexConfig::default();
    Supported {
        ciphers: all.ciphers.iter().map(|cipher| cipher.name()).collect(),
        macs: all.macs.iter().map(|mac| mac.name()).collect(),
        kex: all.kex,
        signatures: all.host_key_algs.iter().map(|alg| alg.name()).collect(),
    }
}

/// Who runs the program, by the user database.
///
/// # Errors
/// The database cannot be read, or does not know us.
pub fn local_user() -> io::Result<Local> {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid)?
        .ok_or_else(|| io::Error::other(format!("you do not exist: no user has the id {uid}")))?;
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    Ok(Local { home: home.map_or(user.dir, Into::into), user: user.name, uid: uid.as_raw() })
}

/// The configuration of a program that is called with these settings and reads no file.
#[cfg(test)]
pub(crate) fn configured(host: &str, settings: &[impl AsRef<str>]) -> conf::Client {
    use conf::{Setting, client::Files};
    let given: Vec<_> = settings.iter().map(|s| Setting::option(s.as_ref()).unwrap()).collect();
    let me = local_user().unwrap();
    conf::client::load(host, &given, &Files::None, &supported(), &me).unwrap().config
}
