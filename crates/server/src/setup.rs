//! From the command line to a configuration, and from that to what the protocol wants to know.

use crate::args::Args;
use crate::hostkeys::HostKeys;
use crate::log::Log;
use anyhow::{Context, Result};
use conf::server::Visitor;
use conf::{Level, Server, Supported};
use crypt::cipher::{Cipher, Mac};
use keys::SigAlg;
use proto::{Compression, KexConfig, RekeyLimit};
use std::process::ExitCode;

/// What this server can do, in the order it prefers.
pub(crate) fn supported() -> Supported {
    let all = KexConfig::default();
    Supported {
        ciphers: all.ciphers.iter().map(|cipher| cipher.name()).collect(),
        macs: all.macs.iter().map(|mac| mac.name()).collect(),
        kex: all.kex,
        signatures: SigAlg::ALL.iter().map(|alg| alg.name()).collect(),
    }
}

/// A configuration that was read, and what there is to say of it.
pub(crate) struct Loaded {
    pub(crate) config: Server,
    pub(crate) warnings: Vec<String>,
}

impl Loaded {
    /// Says it on standard error, for who started us.
    pub(crate) fn say(self) -> Server {
        self.warnings.iter().for_each(|line| eprintln!("lhsshd: {line}"));
        self.config
    }

    /// Says it in the log: after SIGHUP nobody reads standard error.
    pub(crate) fn log(self, log: &Log) -> Server {
        self.warnings.iter().for_each(|line| log.info(format_args!("{line}")));
        self.config
    }
}

/// The configuration that the command line asks for.
pub(crate) fn load(args: &Args) -> Result<Loaded> {
    let loaded = conf::server::load(&args.settings, &args.file, &supported())?;
    let warnings = loaded.notices.into_iter().filter(|notice| notice.level == Level::Warning);
    let mut warnings: Vec<String> = warnings.map(|notice| notice.text).collect();
    if cfg!(not(feature = "none")) && loaded.config.none_enabled {
        warnings.push("NoneEnabled: this lhsshd was built without the NONE cipher".to_owned());
    }
    Ok(Loaded { config: loaded.config, warnings })
}

/// The configuration for one connection.
pub(crate) fn matched(config: &Server, visitor: Visitor) -> Result<Server> {
    config.matched(&visitor, &supported()).context("Match")
}

/// `-t`: the configuration is right, and a host key can be used.
pub(crate) fn test(mut config: Server) -> Result<ExitCode> {
    keep_usable_host_keys(&mut config, |why| eprintln!("lhsshd: {why}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Takes the host keys that cannot be used from the configuration, so that no client is offered
/// one that cannot sign; `tell`s of those that were named. An error when none is left.
pub(crate) fn keep_usable_host_keys(config: &mut Server, tell: impl Fn(&str)) -> Result<()> {
    let (paths, given) = (config.host_keys(), config.host_keys_given());
    let complain = |why: String| {
        if given {
            tell(&why);
        }
    };
    let keys = HostKeys::find(&paths, complain);
    let usable = keys.usable(complain).with_context(|| {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        format!("host keys {}", paths.join(", "))
    })?;
    config.retain_host_keys(|path| usable.contains(&path));
    Ok(())
}

/// Proposals of key exchange.
pub(crate) fn kex_config(config: &Server) -> KexConfig {
    KexConfig {
        kex: config.kex.names().to_vec(),
        host_key_algs: sig_algs(&config.host_key_algorithms),
        ciphers: config.ciphers.names().iter().filter_map(|n| Cipher::from_name(n)).collect(),
        macs: config.macs.names().iter().filter_map(|n| Mac::from_name(n)).collect(),
        compression: match config.compression {
            conf::Compression::Delayed => vec![Compression::None, Compression::Delayed],
            conf::Compression::No => vec![Compression::None],
        },
        first_packet_guess: false,
    }
}

/// RekeyLimit.
pub(crate) fn rekey_limit(config: &Server) -> RekeyLimit {
    RekeyLimit { bytes: config.rekey_limit.bytes, time: config.rekey_limit.time }
}

/// Signature algorithms of a list.
pub(crate) fn sig_algs(list: &conf::AlgorithmList) -> Vec<SigAlg> {
    list.names().iter().filter_map(|name| SigAlg::from_name(name)).collect()
}
