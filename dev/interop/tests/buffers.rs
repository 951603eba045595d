//! Socket buffers that one end asks of the other.

use anyhow::{Context, Result, ensure};
use interop::run::Input;
use interop::{Client, Kind, Pair};

/// What `lhssh -v` says of the server's receive buffer.
fn granted(pair: &Pair) -> Result<Option<u64>> {
    let outcome = pair.run("cat", Input::Bytes(b"pushed".to_vec()))?;
    ensure!(outcome.status == 0 && outcome.stdout == b"pushed", "{outcome:?}");
    let said = outcome.stderr.lines().find_map(|line| line.split_once("receive buffer is "));
    said.map(|(_, figure)| {
        let figure = figure.split(' ').next().unwrap_or_default();
        figure.parse().with_context(|| figure.to_owned())
    })
    .transpose()
}

/// Effect of RemoteRcvBuf and of MaxSockBuf, which caps it (D6): too much is never an error. What
/// is asked for here is more than sockets have by themselves, and no kernel refuses it.
#[test]
fn a_server_gives_the_receive_buffer_it_is_asked_for_up_to_maxsockbuf() {
    const SIZE: u64 = 150 << 10;
    for (client, server, config, expected) in [
        ("RemoteRcvBuf=150K", Kind::Ours, "MaxSockBuf auto", Some(SIZE)),
        ("RemoteRcvBuf=1000G", Kind::Ours, "MaxSockBuf 150K", Some(SIZE)),
        ("RemoteRcvBuf=1000G", Kind::Ours, "Match all\nMaxSockBuf 150K", Some(SIZE)),
        ("RemoteRcvBuf=100K", Kind::Ours, "MaxSockBuf 150K", Some(100 << 10)),
        ("RemoteRcvBuf=auto", Kind::Ours, "MaxSockBuf auto", None),
        ("RemoteRcvBuf=150K", Kind::OpenSsh, "Compression no", None),
    ] {
        let words = ["-v", "-o", client];
        let Some(pair) = Pair::with(Client::Ours, server, &words, &[config]) else { continue };
        pair.must(|pair| {
            let granted = granted(pair)?;
            ensure!(granted == expected, "{client} {config}: {granted:?}");
            Ok(())
        });
    }
}
