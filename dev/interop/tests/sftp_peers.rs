//! Other people's SFTP clients with our server, and our client with their servers.
//!
//! ```text
//! Host       a server, and the ssh_config by which everybody finds it
//! clients    sftp, scp, rclone, lftp, sshfs, curl (libssh2), asyncssh, paramiko
//! servers    lhsftp-server below sshd and below lhsshd, lhsshd's own; for our client also OpenSSH's,
//!            asyncssh's and paramiko's
//! ```
//! Every client takes a tree there and back; the tree must be the same, at both ends.

use anyhow::{Result, ensure};
use interop::checks::tree;
use interop::run::{Input, Outcome, Output, run};
use interop::{Kind, Lab, Server, lab, need, stream};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(120);
const STOCK_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Which program is behind the subsystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// lhsftp-server.
    Ours,
    /// The server's own, in its process.
    Internal,
    /// OpenSSH's.
    OpenSsh,
    /// The Python servers know nothing else.
    Library,
}

/// A server with files, and how to reach it.
struct Host {
    lab: Lab,
    server: Server,
    what: String,
}

/// Our server, wherever it runs.
const OUR_SERVERS: [(Kind, Behind); 3] =
    [(Kind::OpenSsh, Behind::Ours), (Kind::Ours, Behind::Ours), (Kind::Ours, Behind::Internal)];

impl Host {
    fn start(kind: Kind, behind: Behind) -> Result<Self> {
        Self::with(kind, behind, &[])
    }

    /// The same with more lines for its configuration.
    fn with(kind: Kind, behind: Behind, config: &[&str]) -> Result<Self> {
        let lab = Lab::new()?;
        let subsystem = match behind {
            Behind::Ours => lab::program("lhsftp-server")?.display().to_string(),
            Behind::Internal => "internal-sftp".to_owned(),
            Behind::OpenSsh | Behind::Library => STOCK_SERVER.to_owned(),
        };
        let subsystem = format!("Subsystem sftp {subsystem}");
        let server = Server::start(&lab, kind, &[&[subsystem.as_str()], config].concat())?;
        let host = Self { lab, server, what: format!("{kind:?} with {behind:?}") };
        fs::write(host.config(), host.config_text())?;
        plant(&host.local())?;
        Ok(host)
    }

    fn config(&self) -> PathBuf {
        self.lab.path("ssh_config")
    }

    fn config_text(&self) -> String {
        format!(
            "Host peer\n HostName 127.0.0.1\n Port {}\n User {}\n IdentityFile {}\n \
             UserKnownHostsFile {}\n GlobalKnownHostsFile none\n IdentitiesOnly yes\n \
             BatchMode yes\n LogLevel ERROR\n",
            self.server.port,
            user(),
            self.key(),
            self.server.known_hosts.display(),
        )
    }

    fn key(&self) -> String {
        self.lab.key("user_ed25519").display().to_string()
    }

    /// The tree that is taken there, where it goes, and where it comes back to.
    fn local(&self) -> PathBuf {
        self.lab.path("tree")
    }

    fn remote(&self) -> PathBuf {
        self.lab.path("there")
    }

    fn back(&self) -> PathBuf {
        self.lab.path("tree.back")
    }

    /// Runs a command line in which these words stand for paths and settings.
    fn must(&self, line: &[&str]) -> Result<Outcome> {
        let path = |path: PathBuf| path.display().to_string();
        let words = line.iter().map(|word| {
            word.replace("{config}", &path(self.config()))
                .replace("{local}", &path(self.local()))
                .replace("{remote}", &path(self.remote()))
                .replace("{back}", &path(self.back()))
                .replace("{lab}", &path(self.lab.path("")))
                .replace("{key}", &self.key())
                .replace("{port}", &self.server.port.to_string())
                .replace("{known}", &path(self.server.known_hosts.clone()))
                .replace("{user}", &user())
        });
        let words: Vec<String> = words.collect();
        let Some((program, args)) = words.split_first() else { anyhow::bail!("no program") };
        let mut command = Command::new(program);
        // Programs that look for a home of their own find an empty one.
        command.args(args).env("HOME", self.lab.path("")).env("LC_ALL", "C.UTF-8");
        command.current_dir(self.lab.path(""));
        let outcome = run(command, Input::Empty, Output::Keep, SOON)?;
        let said = String::from_utf8_lossy(&outcome.stdout);
        ensure!(
            outcome.status == 0,
            "{}: {words:?}: {} {said} {}\n{}",
            self.what,
            outcome.status,
            outcome.stderr,
            self.server.log()
        );
        Ok(outcome)
    }

