//! The NONE cipher and NONE MAC between lhssh and lhsshd: asked for on the command line, allowed
//! by the server, told to both logs; whatever is refused goes on encrypted (docs/none.md).

use anyhow::{Result, ensure};
use interop::checks::tree;
use interop::lab::program;
use interop::run::{Input, Outcome, Output, run};
use interop::{Client, Kind, Pair, need};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(60);
const SIZE: u64 = 24 << 20;
const ASK: [&str; 2] = ["-oNoneEnabled=yes", "-oNoneSwitch=yes"];
const ASK_MAC: [&str; 3] = ["-oNoneEnabled=yes", "-oNoneSwitch=yes", "-oNoneMacEnabled=yes"];
const BOTH: [&str; 2] = ["NoneEnabled yes", "NoneMacEnabled yes"];

fn ours(args: &[&str], config: &[&str]) -> Pair {
    Pair::with(Client::Ours, Kind::Ours, args, config).expect("ours can run")
}

/// `SIZE` bytes there and back at once. The command reads a moment later than it could, so that
/// most of them come after the switch.
fn echo(pair: &Pair) -> Result<Outcome> {
    let outcome = run(
        pair.command("sleep 0.5; cat")?,
        Input::Stream(SIZE, 5),
        Output::Compare(SIZE, 5),
        SOON,
    )?;
    ensure!(outcome.status == 0, "status {}: {}", outcome.status, outcome.stderr);
    Ok(outcome)
}

