//! Keywords of ssh_config(5) without an effect here, each judged: can a user who wrote it be
//! misled, or made less safe, when it is passed over?

use crate::row::Fate::{Clears, If, Only, PassOver, Refuse, UnlessCleared, WarnUnless};
use crate::row::{Fate, Missing};

const fn row(name: &'static str, fate: Fate, why: &'static str) -> Missing {
    Missing { name, fate, why }
}

const OFF: Fate = Only(&["no", "false", "off"]);
const NONE: Fate = Only(&["none"]);
/// As ssh itself does when the server refuses the forwarding.
const WARN_UNLESS_NO: Fate = WarnUnless(&["no", "false"]);

const NO_CERTS: &str = "certificates are not accepted, so nothing is trusted through them";
const NO_FORWARD: &str = "nothing is forwarded";
const NO_GSSAPI: &str = "GSSAPI is never tried";
const NO_TTY: &str = "there are no terminals";
const NO_PASSWORD: &str = "only public keys log in";
const OLD: &str = "it has no meaning in today's OpenSSH either";
const DISPLAY: &str = "it changes what is displayed only";

/// See the file's head.
#[rustfmt::skip] // a table
pub(super) static MISSING: &[Missing] = &[
    row("AddKeysToAgent", PassOver, "keys are never added to the agent"),
    row("BindInterface", NONE, "the connection would leave by another interface"),
    row("CanonicalDomains", PassOver, "it matters with CanonicalizeHostname only"),
    row("CanonicalizeFallbackLocal", PassOver, "it matters with CanonicalizeHostname only"),
    row("CanonicalizeHostname", OFF, "the connection would go to another name"),
    row("CanonicalizeMaxDots", PassOver, "it matters with CanonicalizeHostname only"),
    row("CanonicalizePermittedCNAMEs", PassOver, "it matters with CanonicalizeHostname only"),
    row("CASignatureAlgorithms", PassOver, NO_CERTS),
    row("CertificateFile", NONE, "the login would be tried without the certificate"),
    row("ChallengeResponseAuthentication", PassOver, NO_PASSWORD),
    row("ChannelTimeout", NONE, "idle channels would stay open"),
    row("CheckHostIP", OFF, "the address would not be checked"),
    row("Cipher", PassOver, OLD),
    row("ClearAllForwardings", Clears, NO_FORWARD),
    row("CompressionLevel", PassOver, OLD),
    row("ControlMaster", PassOver, "connections are not shared; each is its own"),
    row("ControlPath", PassOver, "connections are not shared; each is its own"),
    row("ControlPersist", PassOver, "it matters with ControlMaster only"),
    row("DSAAuthentication", PassOver, OLD),
    row("DynamicForward", UnlessCleared, NO_FORWARD),
    row("EnableEscapeCommandline", PassOver, NO_TTY),
    row("EnableSSHKeysign", PassOver, "host-based login is never tried"),
    row("EscapeChar", PassOver, NO_TTY),
    row("ExitOnForwardFailure", PassOver, NO_FORWARD),
    row("FingerprintHash", Only(&["sha256"]), "fingerprints are shown as SHA256"),
    row("ForkAfterAuthentication", OFF, "the program stays in the foreground"),
    row("ForwardAgent", WARN_UNLESS_NO, "the agent is not forwarded"),
    row("ForwardX11", WARN_UNLESS_NO, "X11 is not forwarded"),
    row("ForwardX11Timeout", PassOver, NO_FORWARD),
    row("ForwardX11Trusted", PassOver, NO_FORWARD),
    row("GatewayPorts", PassOver, NO_FORWARD),
    row("GSSAPIAuthentication", PassOver, NO_GSSAPI),
    row("GSSAPIClientIdentity", PassOver, NO_GSSAPI),
    row("GSSAPIDelegateCredentials", PassOver, NO_GSSAPI),
    row("GSSAPIKexAlgorithms", PassOver, NO_GSSAPI),
    row("GSSAPIKeyExchange", PassOver, NO_GSSAPI),
    row("GSSAPIRenewalForcesRekey", PassOver, NO_GSSAPI),
    row("GSSAPIServerIdentity", PassOver, NO_GSSAPI),
    row("GSSAPITrustDNS", PassOver, NO_GSSAPI),
    row("HostbasedAcceptedAlgorithms", PassOver, "host-based login is never tried"),
    row("HostbasedAuthentication", PassOver, "host-based login is never tried"),
    row("HostbasedKeyTypes", PassOver, "host-based login is never tried"),
    row("IPQoS", PassOver, "packets are not marked"),
    row("KbdInteractiveAuthentication", PassOver, NO_PASSWORD),
    row("KbdInteractiveDevices", PassOver, NO_PASSWORD),
    row("KnownHostsCommand", NONE, "keys that it knows would be taken for unknown"),
    row("LocalCommand", PassOver, "it matters with PermitLocalCommand only"),
    row("LocalForward", UnlessCleared, NO_FORWARD),
    row("LogVerbose", PassOver, DISPLAY),
    row("NoHostAuthenticationForLocalhost", PassOver, "every host's key is checked"),
    row("NumberOfPasswordPrompts", PassOver, NO_PASSWORD),
    row("ObscureKeystrokeTiming", PassOver, NO_TTY),
    row("PasswordAuthentication", PassOver, NO_PASSWORD),
    row("PermitLocalCommand", OFF, "the command would not run"),
    row("PermitRemoteOpen", PassOver, NO_FORWARD),
    row("PKCS11Provider", NONE, "keys on tokens cannot be used"),
    row("PreferredAuthentications", If(with_publickey, "a list with publickey"), NO_PASSWORD),
    row("Protocol", PassOver, OLD),
    row("ProxyUseFdpass", OFF, "the proxy's data passes through it"),
    row("PubkeyAuthentication", If(not_no, "yes"), "only public keys log in"),
    row("RefuseConnection", Refuse, "the connection would be made"),
    row("RemoteCommand", NONE, "the command would not run"),
    row("RemoteForward", UnlessCleared, NO_FORWARD),
    row("RequiredRSASize", If(rsa_2048, "up to 2048"), "RSA keys from 2048 bits are accepted"),
    row("RevokedHostKeys", NONE, "revoked keys would be accepted"),
    row("RhostsRSAAuthentication", PassOver, OLD),
    row("RSAAuthentication", PassOver, OLD),
    row("SecurityKeyProvider", PassOver, "keys on tokens are never used"),
    row("SessionType", Only(&["default"]), "-s asks for a subsystem; a session without one is not there"),
    row("StreamLocalBindMask", PassOver, NO_FORWARD),
    row("StreamLocalBindUnlink", PassOver, NO_FORWARD),
    row("SyslogFacility", PassOver, "messages go to standard error or -E"),
    row("Tag", PassOver, "it matters with Match only"),
    row("Tunnel", OFF, "no tunnel device is opened"),
    row("TunnelDevice", PassOver, "it matters with Tunnel only"),
    row("UpdateHostKeys", PassOver, "known_hosts is not updated with a server's other keys"),
    row("UsePrivilegedPort", PassOver, OLD),
    row("UseRoaming", PassOver, OLD),
    row("VerifyHostKeyDNS", PassOver, "keys are looked up in known_hosts only"),
    row("VersionAddendum", PassOver, "it changes the identification only"),
    row("VisualHostKey", PassOver, DISPLAY),
    row("WarnWeakCrypto", PassOver, DISPLAY),
    row("XAuthLocation", PassOver, NO_FORWARD),
];

fn is_no(args: &[String]) -> bool {
    matches!(args, [arg] if arg.eq_ignore_ascii_case("no") || arg.eq_ignore_ascii_case("false"))
}

fn not_no(args: &[String]) -> bool {
    !is_no(args)
}

fn with_publickey(args: &[String]) -> bool {
    matches!(args, [list] if list.split(',').any(|method| method == "publickey"))
}

fn rsa_2048(args: &[String]) -> bool {
    matches!(args, [bits] if bits.parse::<u32>().is_ok_and(|bits| bits <= 2048))
}
