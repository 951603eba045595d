//! Turn: one server, one client, a meter at the end that receives; both ends measured, on a path
//! of their own, within a quota if there is one.

use super::meter;
use super::program::{self, Kind, Places, Program, Way, fill};
use super::quota::Quota;
use crate::lab::Lab;
use crate::measured::{self, Report};
use crate::net::{Net, Place};
use crate::run::{end_within, listening};
use anyhow::{Context, Result, bail, ensure};
use linkemu::{Link, Spec};
use std::fs::{self, File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nobody's turn takes longer.
const LONGEST: Duration = Duration::from_secs(120);

/// A cipher, or a setting, and how programs are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) name: String,
    pub(crate) cipher: &'static str,
    pub(crate) mac: &'static str,
    /// Options of clients with ssh's command line, and of servers with sshd's.
    pub(crate) client: String,
    pub(crate) server: String,
}

/// What moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// Nothing: a login.
    Login,
    /// A file's content, for so many seconds.
    Stream { seconds: f64 },
    /// The same, taken at 1 MB/s.
    Slow { seconds: f64 },
    /// The whole of a file of so many bytes.
    Copy { bytes: u64 },
}

impl Load {
    /// Whether a stream that took so many seconds lasted as long as it was asked to: the last read
    /// may come a little before the end.
    fn is_whole(self, took: f64) -> bool {
        match self {
            Self::Stream { seconds } | Self::Slow { seconds } => took >= 0.9 * seconds,
            Self::Login | Self::Copy { .. } => true,
        }
    }
}

/// What one turn does.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Program,
    pub(crate) mode: Mode,
    pub(crate) way: Way,
    pub(crate) link: Option<Spec>,
    pub(crate) load: Load,
    /// The share of all cores that both ends have.
    pub(crate) share: Option<f64>,
}

/// What one turn gave.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) client: Report,
    pub(crate) server: Report,
    pub(crate) meter: meter::Report,
    /// When the client started, in seconds since 1970.
    pub(crate) started: f64,
    /// Bytes that arrived.
    pub(crate) bytes: u64,
    /// Why the link's figures may not be used, if so.
    pub(crate) refused: Option<String>,
}

/// What all turns share.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) paths: Places,
    pub(crate) quota: Result<Quota, String>,
    /// Bytes of the file that streams are read from.
    pub(crate) size: u64,
    pub(crate) fingerprint: String,
}

/// Command lines of one turn.
struct Lines {
    client: String,
    server: String,
    /// What the client reads.
    input: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn new(lab: Lab, paths: Places, size: u64) -> Result<Self> {
        let fingerprint = program::fingerprint(&lab)?;
        let quota = Quota::new().map_err(|why| format!("{why:#}"));
        Ok(Self { lab, paths, quota, size, fingerprint })
    }

    /// Does it once.
    pub(crate) fn turn(&self, job: &Job<'_>) -> Result<Outcome> {
        let net = match &job.link {
            None => Net::Loopback,
            Some(spec) => {
                Net::Emulated(Box::new(Link::up(spec.clone()).context("the emulated link")?))
            }
        };
        let outcome = self.over(&net, job);
        let refused = net.down();
        Ok(Outcome { refused, ..outcome? })
    }

    fn over(&self, net: &Net, job: &Job<'_>) -> Result<Outcome> {
        let address = net.free()?;
        let lines = self.lines(job, address)?;
        self.prepare(job, address.port())?;
        let mut server = self.start(net, Place::Server, job, &lines, address)?;
        let client = listening(&mut server, address).and_then(|()| {
            let started = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
            wait(&mut self.start(net, Place::Client, job, &lines, address)?)?;
            Ok((self.report("client")?, started))
        });
        // A client that never came leaves a server that waits for ever.
        let came = client.as_ref().is_ok_and(|(report, _)| report.ok || job.load != Load::Login);
        let patience = if came { 5.0 } else { 0.2 };
        if job.program.kind != Kind::Pipe || !ends(&mut server, patience)? {
            drop(server.stdin.take()); // its sign to end, if it listens
        }
        let ended = end_within(&mut server, patience * 2.0);
        let (client, started) = client?;
        let (meter, bytes) = self.arrived(job, &client)?;
        ended.context("the server did not end after the client")?;
        let server = self.report("server")?;
        Ok(Outcome { client, server, meter, started, bytes, refused: None })
    }