/// How many bytes a log line says after `name`.
fn count(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// N6; effects of NoneEnabled, NoneSwitch and NoneMacEnabled on both sides.
#[test]
fn n6_a_switch_is_warned_of_and_both_ends_log_who_and_how_much() {
    for (args, mac, words) in [
        (&ASK[..], "hmac-sha2-256-etm@openssh.com", "travels unencrypted, both ways"),
        (&ASK_MAC[..], "NONE", "travels unencrypted and unauthenticated, both ways"),
    ] {
        ours(&[args, &["-v"]].concat(), &BOTH).must(|pair| {
            let outcome = echo(pair)?;
            let warnings = outcome.stderr.lines().filter(|line| line.contains("WARNING")).count();
            ensure!(warnings == 1 && outcome.stderr.contains(words), "{}", outcome.stderr);
            pair.server.line("NONE cipher for user ")?;
            let line = pair.server.line("Unencrypted for user ")?;
            ensure!(line.contains(" from 127.0.0.1 port "), "{line}");
            for way in ["received ", "sent "] {
                // The first of them leave while the switch is agreed on.
                let clear = count(&line, way).unwrap_or(0);
                ensure!(clear > SIZE / 4, "{clear} bytes {way}in clear: {line}");
            }
            let line = pair.server.line("Transfer: ")?;
            // `lhssh -v` has the same figures.
            let client = outcome.stderr.lines().find(|line| line.contains("clear_out="));
            let clear = client.and_then(|line| count(line, "clear_out=")).unwrap_or(0);
            ensure!(clear > SIZE / 4, "{}", outcome.stderr);
            // Both ends count the same bytes: data, without what surrounds it.
            let there = count(&line, "clear_in=").unwrap_or(0);
            ensure!(clear == there, "{clear} sent, {there} received: {line}\n{}", outcome.stderr);
            for field in ["cipher_in=NONE", "cipher_out=NONE", &format!("mac_in={mac}")] {
                ensure!(line.contains(field), "{field} not in {line}");
            }
            Ok(())
        });
    }
}

/// Only `-q` silences it.
#[test]
fn n6_no_log_level_hides_the_warning_or_the_refusal() {
    for (config, words) in [(&BOTH[..], "WARNING: NONE cipher"), (&[], "no NONE cipher")] {
        ours(&[&ASK[..], &["-oLogLevel=FATAL"]].concat(), config).must(|pair| {
            let outcome = echo(pair)?;
            ensure!(outcome.stderr.contains(words), "{}", outcome.stderr);
            Ok(())
        });
    }
}

#[test]
fn n6_quiet_is_quiet() {
    ours(&[&ASK[..], &["-q"]].concat(), &BOTH).must(|pair| {
        let outcome = echo(pair)?;
        ensure!(outcome.stderr.is_empty(), "{}", outcome.stderr);
        pair.server.line("Unencrypted for user ").map(drop)
    });
}

/// N7, N1: what the server does not allow this user at this address stays encrypted, and the
/// client says so in one line; a server of another kind is not even asked.
#[test]
fn n7_a_refusal_is_one_line_and_the_transfer_goes_on_encrypted() {
    let refusals: [(Kind, &[&str], &[&str]); 6] = [
        (Kind::Ours, &ASK, &[]),
        (Kind::Ours, &ASK, &["Match address 192.0.2.0/24", "NoneEnabled yes"]),
        (Kind::Ours, &ASK[1..], &BOTH),
        (Kind::Ours, &["-oNoneEnabled=yes", "-oNoneSwitch=yes", "-T"], &BOTH),
        (Kind::Ours, &["-oNoneEnabled=yes", "-oNoneSwitch=yes", "-oMACs=hmac-sha2-256"], &BOTH),
        (Kind::OpenSsh, &ASK, &[]),
    ];
    for (server, args, config) in refusals {
        let Some(pair) = Pair::with(Client::Ours, server, args, config) else { continue };
        pair.must(|pair| {
            let outcome = echo(pair)?;
            let lines: Vec<&str> = outcome.stderr.lines().collect();
            ensure!(
                lines.len() == 1 && lines[0].starts_with("lhssh: no NONE cipher: "),
                "{args:?} {config:?}: {lines:?}"
            );
            if server == Kind::Ours {
                let line = pair.server.line("Transfer: ")?;
                ensure!(line.contains(" clear_in=0 clear_out=0 "), "{line}");
                ensure!(!line.contains("cipher_in=NONE"), "{line}");
            }
            Ok(())
        });
    }
}

/// Policy by Match, and the MAC that the server keeps.
#[test]
fn n1_policy_is_that_of_the_user_and_the_address() {
    let config = ["Match address 127.0.0.0/8", "NoneEnabled yes"];
    ours(&ASK_MAC, &config).must(|pair| {
        let outcome = echo(pair)?;
        ensure!(outcome.stderr.contains("the server keeps the MAC"), "{}", outcome.stderr);
        let line = pair.server.line("Transfer: ")?;
        ensure!(line.contains("cipher_in=NONE") && line.contains("mac_in=hmac"), "{line}");
        Ok(())
    });
}

/// Options of a file are passed over with a warning (N1).
#[test]
fn n1_a_configuration_file_cannot_ask_for_the_switch() {
    ours(&[], &BOTH).must(|pair| {
        let file = pair.lab.path("config");
        fs::write(&file, "NoneEnabled yes\nNoneSwitch yes\nNoneMacEnabled yes\n")?;
        let plain = pair.command("cat")?;
        let mut command = Command::new(plain.get_program());
        let none = std::ffi::OsStr::new("/dev/null");
        command.args(plain.get_args().map(|arg| if arg == none { file.as_os_str() } else { arg }));
        let outcome = run(command, Input::Stream(1000, 5), Output::Compare(1000, 5), SOON)?;
        ensure!(
            outcome.stderr.matches("counts on the command line only").count() == 3,
            "{}",
            outcome.stderr
        );
        let line = pair.server.line("Transfer: ")?;
        ensure!(line.contains(" clear_in=0 clear_out=0 "), "{line}");
        Ok(())
    });
}

/// A rekey that the user asks for keeps the MAC's stream going; without a MAC there is none.
#[test]
fn streams_are_whole_under_every_cover_whatever_the_rekey_limit_and_the_workers() {
    for ask in [&ASK[..], &ASK_MAC[..]] {
        for workers in ["-oCryptoWorkers=0", "-oCryptoWorkers=2"] {
            let args = [ask, &[workers, "-oRekeyLimit=4M", "-q"]].concat();
            ours(&args, &BOTH).must(|pair| echo(pair).map(drop));
        }
    }
}

/// `rsync -e 'lhssh -oNoneEnabled=yes -oNoneSwitch=yes'`, both ways.
#[test]
fn rsync_goes_over_it() {
    if !need::require(&["rsync"]) {
        return;
    }
    ours(&ASK, &BOTH).must(|pair| {
        let [here, there, back] = ["here", "there", "back"].map(|name| pair.lab.path(name));
        fs::create_dir_all(here.join("sub"))?;
        fs::write(here.join("sub/small"), "small\n")?;
        interop::stream::make(&mut fs::File::create(here.join("large"))?, 16 << 20, 9)?;
        let ssh = wrapper(pair)?;
        let names = [&here, &there, &back].map(|path| path.display().to_string());
        for (from, to) in [
            (format!("{}/", names[0]), format!("127.0.0.1:{}", names[1])),
            (format!("127.0.0.1:{}/", names[1]), names[2].clone()),
        ] {
            let mut rsync = Command::new("rsync");
            rsync.args(["-a", "-e", &ssh, &from, &to]);
            let outcome = run(rsync, Input::Empty, Output::Keep, SOON)?;
            ensure!(outcome.status == 0, "{}", outcome.stderr);
            ensure!(outcome.stderr.matches("WARNING: NONE cipher").count() == 1);
        }
        ensure!(tree(&here)? == tree(&there)? && tree(&here)? == tree(&back)?);
        pair.server.line("Unencrypted for user ").map(drop)
    });
}

/// lhssh with all options for this pair, as rsync calls it.
fn wrapper(pair: &Pair) -> Result<String> {
    let command = pair.command("")?;
    let mut words: Vec<String> = vec![command.get_program().display().to_string()];
    words.extend(command.get_args().map(|word| word.display().to_string()));
    words.truncate(words.len() - 4); // -l USER HOST COMMAND
    let path = pair.lab.path("ssh");
    fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// With neither cipher nor MAC the kernel passes data on by itself: what arrives is what was there,
/// from the file's position on, and whoever shares the file goes on behind it.
#[test]
fn bare_data_of_a_file_arrives_unchanged_and_once() {
    let size = usize::try_from(SIZE).expect("fits") + 4321;
    let content: Vec<u8> =
        (0..size as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    ours(&ASK_MAC, &BOTH).must(|pair| {
        let dir = tempfile::tempdir()?;
        let [given, got] = ["given", "got"].map(|name| dir.path().join(name));
        fs::write(&given, &content)?;
        let mut file = fs::File::open(&given)?;
        file.seek(SeekFrom::Start(1000))?;
        let mut command = pair.command("sleep 0.5; cat")?;
        let ended = command
            .stdin(file.try_clone()?)
            .stdout(fs::File::create(&got)?)
            .stderr(Stdio::null())
            .status()?;
        ensure!(ended.success(), "{ended}");
        ensure!(fs::read(&got)? == content[1000..], "what arrived is not what was sent");
        ensure!(file.stream_position()? == content.len() as u64, "{}", file.stream_position()?);
        let line = pair.server.line("Unencrypted for user ")?;
        ensure!(count(&line, "received ").unwrap_or(0) > SIZE / 2, "{line}");
        Ok(())
    });
}

/// Nothing stands for the data that a packet has promised: the connection ends, and says why.
#[test]
fn bare_data_of_a_file_that_becomes_shorter_never_hangs() {
    ours(&ASK_MAC, &BOTH).must(|pair| {
        let file = tempfile::NamedTempFile::new()?;
        file.as_file().set_len(400 << 20)?;
        let mut command = pair.command("sleep 1; wc -c")?;
        let client = command
            .stdin(fs::File::open(file.path())?)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        std::thread::sleep(Duration::from_millis(700));
        file.as_file().set_len(1000)?;
        let ended = client.wait_with_output()?;
        let told = String::from_utf8_lossy(&ended.stderr);
        // Between two packets it is the end of the file.
        ensure!(
            ended.status.success() || told.contains("read the input: the input became shorter"),
            "{}: {told}",
            ended.status
        );
        Ok(())
    });
}

/// Small pieces come by, large ones do not: in order all the same.
#[test]
fn bare_data_of_a_pipe_arrives_in_order_whatever_its_pieces() {
    ours(&ASK_MAC, &BOTH).must(|pair| {
        let pieces = [1, 100, 5000, 16 << 10, 70_000, 1, 1 << 20, 3, 300_000];
        let mut client = pair
            .command("sleep 0.5; cat")?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = client.stdin.take().expect("piped");
        let sent: Vec<u8> = (0..8)
            .flat_map(|turn| pieces.iter().map(move |len| (turn, *len)))
            .flat_map(|(turn, len)| (0..len).map(move |i: usize| (i.wrapping_mul(31) + turn) as u8))
            .collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || -> std::io::Result<()> {
            std::thread::sleep(Duration::from_millis(300));
            let mut rest = &sent[..];
            for len in pieces.iter().cycle() {
                let Some((piece, left)) = rest.split_at_checked(*len) else { break };
                stdin.write_all(piece)?;
                rest = left;
            }
            Ok(())
        });
        let mut got = Vec::new();
        client.stdout.take().expect("piped").read_to_end(&mut got)?;
        ensure!(client.wait()?.success(), "the client failed");
        writer.join().expect("writer")?;
        ensure!(got == expected, "{} of {} bytes, or others", got.len(), expected.len());
        Ok(())
    });
}

/// What the kernel still passes on comes before what is read instead. Nothing else would notice:
/// there is no MAC.
#[test]
fn a_sender_without_descriptors_keeps_the_order() {
    let one_worker = ["-oCryptoWorkers=1", "-oTcpSndBuf=64k"];
    ours(&[&ASK_MAC[..], &one_worker].concat(), &BOTH).must(|pair| {
        let path = pair.lab.path("input");
        let mut input = fs::File::options().create_new(true).read(true).write(true).open(path)?;
        interop::stream::make(&mut input, SIZE, 6)?;
        input.rewind()?;
        let check = format!("sleep 0.5; {} check {SIZE} 6", program("lhgen")?.display());
        let mut command = pair.command(&check)?;
        command.stdin(input.try_clone()?).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let deadline = Instant::now() + SOON;
        while input.stream_position()? < SIZE / 4 {
            ensure!(Instant::now() < deadline, "nothing is sent");
            std::thread::sleep(Duration::from_millis(1));
        }
        let limit = Command::new("prlimit")
            .args(["--nofile=3:4096", "--pid", &child.id().to_string()])
            .status()?;
        ensure!(limit.success(), "prlimit: {limit}");
        let outcome = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&outcome.stdout);
        ensure!(outcome.status.success() && said.contains("ok"), "{}: {said}", outcome.status);
        Ok(())
    });
}
