//! Keywords of sshd_config(5) without an effect here, each judged: would passing over it grant
//! more than the admin wrote?

use crate::row::Fate::{If, Only, PassOver, Refuse, WarnUnless};
use crate::row::{Fate, Missing};

const fn row(name: &'static str, fate: Fate, why: &'static str) -> Missing {
    Missing { name, fate, why }
}

const OFF: Fate = Only(&["no", "false"]);
const NONE: Fate = Only(&["none"]);

const ACCESS: &str = "more would be let in than it allows";
const NO_CERTS: &str = "certificates are not accepted";
const NO_FORWARD: &str = "nothing is forwarded";
const NO_GSSAPI: &str = "only public keys log in";
const NO_HOSTBASED: &str = "only public keys log in";
const NO_PASSWORD: &str = "only public keys log in";
const NO_TTY: &str = "there are no terminals";
const OLD: &str = "it has no meaning in today's OpenSSH either";

/// See the file's head.
#[rustfmt::skip] // a table
pub(super) static MISSING: &[Missing] = &[
    row("AllowAgentForwarding", PassOver, NO_FORWARD),
    row("AllowGroups", Refuse, ACCESS),
    row("AllowStreamLocalForwarding", PassOver, NO_FORWARD),
    row("AllowTcpForwarding", PassOver, NO_FORWARD),
    row("AllowUsers", Refuse, ACCESS),
    row("AuthenticationMethods", If(only_publickey, "any or publickey"), ACCESS),
    row("AuthorizedKeysCommand", NONE, "its keys would be refused"),
    row("AuthorizedKeysCommandUser", PassOver, "it matters with AuthorizedKeysCommand only"),
    row("AuthorizedPrincipalsCommand", PassOver, NO_CERTS),
    row("AuthorizedPrincipalsCommandUser", PassOver, NO_CERTS),
    row("AuthorizedPrincipalsFile", PassOver, NO_CERTS),
    row("CASignatureAlgorithms", PassOver, NO_CERTS),
    row("ChallengeResponseAuthentication", PassOver, NO_PASSWORD),
    row("ChannelTimeout", NONE, "idle channels would stay open"),
    row("ChrootDirectory", NONE, "sessions would see the whole file system"),
    row("DebianBanner", PassOver, "it changes the identification only"),
    row("DenyGroups", Refuse, ACCESS),
    row("DenyUsers", Refuse, ACCESS),
    row("DisableForwarding", PassOver, NO_FORWARD),
    row("ExposeAuthInfo", OFF, "sessions would lack SSH_USER_AUTH"),
    row("FingerprintHash", Only(&["sha256"]), "fingerprints are logged as SHA256"),
    row("GatewayPorts", PassOver, NO_FORWARD),
    row("GSSAPIAuthentication", PassOver, NO_GSSAPI),
    row("GSSAPICleanupCredentials", PassOver, NO_GSSAPI),
    row("GSSAPIDelegateCredentials", PassOver, NO_GSSAPI),
    row("GSSAPIKexAlgorithms", PassOver, NO_GSSAPI),
    row("GSSAPIKeyExchange", PassOver, NO_GSSAPI),
    row("GSSAPIStoreCredentialsOnRekey", PassOver, NO_GSSAPI),
    row("GSSAPIStrictAcceptorCheck", PassOver, NO_GSSAPI),
    row("HostbasedAcceptedAlgorithms", PassOver, NO_HOSTBASED),
    row("HostbasedAcceptedKeyTypes", PassOver, NO_HOSTBASED),
    row("HostbasedAuthentication", PassOver, NO_HOSTBASED),
    row("HostbasedUsesNameFromPacketOnly", PassOver, NO_HOSTBASED),
    row("HostCertificate", WarnUnless(&["none"]), "the host shows its plain key"),
    row("HostKeyAgent", NONE, "the agent's keys cannot be used"),
    row("IgnoreRhosts", PassOver, NO_HOSTBASED),
    row("IgnoreUserKnownHosts", PassOver, NO_HOSTBASED),
    row("IPQoS", PassOver, "packets are not marked"),
    row("KbdInteractiveAuthentication", PassOver, NO_PASSWORD),
    row("KerberosAuthentication", PassOver, NO_PASSWORD),
    row("KerberosGetAFSToken", PassOver, NO_PASSWORD),
    row("KerberosOrLocalPasswd", PassOver, NO_PASSWORD),
    row("KerberosTicketCleanup", PassOver, NO_PASSWORD),
    row("KeyRegenerationInterval", PassOver, OLD),
    row("LogVerbose", PassOver, "it changes what is logged only"),
    row("ModuliFile", PassOver, "group exchange is never offered"),
    row("PAMServiceName", PassOver, "PAM is not used"),
    row("PasswordAuthentication", PassOver, NO_PASSWORD),
    row("PermitEmptyPasswords", PassOver, NO_PASSWORD),
    row("PermitListen", PassOver, NO_FORWARD),
    row("PermitOpen", PassOver, NO_FORWARD),
    row("PermitRootLogin",
        If(lets_root_in, "yes, prohibit-password or without-password, or lhsshd is not root's"), ACCESS),
    row("PermitTTY", PassOver, NO_TTY),
    row("PermitTunnel", PassOver, NO_FORWARD),
    row("PerSourceMaxStartups", NONE, ACCESS),
    row("PerSourceNetBlockSize", PassOver, "it matters with PerSourceMaxStartups only"),
    row("PerSourcePenalties", OFF, ACCESS),
    row("PerSourcePenaltyExemptList", PassOver, "it matters with PerSourcePenalties only"),
    row("PrintLastLog", PassOver, NO_TTY),
    row("PrintMotd", PassOver, NO_TTY),
    row("Protocol", PassOver, OLD),
    row("PubkeyAuthOptions", PassOver, "keys on tokens, which it speaks of, are not accepted"),
    row("RDomain", NONE, "sessions would run in another routing domain"),
    row("RefuseConnection", OFF, ACCESS),
    row("RequiredRSASize", If(rsa_2048, "up to 2048"), "RSA keys from 2048 bits are accepted"),
    row("RevokedKeys", NONE, "revoked keys would be accepted"),
    row("RhostsRSAAuthentication", PassOver, OLD),
    row("RSAAuthentication", PassOver, OLD),
    row("SecurityKeyProvider", PassOver, "keys on tokens are not accepted"),
    row("ServerKeyBits", PassOver, OLD),
    row("SshdAuthPath", PassOver, "it names a program of OpenSSH"),
    row("SshdSessionPath", PassOver, "it names a program of OpenSSH"),
    row("StreamLocalBindMask", PassOver, NO_FORWARD),
    row("StreamLocalBindUnlink", PassOver, NO_FORWARD),
    row("SyslogFacility", PassOver, "it changes where lines are logged only"),
    row("TrustedUserCAKeys", WarnUnless(&["none"]), "logins by certificate are refused"),
    row("UnusedConnectionTimeout", Only(&["none", "0"]), "idle connections would stay open"),
    row("UseLogin", OFF, "sessions do not go through login(1)"),
    row("UsePAM", WarnUnless(&["no"]), "PAM's account and session modules are not run"),
    row("UsePrivilegeSeparation", PassOver, OLD),
    row("VersionAddendum", PassOver, "it changes the identification only"),
    row("X11DisplayOffset", PassOver, NO_FORWARD),
    row("X11Forwarding", PassOver, NO_FORWARD),
    row("X11UseLocalhost", PassOver, NO_FORWARD),
    row("XAuthLocation", PassOver, NO_FORWARD),
];

fn only_publickey(args: &[String]) -> bool {
    !args.is_empty() && args.iter().all(|arg| arg == "any" || arg == "publickey")
}

/// A server that is not root's serves its own user alone: root cannot log in whatever this says.
fn lets_root_in(args: &[String]) -> bool {
    let word = |word: &str| args.len() == 1 && args.iter().any(|a| a.eq_ignore_ascii_case(word));
    let strict = ["no", "forced-commands-only"].into_iter().any(word);
    ["yes", "prohibit-password", "without-password"].into_iter().any(word)
        || strict && !nix::unistd::geteuid().is_root()
}

fn rsa_2048(args: &[String]) -> bool {
    matches!(args, [bits] if bits.parse::<u32>().is_ok_and(|bits| bits <= 2048))
}