    /// Both copies are what was planted.
    fn same(&self) -> Result<()> {
        let want = tree(&self.local())?;
        ensure!(tree(&self.remote())? == want, "{}: what arrived differs", self.what);
        ensure!(tree(&self.back())? == want, "{}: what came back differs", self.what);
        Ok(())
    }
}

fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
    user.ok().flatten().map_or_else(|| "root".to_owned(), |user| user.name)
}

/// Empty, small, large, odd names, a directory.
fn plant(at: &Path) -> Result<()> {
    fs::create_dir_all(at.join("sub dir"))?;
    fs::write(at.join("empty"), "")?;
    fs::write(at.join("sub dir/small"), "small\n")?;
    fs::write(at.join("sub dir/größe [1] 'x'"), "odd\n")?;
    let mut large = fs::File::create(at.join("large"))?;
    Ok(stream::make(&mut large, (9 << 20) + 4321, 9)?)
}

/// Puts a client to all of our servers.
fn with_our_servers(programs: &[&str], check: impl Fn(&Host) -> Result<()>) -> Result<()> {
    if !need::require(programs) {
        return Ok(());
    }
    for (kind, behind) in OUR_SERVERS {
        if kind.available() {
            let host = Host::start(kind, behind)?;
            check(&host)?;
            host.same()?;
            let log = host.server.whole_log();
            ensure!(!log.contains("after ending it"), "{}: {log}", host.what);
        }
    }
    Ok(())
}

#[test]
fn sftp_of_openssh() -> Result<()> {
    with_our_servers(&["sftp"], |host| {
        let batch = host.lab.path("batch");
        let (local, remote, back) = (host.local(), host.remote(), host.back());
        let text = format!(
            "put -Rp {} {}\nls -l {1}\ndf {1}\ncp {1}/large {1}/copy\nrename {1}/copy {1}/copy2\n\
             ln {1}/large {1}/hard\nln -s large {1}/soft\nchmod 600 {1}/hard\nrm {1}/copy2\n\
             rm {1}/hard\nrm {1}/soft\nmkdir {1}/new\nrmdir {1}/new\nget -Rp {1} {}\n",
            local.display(),
            remote.display(),
            back.display()
        );
        fs::write(&batch, text)?;
        host.must(&["sftp", "-F", "{config}", "-b", "{lab}batch", "peer"]).map(drop)
    })
}

#[test]
fn scp_of_openssh() -> Result<()> {
    with_our_servers(&["scp"], |host| {
        host.must(&["scp", "-q", "-r", "-p", "-s", "-F", "{config}", "{local}", "peer:{remote}"])?;
        host.must(&["scp", "-q", "-r", "-p", "-s", "-F", "{config}", "peer:{remote}", "{back}"])
            .map(drop)
    })
}

#[test]
fn rclone() -> Result<()> {
    with_our_servers(&["rclone"], |host| {
        // Hashes are made by commands at the server where it has a shell; this is about sftp.
        let remote = ":sftp,host=127.0.0.1,port={port},user={user},key_file={key},\
                      known_hosts_file={known},shell_type=none:{remote}";
        let quick = ["--low-level-retries", "1", "--retries", "1"];
        host.must(&[&["rclone", "copy", "{local}", remote][..], &quick].concat())?;
        host.must(&[&["rclone", "check", "--download", "{local}", remote][..], &quick].concat())?;
        host.must(
            &[&["rclone", "copy", "--multi-thread-cutoff", "1M", remote, "{back}"][..], &quick]
                .concat(),
        )?;
        host.must(&["rclone", "about", remote]).map(drop)
    })
}

