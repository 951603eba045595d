//! Accidents and bad input: lhssh says one line and ends with 255; it does not hang.

use anyhow::{Context, Result, ensure};
use interop::checks::{echo, one_line};
use interop::proxy::Way;
use interop::run::{Input, Outcome, Output, run};
use interop::{Client, Kind, Pair};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

fn keep(command: Command, input: Input) -> Result<Outcome> {
    run(command, input, Output::Keep, SOON)
}

/// A pair of which only the client is of interest.
fn alone() -> Option<Pair> {
    Pair::start(Client::Ours, Kind::Ours)
}

/// Output without end, and output whose end comes with it.
#[test]
fn a_full_disk_at_the_consumer_is_told() {
    for server in [Kind::Ours, Kind::OpenSsh] {
        let Some(pair) = Pair::start(Client::Ours, server) else { return };
        for remote in ["yes", "echo hi", "echo hi", "echo hi"] {
            pair.must(|pair| {
                let mut shell = Command::new("sh");
                let command = pair.command(remote)?;
                shell.args(["-c", "exec \"$@\" >/dev/full", "sh"]);
                shell.arg(command.get_program()).args(command.get_args());
                one_line(&keep(shell, Input::Empty)?, &["No space left on device"])
                    .map_err(|why| why.context(remote))
            });
        }
    }
}

/// The other end gets a part of the input and cannot know: its success is none.
#[test]
fn input_that_cannot_be_read_is_told() {
    for server in [Kind::Ours, Kind::OpenSsh] {
        let Some(pair) = Pair::start(Client::Ours, server) else { return };
        let from_a_directory = |remote| -> Result<Outcome> {
            let mut shell = Command::new("sh");
            let command = pair.command(remote)?;
            shell.args(["-c", "exec \"$@\" </", "sh"]);
            shell.arg(command.get_program()).args(command.get_args());
            keep(shell, Input::Empty)
        };
        pair.must(|_| {
            let outcome = from_a_directory("cat")?;
            one_line(&outcome, &["read from standard input", "Is a directory"])?;
            let outcome = from_a_directory("cat; exit 3")?;
            ensure!(outcome.status == 3, "status {}: {}", outcome.status, outcome.stderr);
            Ok(())
        });
    }
}

#[test]
fn one_flipped_bit_ends_the_connection_whichever_way() {
    // In the key exchange, in a packet's length, in the midst of the stream.
    for (way, after) in [
        (Way::Down, 500),
        (Way::Up, 500),
        (Way::Down, 40_000),
        (Way::Down, 1_000_003),
        (Way::Up, 40_000),
        (Way::Up, 1_000_003),
    ] {
        for server in [Kind::Ours, Kind::OpenSsh] {
            let Some(mut pair) = Pair::start(Client::Ours, server) else { return };
            pair.flip(way, after).unwrap();
            pair.must(|pair| {
                let outcome = keep(pair.command("cat")?, Input::Stream(8 << 20, 1))?;
                one_line(&outcome, &["127.0.0.1"])
                    .map_err(|why| why.context(format!("{way:?} {after}")))
            });
        }
    }
}

