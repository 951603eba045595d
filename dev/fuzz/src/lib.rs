//! Fuzz targets: one function per reader of foreign bytes, which must not panic, hang or break
//! what its comment says, whatever it is given.
//!
//! ```text
//! files     known_hosts, authorized_keys, private_key, public_key, agent
//! packets   ident, packet, data
//! compress  inflate
//! sftp      sftp_codec, sftp_server
//! machines  transport, login, connection: two real sides, their messages changed on the way
//! seeds     what a search starts from      mutate   changes inputs where no coverage guides it
//! ```
//! `./run SECONDS` searches guided by coverage; `cargo test` tries seeds and blind changes of them.

mod compress;
mod files;
mod input;
mod machines;
pub mod mutate;
mod packets;
mod pair;
pub mod seeds;
mod sftp;
mod side;

pub use self::sftp::{sftp_codec, sftp_server};
pub use compress::inflate;
pub use files::{agent, authorized_keys, known_hosts, private_key, public_key};
pub use machines::{connection, login, transport};
pub use packets::{data, ident, packet};

/// A target, by the name of its program.
pub struct Target {
    /// The program's name.
    pub name: &'static str,
    /// Tries one input.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "agent", run: agent, seeds: seeds::agent },
    Target { name: "authorized_keys", run: authorized_keys, seeds: seeds::authorized_keys },
    Target { name: "connection", run: connection, seeds: seeds::machine },
    Target { name: "data", run: data, seeds: seeds::data },
    Target { name: "ident", run: ident, seeds: seeds::ident },
    Target { name: "inflate", run: inflate, seeds: seeds::inflate },
    Target { name: "known_hosts", run: known_hosts, seeds: seeds::known_hosts },
    Target { name: "login", run: login, seeds: seeds::machine },
    Target { name: "packet", run: packet, seeds: seeds::packet },
    Target { name: "private_key", run: private_key, seeds: seeds::private_key },
    Target { name: "public_key", run: public_key, seeds: seeds::public_key },
    Target { name: "sftp_codec", run: sftp_codec, seeds: seeds::sftp_codec },
    Target { name: "sftp_server", run: sftp_server, seeds: seeds::sftp_server },
    Target { name: "transport", run: transport, seeds: seeds::machine },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the input that made a target panic.
    struct Shown<'a>(&'a str, &'a [u8]);

    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("{}: {:02x?}", self.0, self.1);
            }
        }
    }

    fn try_all(name: &str, changed: usize) {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let seeds = (target.seeds)();
        let blind = mutate::blindly(&seeds, changed);
        for input in seeds.iter().cloned().chain(blind) {
            let shown = Shown(name, &input);
            (target.run)(shown.1);
        }
    }

    macro_rules! tests {
        ($($name:ident $changed:literal)*) => {
            $(#[test]
            fn $name() {
                try_all(stringify!($name), $changed);
            })*

            #[test]
            fn every_target_has_a_test_and_a_program() {
                let here = [$(stringify!($name)),*];
                assert!(TARGETS.iter().map(|target| target.name).eq(here));
                let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz_targets");
                assert_eq!(std::fs::read_dir(programs).unwrap().count(), here.len());
            }
        };
    }

    tests! {
        agent 20_000
        authorized_keys 20_000
        connection 300
        data 20_000
        ident 2_000
        inflate 2_000
        known_hosts 20_000
        login 300
        packet 2_000
        private_key 2_000
        public_key 5_000
        sftp_codec 20_000
        sftp_server 300
        transport 300
    }
}