#[test]
fn lftp_with_several_connections_for_one_file() -> Result<()> {
    with_our_servers(&["lftp", "ssh"], |host| {
        let start = "set sftp:connect-program 'ssh -a -x -F {config}'; set net:max-retries 1; \
                     set cmd:fail-exit yes; open sftp://{user}@peer; ";
        let there = format!("{start} mirror -R --no-perms {{local}} {{remote}}; ls {{remote}}");
        host.must(&["lftp", "-c", &there])?;
        let back = format!(
            "{start} mirror --no-perms -x large {{remote}} {{back}}; lcd {{back}}; \
             pget -n 4 {{remote}}/large"
        );
        host.must(&["lftp", "-c", &back]).map(drop)
    })
}

#[test]
fn sshfs() -> Result<()> {
    if !need::require_root() || !need::have(Path::new("/dev/fuse").exists(), "no /dev/fuse") {
        return Ok(());
    }
    with_our_servers(&["sshfs", "fusermount3", "ssh"], |host| {
        let mount = host.lab.path("mount");
        fs::create_dir_all(&mount)?;
        fs::create_dir_all(host.remote())?;
        host.must(&["sshfs", "-F", "{config}", "peer:{remote}", "{lab}mount"])?;
        let used = host.must(&[
            "sh",
            "-ec",
            "cd $0; cp -r $1/. .; mv large x; truncate -s 5 x; ln -s x y; mv y z; rm x z; \
             cp $1/large large; df . >/dev/null; cp -r . $2; cmp large $1/large",
            "{lab}mount",
            "{local}",
            "{back}",
        ]);
        let left = host.must(&["fusermount3", "-u", "{lab}mount"]);
        used.and(left).map(drop)
    })
}

#[test]
fn curl_on_libssh2() -> Result<()> {
    with_our_servers(&["curl"], |host| {
        let base = "sftp://{user}@127.0.0.1:{port}{remote}";
        // It knows one host key; of the several that a server has it is told which by its print.
        let fixed = ["curl", "-sSg", "--insecure", "--key", "{key}", "--pubkey", "{key}.pub"];
        let call = |more: &[&str]| host.must(&[&fixed[..], more].concat());
        for (name, escaped) in NAMES {
            let (from, url) = (format!("{{local}}/{name}"), format!("{base}/{escaped}"));
            call(&["--ftp-create-dirs", "-T", &from, &url])?;
            call(&["--create-dirs", "-o", &format!("{{back}}/{name}"), &url])?;
        }
        let list = call(&[&format!("{base}/")])?;
        let list = String::from_utf8_lossy(&list.stdout);
        ensure!(list.contains("large"), "{list}");
        // A part of a file, and a file that goes on where it ended.
        let part = call(&["-r", "100-199", &format!("{base}/large")])?;
        let whole = fs::read(host.local().join("large"))?;
        ensure!(whole.get(100..200) == Some(&part.stdout[..]), "another part");
        call(&["-Q", "rm {remote}/empty", &format!("{base}/")])?;
        call(&["-T", "{local}/empty", &format!("{base}/empty")]).map(drop)
    })
}

/// What was planted, and the same in a URL.
const NAMES: [(&str, &str); 4] = [
    ("empty", "empty"),
    ("large", "large"),
    ("sub dir/small", "sub%20dir/small"),
    ("sub dir/größe [1] 'x'", "sub%20dir/gr%C3%B6%C3%9Fe%20%5B1%5D%20%27x%27"),
];

#[test]
fn asyncssh() -> Result<()> {
    python("asyncssh_sftp.py")
}

#[test]
fn paramiko() -> Result<()> {
    python("paramiko_sftp.py")
}

/// Effect of IdentifyAsOpenSSH (D6): AsyncSSH sends SYMLINK in OpenSSH's order then.
#[test]
fn asyncssh_that_takes_lhsshd_for_openssh() -> Result<()> {
    if !Kind::Asyncssh.available() {
        return Ok(());
    }
    for behind in [Behind::Ours, Behind::Internal] {
        run_python(
            &Host::with(Kind::Ours, behind, &["IdentifyAsOpenSSH yes"])?,
            "asyncssh_sftp.py",
        )?;
    }
    Ok(())
}

