//! The self-test's server: keys made for it, lhsshd or else sshd on a free port of loopback, ended
//! when the value is dropped.

use anyhow::{Context, Result, bail};
use keys::PrivateKey;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(15);

/// A running server.
pub(crate) struct Server {
    program: PathBuf,
    port: u16,
    dir: PathBuf,
    child: Child,
}

impl Server {
    /// Starts `program`, or the best that is there.
    pub(crate) fn start(dir: &Path, program: Option<&Path>) -> Result<Self> {
        let program = match program {
            Some(program) => {
                program.canonicalize().with_context(|| program.display().to_string())?
            }
            None => find()?,
        };
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        write_keys(dir, port)?;
        let config = dir.join("sshd_config");
        fs::write(&config, configuration(dir, port))?;
        let mut command = Command::new(&program);
        command.args(["-D", "-e", "-f"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(dir.join("server.log"))?);
        let child = command.spawn().with_context(|| program.display().to_string())?;
        let mut server = Self { program, port, dir: dir.to_owned(), child };
        server.wait_until_listening()?;
        Ok(server)
    }

    fn wait_until_listening(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended ({status}): {}", self.program.display(), self.log());
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("{} does not listen: {}", self.program.display(), self.log())
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.dir.join("server.log")).unwrap_or_default();
        copy::shown(text.trim_end().as_bytes())
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.program.file_name().is_some_and(|name| name == "lhsshd")
    }

    /// Options of lhscp by which it reaches this server and reads no file of the user's.
    pub(crate) fn options(&self) -> Vec<String> {
        let known = self.dir.join("known_hosts");
        let settings = [
            "StrictHostKeyChecking=yes".to_owned(),
            "GlobalKnownHostsFile=none".to_owned(),
            format!("UserKnownHostsFile={}", known.display()),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
        ];
        let mut options = vec!["-B".to_owned(), "-F".to_owned(), "none".to_owned()];
        options.extend(["-P".to_owned(), self.port.to_string()]);
        options.extend(["-i".to_owned(), self.dir.join("user_key").display().to_string()]);
        options.extend(settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]));
        options
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// lhsshd beside this program, in PATH, or else sshd.
fn find() -> Result<PathBuf> {
    let beside = env::current_exe()?.with_file_name("lhsshd");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<_> = env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    let named = ["lhsshd", "sshd"];
    let in_path = named.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    let mut all = std::iter::once(beside).chain(in_path);
    all.find(|program| program.is_file()).context("neither lhsshd nor sshd is here; --server NAME")
}

fn configuration(dir: &Path, port: u16) -> String {
    let dir = dir.display();
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nPidFile none\nHostKey {dir}/host_key\n\
         AuthorizedKeysFile {dir}/authorized_keys\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n\
         Subsystem sftp internal-sftp\n"
    )
}

fn write_keys(dir: &Path, port: u16) -> Result<()> {
    let (host, user) = (new_key(&dir.join("host_key"))?, new_key(&dir.join("user_key"))?);
    fs::write(dir.join("authorized_keys"), format!("{user}\n"))?;
    let names = ["127.0.0.1", "localhost"].map(|name| format!("[{name}]:{port}"));
    fs::write(dir.join("known_hosts"), format!("{} {host}\n", names.join(",")))?;
    Ok(())
}

/// Writes a fresh Ed25519 key, and gives its public line.
fn new_key(file: &Path) -> Result<String> {
    let mut seed = [0; 32];
    crypt::random(&mut seed);
    let public = PrivateKey::from_ed25519_seed(&seed)?.public().clone();
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    out.write_all(container(&seed, public.blob()).as_bytes())?;
    Ok(public.to_openssh())
}

/// OpenSSH's file of a private key that is not encrypted (PROTOCOL.key).
fn container(seed: &[u8; 32], public: &[u8]) -> String {
    let point = public.get(public.len().saturating_sub(32)..).unwrap_or_default();
    let mut secret = vec![0; 8]; // two equal check numbers
    string(&mut secret, b"ssh-ed25519");
    string(&mut secret, point);
    string(&mut secret, &[seed.as_slice(), point].concat());
    string(&mut secret, b"self-test");
    secret.extend((1u8..).take(secret.len().wrapping_neg() % 8));
    let mut file = b"openssh-key-v1\0".to_vec();
    for part in [b"none".as_slice(), b"none", b""] {
        string(&mut file, part);
    }
    file.extend(1u32.to_be_bytes());
    string(&mut file, public);
    string(&mut file, &secret);
    let begin = "-----BEGIN OPENSSH PRIVATE KEY-----";
    format!("{begin}\n{}\n{}\n", base64(&file), begin.replace("BEGIN", "END"))
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(bytes);
}

/// Lines of 64 characters.
fn base64(bytes: &[u8]) -> String {
    use base64ct::{Base64, Encoding};
    let text = Base64::encode_string(bytes);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_key_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let public = new_key(&file).unwrap();
        let key = PrivateKey::from_bytes(&fs::read(&file).unwrap(), None).unwrap();
        assert_eq!(key.public().to_openssh(), public);
    }
}