    /// What the meter saw; a copy's target is looked at and removed.
    fn arrived(&self, job: &Job<'_>, client: &Report) -> Result<(meter::Report, u64)> {
        let meter = match job.load {
            Load::Login => {
                ensure!(client.ok, "the login failed: {}", self.said("client"));
                return Ok((meter::Report::default(), 0));
            }
            Load::Copy { bytes } => {
                ensure!(client.ok, "the copy failed: {}", self.said("client"));
                let target = self.target();
                let length = fs::metadata(&target)?.len();
                fs::remove_file(&target)?;
                ensure!(length == bytes, "{length} bytes arrived instead of {bytes}");
                meter::Report { seconds: client.wall, steps: vec![bytes], first: 0.0 }
            }
            Load::Stream { .. } | Load::Slow { .. } => {
                let text = fs::read(self.lab.path("meter.json"))?;
                serde_json::from_slice(&text).with_context(|| {
                    format!("nothing arrived: {} / {}", self.said("client"), self.said("server"))
                })?
            }
        };
        let bytes = meter.bytes();
        ensure!(bytes > 0, "nothing arrived: {}", self.said("client"));
        ensure!(
            bytes >= self.size || job.load.is_whole(meter.seconds),
            "the stream broke after {:.1} s: {}",
            meter.seconds,
            self.said("client")
        );
        Ok((meter, bytes))
    }

    fn target(&self) -> PathBuf {
        self.lab.data("target")
    }

    /// The file that is read, and the one that the meter, whoever it runs as, writes to.
    fn prepare(&self, job: &Job<'_>, port: u16) -> Result<()> {
        self.write_config(port)?;
        let report = self.lab.path("meter.json");
        fs::write(&report, "")?;
        fs::set_permissions(&report, Permissions::from_mode(0o666))?;
        match (&self.quota, job.share) {
            (Ok(quota), Some(share)) => quota.set(share),
            (Err(why), Some(_)) => bail!("{why}"),
            _ => Ok(()),
        }
    }

    /// The configuration that clients with ssh's command line read.
    fn write_config(&self, port: u16) -> Result<()> {
        let dir = self.lab.user_dir(&self.lab.user);
        let text = format!(
            "Host *\nUser {}\nPort {port}\nIdentityFile {dir}/login\nIdentitiesOnly yes\n\
             UserKnownHostsFile {dir}/known_hosts\nGlobalKnownHostsFile /dev/null\n\
             StrictHostKeyChecking yes\nBatchMode yes\nKexAlgorithms curve25519-sha256\n",
            self.lab.user,
            dir = dir.display(),
        );
        Ok(fs::write(self.lab.path("ssh_config"), text)?)
    }

    fn source(&self, job: &Job<'_>) -> Result<PathBuf> {
        self.lab.source(match job.load {
            Load::Copy { bytes } => bytes,
            _ => self.size,
        })
    }

    fn lines(&self, job: &Job<'_>, address: SocketAddr) -> Result<Lines> {
        let source = self.source(job)?;
        let file = source.display();
        let (sink, way) = (self.sink(job), job.way);
        let remote = match (job.load, way) {
            (Load::Login, _) => "true".to_owned(),
            (_, Way::Send) => sink.clone(),
            (_, Way::Receive) => format!("cat {file}"),
        };
        let places = self.places(job, address, &remote, &source);
        let [client, server] =
            [&job.program.client, &job.program.server].map(|line| fill(line, &places));
        let input = (way == Way::Send && !matches!(job.load, Load::Login | Load::Copy { .. }))
            .then(|| source.clone());
        // When the meter has seen enough, what feeds it is told so: a client may wait for ever
        // for a server that it no longer reads from.
        let metered = |line: String| {
            format!("exec 3< <(exec {line}); {sink} <&3; exec 3<&-; kill $! 2>&-; wait $!; true")
        };
        let (client, server) = match (job.program.kind, way) {
            (Kind::Command, Way::Receive) if job.load != Load::Login => (metered(client), server),
            (Kind::Pipe, Way::Receive) => (metered(client), format!("{server} <{file}")),
            (Kind::Pipe, Way::Send) => (client, metered(server)),
            _ => (client, server),
        };
        Ok(Lines { client, server, input })
    }

    fn sink(&self, job: &Job<'_>) -> String {
        let meter = format!(
            "{} meter --report {}",
            self.lab.lhbench.display(),
            self.lab.path("meter.json").display()
        );
        match job.load {
            Load::Stream { seconds } => format!("{meter} --seconds {seconds}"),
            Load::Slow { seconds } => format!("{meter} --seconds {seconds} --rate 1M"),
            Load::Login | Load::Copy { .. } => meter,
        }
    }