fn python(script: &str) -> Result<()> {
    if !Kind::Asyncssh.available() {
        return Ok(());
    }
    with_our_servers(&[], |host| run_python(host, script))
}

fn run_python(host: &Host, script: &str) -> Result<()> {
    let python = need::python().display().to_string();
    let script = need::root().join("dev/interop/peers").join(script).display().to_string();
    host.must(&[&python, &script, "{port}", "{key}", "{known}", "{user}", "{local}", "{remote}"])
        .map(drop)
}

/// Servers that our client is put to.
const THEIR_SERVERS: [(Kind, Behind); 6] = [
    (Kind::OpenSsh, Behind::OpenSsh),
    (Kind::OpenSsh, Behind::Internal),
    (Kind::Asyncssh, Behind::Library),
    (Kind::Paramiko, Behind::Library),
    (Kind::Ours, Behind::Ours),
    (Kind::Ours, Behind::Internal),
];

#[test]
fn lhsftp_with_everybodys_servers() -> Result<()> {
    let lhsftp = lab::program("lhsftp")?.display().to_string();
    for (kind, behind) in THEIR_SERVERS {
        if !kind.available() {
            continue;
        }
        let host = Host::start(kind, behind)?;
        let (local, remote, back) = (host.local(), host.remote(), host.back());
        let text = "pwd\nput -Rp HERE THERE\nls -la THERE\nls THERE/s*\nput HERE/large THERE/copy\n\
             rename THERE/copy THERE/copy2\nln -s large THERE/soft\nget THERE/soft BACK.soft\n\
             rm THERE/soft\nls -l THERE/copy2\nchmod 600 THERE/copy2\n\
             reget THERE/copy2 BACK.part\nrm THERE/copy2\nmkdir THERE/new\nrmdir THERE/new\n\
             -df\n-get THERE/nothing\ncd THERE\nls\ncd\nget -Rp THERE BACK\n";
        let text = text.replace("THERE", &remote.display().to_string());
        let text = text.replace("HERE", &local.display().to_string());
        let text = text.replace("BACK", &back.display().to_string());
        fs::write(host.lab.path("batch"), text)?;
        let part = host.lab.path("tree.back.part");
        fs::write(&part, &fs::read(local.join("large"))?[..12_345])?;
        host.must(&[&lhsftp, "-F", "{config}", "-b", "{lab}batch", "peer"])?;
        host.same()?;
        let large = fs::read(local.join("large"))?;
        ensure!(fs::read(&part)? == large, "{}: resumed", host.what);
        let soft = fs::read(host.lab.path("tree.back.soft"))?;
        ensure!(soft == large, "{}: by the link that was made", host.what);
        let target = host.lab.path("alone");
        let file = format!("peer:{}/large", remote.display());
        host.must(&[&lhsftp, "-q", "-F", "{config}", &file, "{lab}alone"])?;
        ensure!(fs::read(target)? == fs::read(&part)?, "{}: alone", host.what);
    }
    Ok(())
}

#[test]
fn lhsftp_says_why_it_cannot_log_in() -> Result<()> {
    if !Kind::OpenSsh.available() {
        return Ok(());
    }
    let lhsftp = lab::program("lhsftp")?;
    let host = Host::start(Kind::OpenSsh, Behind::OpenSsh)?;
    for (option, want) in [
        ("-oUser=nobody-of-this-name", "lhsftp: "),
        ("-oUserKnownHostsFile=/dev/null", "lhsftp: "),
        ("-snothing", "the server refuses the subsystem nothing"),
    ] {
        let mut command = Command::new(&lhsftp);
        command.arg(option).arg("-F").arg(host.config()).args(["-b", "-", "peer"]);
        let outcome = run(command, Input::Empty, Output::Keep, SOON)?;
        ensure!(outcome.status == 255, "{option}: {}", outcome.status);
        ensure!(outcome.stderr.contains(want), "{option}: {}", outcome.stderr);
    }
    Ok(())
}
