//! Owner: who copies, as a part of a copy's key.

/// Names this user of this host: others who run the same command, perhaps with the same home, have
/// journals and part files of their own.
pub(in super::super) fn ourselves() -> Vec<u8> {
    let read = |path| std::fs::read(path).unwrap_or_default();
    let uid = rustix::process::geteuid().as_raw();
    user_of(&read("/etc/machine-id"), &read("/proc/sys/kernel/hostname"), uid)
}

/// A host that has no number (machine-id(5)) is known by its name.
fn user_of(machine: &[u8], host: &[u8], uid: u32) -> Vec<u8> {
    let machine = match machine.trim_ascii() {
        b"" | b"uninitialized" => host.trim_ascii(),
        machine => machine,
    };
    [format!("{uid}@").as_bytes(), machine].concat()
}

#[cfg(test)]
mod tests {
    use super::super::key;
    use super::*;

    /// The id in names of part files is the key's: two with one key would rename each other's.
    #[test]
    fn r2_another_machine_or_user_has_a_journal_of_its_own() {
        let key_of = |machine: &[u8], host: &[u8], uid| key(&[b"/a", &user_of(machine, host, uid)]);
        let ours = key_of(b"0123\n", b"node1\n", 1000);
        assert_eq!(ours, key_of(b"0123", b"renamed", 1000), "the next run goes on");
        assert_ne!(ours, key_of(b"4567\n", b"node1\n", 1000));
        assert_ne!(ours, key_of(b"0123\n", b"node1\n", 0));
        for none in [&b""[..], b"uninitialized\n"] {
            assert_ne!(key_of(none, b"node1\n", 0), key_of(none, b"node2\n", 0));
        }
        assert_eq!(ourselves(), ourselves());
    }
}