    fn places(&self, job: &Job<'_>, address: SocketAddr, remote: &str, source: &Path) -> Places {
        let dir = self.lab.user_dir(&self.lab.user);
        let home = nix::unistd::User::from_name(&self.lab.user).ok().flatten();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let [nc_client, nc_server] = match job.way {
            Way::Send => ["-N", ""],
            Way::Receive => ["-d", "-N"],
        };
        let listen = |whose: &str| {
            format!(
                "-D -e -f {{dir}}/{whose}.conf -oListenAddress={host}:{port} -oMaxStartups=100 \
                 '-oSubsystem=sftp internal-sftp'"
            )
        };
        let mut places = self.paths.clone();
        places.extend([
            (
                "ssh_words",
                "-F {config} -c {cipher} -oMACs={mac} {client_options} {host} {command}".to_owned(),
            ),
            (
                "copy_words",
                format!(
                    "-q -F {{config}} -c {{cipher}} {} {{host}}:{}",
                    source.display(),
                    self.target().display()
                ),
            ),
            ("listen_ours", listen("ours")),
            ("listen_stock", listen("stock")),
            ("client_options", job.mode.client.clone()),
            ("server_options", job.mode.server.clone()),
            ("cipher", job.mode.cipher.to_owned()),
            ("mac", job.mode.mac.to_owned()),
            ("command", format!("'{remote}'")),
            ("host", host),
            ("port", port),
            ("user", self.lab.user.clone()),
            ("key", dir.join("login").display().to_string()),
            ("host_key", dir.join("host").display().to_string()),
            ("known_hosts", dir.join("known_hosts").display().to_string()),
            ("config", self.lab.path("ssh_config").display().to_string()),
            ("sshd_config", dir.join("stock.conf").display().to_string()),
            ("fingerprint", self.fingerprint.clone()),
            ("home", home.map(|user| user.dir.display().to_string()).unwrap_or_default()),
            ("dir", dir.display().to_string()),
            ("nc_client", nc_client.to_owned()),
            ("nc_server", nc_server.to_owned()),
        ]);
        places
    }

    fn start(
        &self,
        net: &Net,
        place: Place,
        job: &Job<'_>,
        lines: &Lines,
        address: SocketAddr,
    ) -> Result<Child> {
        let (name, line) = match place {
            Place::Client => ("client", &lines.client),
            Place::Server => ("server", &lines.server),
        };
        let report = self.lab.path(&format!("{name}.json"));
        _ = fs::remove_file(&report);
        let mut command = measured::command(&self.lab.lhbench, &report);
        if let (Ok(quota), Some(_)) = (&self.quota, job.share) {
            command.arg("--cgroup").arg(quota.dir());
        }
        command.stdin(Stdio::null());
        match place {
            Place::Server if job.program.inetd => {
                command.args(["--accept", &address.to_string()]);
            }
            Place::Server => {
                command.arg("--until-eof").stdin(Stdio::piped());
            }
            Place::Client => {
                if let Some(path) = &lines.input {
                    command.stdin(File::open(path)?);
                }
            }
        }
        command.args(["--", "bash", "-o", "pipefail", "-c", line]).env_remove("SSH_AUTH_SOCK");
        command.stdout(File::create(self.lab.path(&format!("{name}.out")))?);
        command.stderr(File::create(self.lab.path(&format!("{name}.err")))?);
        net.spawn(place, &mut command)
    }

    fn report(&self, name: &str) -> Result<Report> {
        let text = fs::read(self.lab.path(&format!("{name}.json")))
            .with_context(|| format!("the {name} left no report: {}", self.said(name)))?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn said(&self, name: &str) -> String {
        let text = fs::read_to_string(self.lab.path(&format!("{name}.err"))).unwrap_or_default();
        let lines = text.lines().rev().filter(|line| !line.starts_with("hint:"));
        lines.take(2).collect::<Vec<_>>().join(" / ")
    }
}

fn wait(child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    child.kill()?;
    child.wait()?;
    bail!("not done after {} s", LONGEST.as_secs())
}

/// Whether it ended within so many seconds.
fn ends(child: &mut Child, seconds: f64) -> Result<bool> {
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        sleep(Duration::from_millis(2));
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_broke_early_is_not_whole() {
        let load = Load::Stream { seconds: 4.0 };
        assert!(load.is_whole(3.7) && !load.is_whole(3.5));
        assert!(!Load::Slow { seconds: 4.0 }.is_whole(0.0));
    }
}
