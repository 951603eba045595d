//! The options of lhscp, one row each: scp(1)'s letters, most of which only stand for a keyword of
//! ssh_config(5), and long ones of our own. `args` reads them; `--help` is written from here.

use conf::flags::Action::{Fixed, Keyword, Nothing, Own, Refuse};
use conf::flags::{self, Flag};
use std::fmt::Write;

const OPERANDS: &str = "[long option ...] source ... target";

#[rustfmt::skip] // a table
pub(crate) const FLAGS: &[Flag] = &[
    Flag::plain('0', Own, "names of --files-from end in NUL, not in a newline"),
    Flag::plain('3', Nothing, "between two other hosts, data goes through this one: always so"),
    Flag::plain('4', Fixed("AddressFamily", "inet"), "use IPv4 only"),
    Flag::plain('6', Fixed("AddressFamily", "inet6"), "use IPv6 only"),
    Flag::plain('A', Nothing, ""),
    Flag::plain('B', Fixed("BatchMode", "yes"), "never ask for a passphrase or about an unknown host"),
    Flag::plain('C', Fixed("Compression", "yes"), "compress what is sent and received"),
    Flag::with('c', "cipher", Keyword("Ciphers"), "ciphers, in order of preference"),
    Flag::with('D', "sftp_server", Own, "talk to this program instead of a host"),
    Flag::with('F', "ssh_config", Own, "read this file instead of the usual two; none reads none"),
    Flag::with('i', "identity_file", Keyword("IdentityFile"), "private key to log in with"),
    Flag::with('J', "destination", Keyword("ProxyJump"), "go through these hosts: [user@]host[:port],..."),
    Flag::with('l', "limit", Own, "at most so many Kbit/s, all lanes together"),
    Flag::with('n', "lanes", Own, "how many lanes, or auto: more while that makes it faster"),
    Flag::plain('O', Refuse("it asks for scp's old protocol; only SFTP is spoken"), ""),
    Flag::with('o', "ssh_option", Own, "a setting as in ssh_config(5): -o Keyword=value"),
    Flag::with('P', "port", Keyword("Port"), "port of the server"),
    Flag::plain('p', Own, "keep modes, times, owner if root, hard links, extended attributes"),
    Flag::plain('q', Own, "no progress, no report; errors only"),
    Flag::plain('R', Refuse("one host would have to log in to the other; data goes through this one"), ""),
    Flag::plain('r', Own, "copy directories too"),
    Flag::with('S', "program", Own, "connect by this program, an ssh, one per lane"),
    Flag::plain('s', Nothing, ""),
    Flag::plain('T', Nothing, ""),
    Flag::plain('t', Own, "test: made-up data to host: and back, without a disk; '. host:' only there"),
    Flag::plain('V', Own, "print the version, and stop"),
    Flag::plain('v', Own, "a line per lane, and what the connections say"),
    Flag::with('X', "sftp_option", Own, ""),
];

/// A long option: its name, its value where it takes one, a few words on it.
pub(crate) struct Long(
    pub(crate) &'static str,
    pub(crate) Option<&'static str>,
    pub(crate) &'static str,
);

#[rustfmt::skip] // a table
pub(crate) const LONGS: &[Long] = &[
    Long("verify", None, "compare content, of what was there and of what arrived"),
    Long("inplace", None, "write under the final name at once, without a part file"),
    Long("no-fsync", None, "do not wait until finished files are on the disk"),
    Long("delay-updates", None, "put files in place at the end, all together"),
    Long("dry-run", None, "print what would be done, and do nothing"),
    Long("bwlimit", Some("RATE"), "at most so many bytes a second: 10M, or 80Mbit"),
    Long("include", Some("PATTERN"), "copy names that match; the first rule that matches decides"),
    Long("exclude", Some("PATTERN"), "leave out names that match"),
    Long("files-from", Some("FILE"), "copy the names in FILE, relative to the source; - reads stdin"),
    Long("from0", None, "the same as -0"),
    Long("json", None, "print events on standard output, one JSON object a line"),
    Long("shard", Some("K/N"), "copy the K-th of N parts, so that N hosts share one tree"),
    Long("size", Some("SIZE"), "how many bytes -t moves each way (else as many as go in 5 s)"),
    Long("self-test", Some("DIR"), "try every kind of transfer over loopback, below DIR"),
    Long("server", Some("PROGRAM"), "with --self-test, this sshd instead of lhsshd"),
    Long("help", None, "print this text"),
    Long("version", None, "the same as -V"),
];

/// The usage, then a line per option.
pub(crate) fn help() -> String {
    let mut out = flags::usage("lhscp", FLAGS, OPERANDS);
    let mut row = |left: &str, help: &str| _ = writeln!(out, "  {left:<20} {help}");
    for flag in FLAGS.iter().filter(|flag| !flag.help.is_empty()) {
        row(&format!("-{} {}", flag.letter, flag.value.unwrap_or_default()), flag.help);
    }
    for Long(name, value, help) in LONGS {
        row(&format!("--{name} {}", value.unwrap_or_default()), help);
    }
    out + "Places are paths, [user@]host:path, or scp://[user@]host[:port]/path (also sftp://).\n\
           Letters of scp that are missing here are accepted where they change nothing.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal_and_names_every_option() {
        let help = help();
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(help.starts_with("usage: lhscp [-03"));
        for Long(name, ..) in LONGS {
            assert!(help.contains(&format!("--{name} ")), "{name}");
        }
    }
}