#[test]
fn garbage_on_the_wire_is_refused() {
    let junk: Vec<u8> =
        (0..1_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let after = |greeting: &[u8]| [greeting, &junk].concat();
    let cases: [(&str, Vec<u8>); 7] = [
        ("nothing", Vec::new()),
        ("noise", junk.clone()),
        ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ("SSH-1", b"SSH-1.5-old\r\n".to_vec()),
        ("an endless line", vec![b'x'; 1_000_000]),
        ("noise after the identification", after(b"SSH-2.0-x\r\n")),
        ("zeros after the identification", [&b"SSH-2.0-x\r\n"[..], &[0; 100_000]].concat()),
    ];
    for (name, bytes) in cases {
        let Some(mut pair) = alone() else { return };
        pair.divert(move |mut client| {
            let _ = client.write_all(&bytes);
            let _ = client.shutdown(std::net::Shutdown::Write);
            drain(client);
        })
        .unwrap();
        pair.must(|pair| {
            let outcome = keep(pair.command("echo in")?, Input::Empty)?;
            one_line(&outcome, &["127.0.0.1"]).map_err(|why| why.context(name))
        });
    }
}

/// Until the client is gone, so that what we said is not lost to a reset.
fn drain(mut client: TcpStream) {
    let _ = client.read_to_end(&mut Vec::new());
}

#[test]
fn a_server_killed_in_mid_stream_is_told_with_what_arrived() {
    for server in [Kind::Ours, Kind::OpenSsh] {
        let Some(pair) = Pair::start(Client::Ours, server) else { return };
        pair.must(|pair| {
            let kill = "(sleep 0.5; kill -KILL $PPID) & exec yes";
            let outcome = keep(pair.command(kill)?, Input::Held)?;
            ensure!(!outcome.stdout.is_empty(), "nothing came");
            one_line(&outcome, &["bytes received", "bytes sent"])
        });
    }
}

/// The server says what arrived, and the command is hung up.
#[test]
fn a_client_killed_in_mid_stream_leaves_nothing_behind() {
    for client in [Client::Ours, Client::OpenSsh] {
        let Some(pair) = Pair::start(client, Kind::Ours) else { return };
        pair.must(|pair| {
            let pid = pair.lab.path("pid");
            // It takes a little, and then no more.
            let remote = format!("echo $$ >{}; head -c 100000 >&2; exec sleep 600", pid.display());
            let mut child = pair
                .command(&remote)?
                .stdin(File::open("/dev/zero")?)
                .stderr(Stdio::piped())
                .spawn()?;
            child.stderr.take().context("stderr")?.read_exact(&mut [0; 100_000])?;
            let pid = fs::read_to_string(pid)?;
            child.kill()?;
            child.wait()?;
            let gone = || !Path::new("/proc").join(pid.trim()).exists();
            let told = || {
                let log = pair.server.whole_log();
                log.contains(" bytes") && !log.contains("received 0 bytes")
            };
            let deadline = Instant::now() + SOON;
            while !(gone() && told()) {
                ensure!(Instant::now() < deadline, "gone {}, told {}", gone(), told());
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        });
    }
}

/// What is wrong with a file of ours is told before anything is sent.
#[test]
fn files_that_cannot_be_read_are_named() {
    let Some(pair) = alone() else { return };
    pair.must(|pair| {
        let bad = pair.lab.path("bad");
        fs::write(&bad, "Host *\n  Frobnicate yes\n")?;
        for (config, words) in [
            ("/nonexistent/config".to_owned(), vec!["/nonexistent/config", "no such file"]),
            ("/".to_owned(), vec!["/", "directory"]),
            (bad.display().to_string(), vec!["bad", "line 2", "Frobnicate"]),
        ] {
            let mut command = Command::new(pair.command("")?.get_program());
            command.args(["-F", &config, "127.0.0.1", "echo in"]);
            one_line(&keep(command, Input::Empty)?, &words)?;
        }
        Ok(())
    });
}

#[test]
fn a_truncated_key_file_is_named() {
    let Some(mut pair) = alone() else { return };
    let whole = fs::read(pair.lab.key("user_rsa")).unwrap();
    let path = pair.lab.path("cut_key");
    let mut cut = File::create(&path).unwrap();
    cut.write_all(whole.get(..whole.len() / 2).unwrap()).unwrap();
    // Alone: the pair's own key is taken out of authorized_keys.
    fs::write(pair.lab.path("authorized_keys"), pair.lab.public("user_rsa").unwrap()).unwrap();
    pair.args = vec![format!("-i{}", path.display())];
    pair.must(|pair| {
        let outcome = keep(pair.command("echo in")?, Input::Empty)?;
        ensure!(outcome.status == 255 && outcome.stdout.is_empty(), "{outcome:?}");
        ensure!(outcome.stderr.contains("cut_key"), "{}", outcome.stderr);
        Ok(())
    });
}

/// A guess that is wrong: another method, another preference of the server's, another host key.
/// paramiko and asyncssh do not ignore it as they should, so lhssh comes again without one.
#[test]
fn a_wrong_guess_is_no_obstacle_with_any_server() {
    let cases: [&[&str]; 4] = [
        &["-oKexAlgorithms=sntrup761x25519-sha512,curve25519-sha256,curve25519-sha256@libssh.org"],
        &["-oKexAlgorithms=ecdh-sha2-nistp521,curve25519-sha256"],
        &["-oKexAlgorithms=ecdh-sha2-nistp256"],
        &["-oHostKeyAlgorithms=rsa-sha2-256,ssh-ed25519"],
    ];
    for server in [Kind::Ours, Kind::OpenSsh, Kind::Dropbear, Kind::Asyncssh, Kind::Paramiko] {
        let Some(mut pair) = Pair::start(Client::Ours, server) else { continue };
        // Dropbear without an RSA key fails an assertion when that is what a client prefers.
        let cases = if server == Kind::Dropbear { &cases[..3] } else { &cases[..] };
        for case in cases {
            pair.args = case.iter().map(|word| (*word).to_owned()).collect();
            pair.must(|pair| echo(pair).map_err(|why| why.context(format!("{case:?}"))));
        }
    }
}

/// The command went with the login. After a wrong guess lhssh would come again if the server left;
/// not if the command may have run.
#[test]
fn a_command_runs_once_though_the_answer_to_the_login_is_lost() {
    for server in [Kind::OpenSsh, Kind::Ours] {
        let Some(mut pair) = Pair::start(Client::Ours, server) else { return };
        pair.args = vec!["-oKexAlgorithms=ecdh-sha2-nistp521,curve25519-sha256".to_owned()];
        let ran = pair.lab.path("ran");
        let started = ran.clone();
        // KEXINIT and a wrong guess, the right packet, and all the rest.
        let connections = pair.lose_answer(3, move || started.exists()).unwrap();
        pair.must(|pair| {
            let command = format!("touch {}", ran.display());
            let outcome = keep(pair.command(&command)?, Input::Empty)?;
            one_line(&outcome, &["127.0.0.1"])?;
            let connections = connections.load(Ordering::SeqCst);
            ensure!(connections == 1, "{connections} connections: it came again");
            Ok(())
        });
    }
}

/// What can fail here fails before the command may run.
#[test]
fn no_command_runs_where_the_metrics_cannot_be_written() {
    let Some(mut pair) = alone() else { return };
    let ran = pair.lab.path("ran");
    pair.args = vec!["-oMetrics=yes".to_owned(), "-oMetricsPath=/nowhere/metrics".to_owned()];
    pair.must(|pair| {
        let outcome = keep(pair.command(&format!("touch {}", ran.display()))?, Input::Empty)?;
        one_line(&outcome, &["/nowhere/metrics"])?;
        ensure!(!ran.exists(), "the command ran");
        Ok(())
    });
}
