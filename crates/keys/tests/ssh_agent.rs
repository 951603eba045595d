//! A real `ssh-agent`, filled by `ssh-add`.

mod common;

use common::{KINDS, keygen, public_line};
use keys::agent::{Agent, AgentError};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// An agent that ends with the test.
struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    fn start(dir: &Path) -> Self {
        let socket = dir.join("agent");
        let child = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("ssh-agent");
        let running = Self { child, socket };
        let there = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            Agent::connect(&running.socket).is_ok()
        });
        assert!(there, "the agent does not listen");
        running
    }

    fn add(&self, args: &[&Path]) {
        let out = Command::new("ssh-add")
            .arg("-q")
            .args(args)
            .env("SSH_AUTH_SOCK", &self.socket)
            .output()
            .expect("ssh-add");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_agent_lists_its_keys_and_signs_with_each_algorithm() {
    let dir = TempDir::new().expect("dir");
    let running = Running::start(dir.path());
    let files: Vec<PathBuf> = KINDS.iter().map(|k| keygen(dir.path(), *k, "", &[])).collect();
    running.add(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>());

    let mut agent = Agent::connect(&running.socket).expect("connection");
    let identities = agent.identities().expect("identities");
    let listed: Vec<_> = identities.iter().map(|identity| identity.key.clone()).collect();
    assert_eq!(listed, files.iter().map(|file| public_line(file)).collect::<Vec<_>>());
    assert!(identities.iter().all(|identity| identity.comment == "me@here"));
    for key in listed {
        for alg in key.sig_algs() {
            let signature = agent.sign(&key, b"data", *alg).expect("signature");
            assert_eq!(key.verify(*alg, b"data", &signature), Ok(()), "{key:?} {alg:?}");
        }
    }
}

#[test]
fn a_real_agent_refuses_to_sign_with_a_key_it_does_not_hold() {
    let dir = TempDir::new().expect("dir");
    let running = Running::start(dir.path());
    let key = public_line(&keygen(dir.path(), KINDS[0], "", &[]));
    let mut agent = Agent::connect(&running.socket).expect("connection");
    assert_eq!(agent.identities().expect("identities"), []);
    let refused = agent.sign(&key, b"data", key.sig_algs()[0]);
    assert!(matches!(refused, Err(AgentError::Refused)), "{refused:?}");
}
