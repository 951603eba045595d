//! Ours with every peer: how a session behaves.

use interop::checks::{self, BASICS, Check, LIKE_SSH};
use interop::{Client, Kind, Pair};

const SERVERS: [Kind; 5] =
    [Kind::Ours, Kind::OpenSsh, Kind::Dropbear, Kind::Asyncssh, Kind::Paramiko];

fn pair(client: Client, server: Kind, checks: &[&[Check]]) {
    let Some(pair) = Pair::start(client, server) else { return };
    pair.must_all(&checks.concat());
}

#[test]
fn lhssh_to_lhsshd() {
    pair(Client::Ours, Kind::Ours, &[BASICS, LIKE_SSH]);
}

#[test]
fn lhssh_to_openssh() {
    pair(Client::Ours, Kind::OpenSsh, &[BASICS, LIKE_SSH]);
}

#[test]
fn openssh_to_lhsshd() {
    pair(Client::OpenSsh, Kind::Ours, &[BASICS, LIKE_SSH]);
}

#[test]
fn lhssh_to_dropbear() {
    pair(Client::Ours, Kind::Dropbear, &[BASICS]);
}

#[test]
fn lhssh_to_asyncssh() {
    pair(Client::Ours, Kind::Asyncssh, &[BASICS]);
}

#[test]
fn lhssh_to_paramiko() {
    pair(Client::Ours, Kind::Paramiko, &[BASICS]);
}

#[test]
fn dbclient_to_lhsshd() {
    pair(Client::Dbclient, Kind::Ours, &[BASICS]);
}

#[test]
fn plink_to_lhsshd() {
    pair(Client::Plink, Kind::Ours, &[BASICS]);
}

#[test]
fn asyncssh_to_lhsshd() {
    pair(Client::Asyncssh, Kind::Ours, &[BASICS]);
}

#[test]
fn paramiko_to_lhsshd() {
    pair(Client::Paramiko, Kind::Ours, &[BASICS]);
}

/// `lhssh host yes | head -1`, with servers that know `eow@openssh.com` and those that do not.
#[test]
fn lhssh_ends_when_nobody_reads_its_output_any_more() {
    for server in SERVERS {
        let Some(pair) = Pair::start(Client::Ours, server) else { continue };
        pair.must(checks::consumer_gone);
    }
}

/// The same with stock ssh, which tells only servers of OpenSSH's name. Effect of IdentifyAsOpenSSH
/// (D6), together with the check in `sftp_peers`.
#[test]
fn openssh_ends_when_nobody_reads_its_output_if_it_takes_lhsshd_for_openssh() {
    let named = ["IdentifyAsOpenSSH yes"];
    for (client, config) in [
        (Client::OpenSsh, &named[..]),
        (Client::Ours, &named),
        // Ends by itself, and the command by the end of the connection.
        (Client::Plink, &[]),
    ] {
        let Some(pair) = Pair::with(client, Kind::Ours, &[], config) else { continue };
        pair.must(checks::consumer_gone_and_command);
    }
}

/// sshd and ssh drop it.
#[test]
fn standard_error_goes_on_when_nobody_reads_standard_output_any_more() {
    let Some(pair) = Pair::start(Client::Ours, Kind::Ours) else { return };
    pair.must(checks::consumer_gone_and_stderr);
}

/// `environment=` of authorized_keys, and a value longer than most buffers.
#[test]
fn an_environment_from_authorized_keys_reaches_the_command() {
    let permit = ["PermitUserEnvironment yes"];
    let Some(pair) = Pair::with(Client::OpenSsh, Kind::Ours, &[], &permit) else { return };
    pair.must(|pair| {
        let value = "v".repeat(6000);
        let key = pair.lab.public("user_ed25519")?;
        let line = format!("environment=\"LONGHAUL={value}\" {key}");
        std::fs::write(pair.lab.path("authorized_keys"), line)?;
        checks::says(pair, "printf %s \"$LONGHAUL\" | wc -c", "6000")
    });
}

/// `command=` of authorized_keys runs instead of what was asked.
#[test]
fn a_forced_command_runs_whatever_was_asked() {
    let Some(pair) = Pair::start(Client::Ours, Kind::Ours) else { return };
    pair.must(|pair| {
        let key = pair.lab.public("user_ed25519")?;
        let line = format!("restrict,command=\"echo forced $SSH_ORIGINAL_COMMAND\" {key}");
        std::fs::write(pair.lab.path("authorized_keys"), line)?;
        checks::says(pair, "asked", "forced asked")
    });
}

/// A session that ends in order ends with DISCONNECT, so that servers need not log a lost client.
#[test]
fn lhssh_says_goodbye() {
    for (kind, words) in
        [(Kind::Ours, "Disconnected from user"), (Kind::OpenSsh, "11: disconnected by user")]
    {
        let Some(pair) = Pair::start(Client::Ours, kind) else { return };
        pair.must(|pair| {
            checks::says(pair, "echo x", "x")?;
            let patience = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while !pair.server.log().contains(words) {
                anyhow::ensure!(std::time::Instant::now() < patience, "{}", pair.server.log());
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Ok(())
        });
    }
}

/// A host key that is not the known one: no session, one line, 255.
#[test]
fn lhssh_refuses_a_wrong_host_key() {
    let Some(pair) = Pair::start(Client::Ours, Kind::OpenSsh) else { return };
    pair.must(|pair| {
        let line = format!("[127.0.0.1]:{} {}", pair.server.port, pair.lab.public("user_ed25519")?);
        std::fs::write(&pair.server.known_hosts, line)?;
        checks::refused(pair)
    });
}

/// A key that authorized_keys does not have: no session, 255, though our client asked for one.
#[test]
fn a_key_that_is_not_authorised_is_refused() {
    let pairs =
        [(Client::Ours, Kind::OpenSsh), (Client::OpenSsh, Kind::Ours), (Client::Ours, Kind::Ours)];
    for (client, server) in pairs {
        let Some(pair) = Pair::start(client, server) else { return };
        pair.must(|pair| {
            std::fs::write(pair.lab.path("authorized_keys"), pair.lab.public("user_rsa")?)?;
            checks::refused(pair)
        });
    }
}

/// The peer goes in mid-stream: the client says so and ends with 255, it does not hang.
#[test]
fn lhssh_ends_when_its_server_is_killed_in_mid_stream() {
    let Some(pair) = Pair::start(Client::Ours, Kind::Ours) else { return };
    pair.must(checks::server_killed);
}
