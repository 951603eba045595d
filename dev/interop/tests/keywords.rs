//! Every keyword of lhssh has an effect (invariant D6): a row for each, against one stock sshd.
//!
//! A row's command runs on this same machine, so it can look at the client's socket with ss(8).

use anyhow::{Context, Result, ensure};
use interop::lab::program;
use interop::run::{Input, Outcome, Output, run};
use interop::{Kind, Lab, Server, need};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// How long anything may take; nothing here is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// What shows that a setting was obeyed.
enum Effect {
    /// The command printed this, and nothing else.
    Prints(&'static str),
    /// lhssh's messages contain this...
    Says(&'static str),
    /// ... or do not.
    Hides(&'static str),
    /// sshd's log contains this.
    Logs(&'static str),
    /// This file of the test's directory contains this.
    Writes(&'static str, &'static str),
}

use Effect::{Hides, Logs, Prints, Says, Writes};

/// A keyword, the settings that are given before the usual ones, a command and its effects.
/// In braces: the directory (`dir`) and the keys (`keys`) of the test, the server's known_hosts
/// (`known`) and port (`port`), and how ss(8) shows the client's socket (`socket`).
type Row = (&'static str, &'static [&'static str], &'static str, &'static [Effect]);

#[rustfmt::skip] // a table
const ROWS: &[Row] = &[
    ("HostName", &["HostName=127.0.0.2"], "", &[Says("connect to host 127.0.0.2 port {port}: ")]),
    ("User", &["User=no-such-user"], "", &[Logs("Invalid user no-such-user from ")]),
    ("Port", &["Port=1"], "", &[Says("connect to host 127.0.0.1 port 1: ")]),
    ("AddressFamily", &["AddressFamily=inet6"], "", &[Says("no address of the wanted family")]),
    ("BindAddress", &["BindAddress=127.0.0.2"], "echo ${SSH_CLIENT%% *}", &[Prints("127.0.0.2")]),
    ("TCPKeepAlive", &["TCPKeepAlive=yes"], KEEPALIVE, &[Prints("1")]),
    ("TCPKeepAlive", &["TCPKeepAlive=no"], KEEPALIVE, &[Prints("0")]),
    ("ServerAliveInterval", &["ServerAliveInterval=1", "ServerAliveCountMax=1"], STOP,
        &[Says("no answer from the other side for 2 s")]),
    ("ServerAliveCountMax", &["ServerAliveInterval=1", "ServerAliveCountMax=2"], STOP,
        &[Says("no answer from the other side for 3 s")]),
    ("ProxyCommand", &["ProxyCommand=echo %h %p >{dir}/proxied"], "",
        &[Writes("proxied", "127.0.0.1 {port}\n")]),
    ("PipelineRequests", &["PipelineRequests=yes"], "echo in",
        &[Prints("in"), Says("the channel was asked for together with the login")]),
    ("PipelineRequests", &["PipelineRequests=no"], "echo in",
        &[Prints("in"), Hides("the channel was asked for together with the login")]),
    ("BatchMode", &["BatchMode=yes", "StrictHostKeyChecking=ask", NOBODY], "",
        &[Says("BatchMode forbids to ask")]),
    ("LogLevel", &["LogLevel=DEBUG1"], "", &[Says("debug1: logged in")]),
    ("LogLevel", &["LogLevel=QUIET"], "", &[Hides("debug1: logged in")]),
    ("IdentityFile", &["IdentityFile={keys}/user_ecdsa256"], "cut -d' ' -f1,2 $SSH_USER_AUTH",
        &[Prints("publickey ecdsa-sha2-nistp256")]),
    ("PubkeyAcceptedAlgorithms",
        &["IdentityFile={keys}/user_ecdsa256", "PubkeyAcceptedAlgorithms=ssh-ed25519"],
        "cut -d' ' -f1,2 $SSH_USER_AUTH", &[Prints("publickey ssh-ed25519")]),
    ("StrictHostKeyChecking", &["StrictHostKeyChecking=yes", NOBODY], "",
        &[Says("and StrictHostKeyChecking is yes")]),
    ("StrictHostKeyChecking",
        &["StrictHostKeyChecking=accept-new", "UserKnownHostsFile={dir}/accepted"], "echo in",
        &[Prints("in"), Writes("accepted", "[127.0.0.1]:{port} ")]),
    ("UserKnownHostsFile", &["UserKnownHostsFile={known}"], "echo in", &[Prints("in")]),
    ("GlobalKnownHostsFile", &[NOBODY, "GlobalKnownHostsFile={known}"], "echo in", &[Prints("in")]),
    ("HashKnownHosts",
        &["HashKnownHosts=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile={dir}/hashed"],
        "echo in", &[Prints("in"), Writes("hashed", "|1|")]),
    ("HostKeyAlias",
        &["HostKeyAlias=alias", "StrictHostKeyChecking=no", "UserKnownHostsFile={dir}/aliased"],
        "echo in", &[Prints("in"), Writes("aliased", "alias ")]),
    ("HostKeyAlgorithms",
        &["HostKeyAlgorithms=rsa-sha2-512", "StrictHostKeyChecking=no",
            "UserKnownHostsFile={dir}/rsa"],
        "echo in", &[Prints("in"), Writes("rsa", " ssh-rsa ")]),
    ("KexAlgorithms", &["KexAlgorithms=ecdh-sha2-nistp521"], "",
        &[Logs("kex: algorithm: ecdh-sha2-nistp521")]),
    ("Ciphers", &["Ciphers=chacha20-poly1305@openssh.com"], "",
        &[Logs("cipher: chacha20-poly1305@openssh.com")]),
    ("MACs", &["Ciphers=aes192-ctr", "MACs=hmac-sha2-512"], "",
        &[Logs("cipher: aes192-ctr MAC: hmac-sha2-512 ")]),
    // More than a window, which no adjustment widens before the exchange is over.
    ("RekeyLimit", &["RekeyLimit=64K"], "head -c 8000000 /dev/zero",
        &[Says(" rekeys="), Hides(" rekeys=0 ")]),
    ("RequestTTY", &["RequestTTY=force"], "", &[Says("a terminal at the other end")]),
    ("StdinNull", &["StdinNull=no"], "cat; echo .", &[Prints("typed.")]),
    ("StdinNull", &["StdinNull=yes"], "cat; echo .", &[Prints(".")]),
    ("SendEnv", &["SendEnv=LH_*"], ENVIRONMENT, &[Prints("one two")]),
    ("SendEnv", &["SendEnv=LH_ONE LH_TWO", "SendEnv=-LH_T*"], ENVIRONMENT, &[Prints("one ")]),
    ("SetEnv", &["SetEnv=LH_TWO=2"], ENVIRONMENT, &[Prints(" 2")]),
    ("CryptoWorkers", &["CryptoWorkers=3"],
        "pid=$({socket} | grep -o 'pid=[0-9]*'); cat /proc/${pid#*=}/task/*/comm | grep -c crypto",
        &[Prints("3")]),
    ("TcpRcvBuf", &["TcpRcvBuf=50K"], "{socket} | grep -o 'rb[0-9]*'", &[Prints("rb102400")]),
    ("TcpSndBuf", &["TcpSndBuf=50K"], "{socket} | grep -o 'tb[0-9]*'", &[Prints("tb102400")]),
    ("CongestionControl", &["CongestionControl=reno"], "{socket} | grep -ow reno",
        &[Prints("reno")]),
];

/// No host is known.
const NOBODY: &str = "UserKnownHostsFile=/dev/null";

/// 1 where the keepalive timer runs. While an acknowledgement is due another timer is shown.
const KEEPALIVE: &str = "until now=$({socket}); case $now in *'timer:(on'*) false;; esac; \
                         do sleep 0.02; done; echo \"$now\" | grep -c 'timer:(keepalive'";

/// Stops the session that runs it, which the test ends.
const STOP: &str = "echo $PPID >>{dir}/stopped; kill -STOP $PPID; exec cat";

const ENVIRONMENT: &str = "echo \"$LH_ONE $LH_TWO\"";

/// Keywords with a test elsewhere, which takes more than one server or a path of its own. Row D6
/// of docs/invariants.md names these tests, too; `cargo xtask invariants` looks for them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ConnectTimeout", "connect::no_attempt_is_made_when_the_time_is_over"),
    ("ConnectionAttempts", "connect::a_refused_connection_is_tried_as_often_as_wanted"),
    ("HappyEyes", "connect::attempts_race_with_the_wanted_delay_or_not_at_all"),
    ("HappyDelay", "connect::attempts_race_with_the_wanted_delay_or_not_at_all"),
    ("UseMPTCP", "connect::multipath_is_used_where_both_ends_can"),
    ("Fallback", "connect::a_port_that_refuses_is_replaced_by_the_fallback_port"),
    ("FallbackPort", "connect::a_port_that_refuses_is_replaced_by_the_fallback_port"),
    ("ProxyJump", "jump::commands_run_behind_one_host_and_behind_two"),
    ("IdentitiesOnly", "credentials::a_public_half_names_a_key_of_the_agent"),
    ("IdentityAgent", "credentials::a_public_half_names_a_key_of_the_agent"),
    ("RemoteRcvBuf", "buffers::a_server_gives_the_receive_buffer_it_is_asked_for_up_to_maxsockbuf"),
    ("MaxSockBuf", "socket::buffers_grow_no_further_than_configured"),
    ("Compression", "compression::lhssh_compresses_with_openssh_and_lhsshd"),
    ("MaxWindow", "limits::windows_and_buffers_are_named_with_their_sizes"),
    ("NoneEnabled", "clear::n6_a_switch_is_warned_of_and_both_ends_log_who_and_how_much"),
    ("NoneSwitch", "clear::n6_a_switch_is_warned_of_and_both_ends_log_who_and_how_much"),
    ("NoneMacEnabled", "clear::n6_a_switch_is_warned_of_and_both_ends_log_who_and_how_much"),
    ("Metrics", "limits::metrics_of_both_ends_are_written_as_time_goes_by"),
    ("MetricsInterval", "limits::metrics_of_both_ends_are_written_as_time_goes_by"),
    ("MetricsPath", "limits::metrics_of_both_ends_are_written_as_time_goes_by"),
];

/// Settings of every run, after those of its row: the first of a keyword counts.
const USUAL: &[&str] = &[
    "HostName=127.0.0.1",
    "Port={port}",
    "IdentityFile={keys}/user_ed25519",
    "IdentityAgent=none",
    "UserKnownHostsFile={known}",
    "GlobalKnownHostsFile=/dev/null",
    "StrictHostKeyChecking=yes",
    "BatchMode=yes",
    "LogLevel=DEBUG1",
    // Stock sshd takes a quarter of a second for its preferred one.
    "KexAlgorithms=curve25519-sha256",
];

/// What all rows share.
struct Site {
    lab: Lab,
    server: Server,
}

impl Site {
    fn start() -> Result<Self> {
        let lab = Lab::new()?;
        let config = ["LogLevel DEBUG1", "ExposeAuthInfo yes", "AcceptEnv LH_*"];
        let server = Server::start(&lab, Kind::OpenSsh, &config)?;
        Ok(Self { lab, server })
    }

    fn fill_in(&self, text: &str) -> String {
        let path = |name| self.lab.path(name).display().to_string();
        let client = "sport = :$(echo $SSH_CLIENT | cut -d' ' -f2)";
        text.replace("{socket}", &format!("ss -tniompH \"{client}\""))
            .replace("{dir}", path("").trim_end_matches('/'))
            .replace("{keys}", self.lab.key("").display().to_string().trim_end_matches('/'))
            .replace("{known}", &self.server.known_hosts.display().to_string())
            .replace("{port}", &self.server.port.to_string())
    }

    fn run(&self, settings: &[&str], command: &str) -> Result<Outcome> {
        let mut lhssh = Command::new(program("lhssh")?);
        lhssh.args(["-F", "none"]);
        for setting in settings.iter().chain(USUAL) {
            lhssh.args(["-o", &self.fill_in(setting)]);
        }
        lhssh.args(["host", &format!(": ; {}", self.fill_in(command))]);
        lhssh.envs([("LH_ONE", "one"), ("LH_TWO", "two")]).env("HOME", self.lab.path(""));
        run(lhssh, Input::Bytes(b"typed".to_vec()), Output::Keep, PATIENCE)
    }

    /// A row's run, and whether it had its effects.
    fn check(&self, (keyword, settings, command, effects): &Row) -> Result<()> {
        let outcome = self.run(settings, command)?;
        for effect in *effects {
            self.expect(effect, &outcome).with_context(|| format!("{keyword} {settings:?}"))?;
        }
        Ok(())
    }

    fn expect(&self, effect: &Effect, outcome: &Outcome) -> Result<()> {
        let printed = String::from_utf8_lossy(&outcome.stdout);
        let said = &outcome.stderr;
        match effect {
            Prints(text) => {
                ensure!(printed.strip_suffix('\n') == Some(*text), "printed {printed:?}: {said}");
            }
            Says(text) => ensure!(said.contains(&self.fill_in(text)), "{text:?} not in: {said}"),
            Hides(text) => ensure!(!said.contains(text), "{text:?} in: {said}"),
            Logs(text) => {
                self.server.line(text).with_context(|| said.to_owned())?;
            }
            Writes(name, text) => {
                let path = self.lab.path(name);
                let written = fs::read_to_string(&path)
                    .with_context(|| format!("{}: {said}", path.display()))?;
                ensure!(written.contains(&self.fill_in(text)), "{text:?} not in: {written}");
            }
        }
        Ok(())
    }
}

impl Drop for Site {
    /// Ends the sessions that commands have stopped.
    fn drop(&mut self) {
        let stopped = fs::read_to_string(self.lab.path("stopped")).unwrap_or_default();
        for pid in stopped.lines() {
            let _ = Command::new("kill").args(["-KILL", pid]).status();
        }
    }
}

/// Rows run beside each other: some of them wait for seconds.
#[test]
fn every_keyword_of_the_client_has_its_effect() -> Result<()> {
    if !need::require(&["sshd", "ssh-keygen", "ss"]) {
        return Ok(());
    }
    let site = Site::start()?;
    let (left, failures) = (Mutex::new(ROWS.iter()), Mutex::new(Vec::new()));
    let next = || left.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = next() {
                    if let (Err(why), Ok(mut failures)) = (site.check(row), failures.lock()) {
                        failures.push(format!("{why:#}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    ensure!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

#[test]
fn every_keyword_of_the_client_is_in_a_table_and_every_test_in_row_d6() -> Result<()> {
    let here: BTreeSet<&str> = ROWS.iter().map(|(keyword, ..)| *keyword).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|(keyword, _)| *keyword).collect();
    let all: BTreeSet<&str> = conf::manual::client_keywords().collect();
    let both: Vec<_> = here.intersection(&elsewhere).collect();
    ensure!(both.is_empty(), "in both tables: {both:?}");
    let tested: BTreeSet<&str> = here.union(&elsewhere).copied().collect();
    let (without, unknown): (Vec<_>, Vec<_>) =
        (all.difference(&tested).collect(), tested.difference(&all).collect());
    ensure!(without.is_empty() && unknown.is_empty(), "no test: {without:?}; no row: {unknown:?}");

    let invariants = fs::read_to_string(need::root().join("docs/invariants.md"))?;
    let row = invariants.lines().find(|line| line.starts_with("| D6 ")).context("no row D6")?;
    for (keyword, test) in ELSEWHERE {
        ensure!(row.contains(&format!("`{test}`")), "{keyword}: row D6 does not name {test}");
    }
    Ok(())
}

/// The server's tests stand in several places; each says `Effect of`, and which keywords.
#[test]
fn every_keyword_of_the_server_is_named_by_a_test_of_its_effect() -> Result<()> {
    let mut said = String::new();
    for folder in ["crates/server/src", "crates/server/tests", "dev/interop/tests"] {
        for entry in fs::read_dir(need::root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                said += &effects(&fs::read_to_string(path)?);
            }
        }
    }
    let words: BTreeSet<&str> = said.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let without: Vec<_> =
        conf::manual::server_keywords().filter(|keyword| !words.contains(keyword)).collect();
    ensure!(without.is_empty(), "no test: {without:?}");
    Ok(())
}

/// The comments of a source that speak of effects.
fn effects(source: &str) -> String {
    let mut comment = String::new();
    let mut found = String::new();
    for line in source.lines().map(str::trim) {
        match line.strip_prefix("//") {
            Some(text) => comment += text,
            None => {
                let of = comment.contains("Effect") || comment.contains("effects of");
                found += if of { comment.as_str() } else { "" };
                comment.clear();
            }
        }
    }
    found
}
