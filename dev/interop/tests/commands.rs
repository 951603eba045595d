//! F4: whatever files are called, no name of one is part of a command, at this end or at the other.
//!
//! sshd is made to hand every command to a script (`ForceCommand`), which notes it and runs it.

use anyhow::{Result, ensure};
use interop::run::{Input, Output, run};
use interop::{Kind, Lab, Server, lab};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(120);
const STOCK_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A name of which any shell would make a file `pwned`.
const NAME: &str = "x'\"; touch pwned; $(touch pwned) `touch pwned` & touch pwned #";

/// sshd, and what it was asked to run.
struct Watched {
    lab: Lab,
    server: Server,
}

impl Watched {
    fn start() -> Result<Self> {
        let lab = Lab::new()?;
        let (script, log) = (lab.path("noted"), lab.path("commands"));
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$SSH_ORIGINAL_COMMAND\" >>'{}'\ncd '{}'\n\
             exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            log.display(),
            lab.path("").display(),
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
        let force = format!("ForceCommand {}", script.display());
        let subsystem = format!("Subsystem sftp {STOCK_SERVER}");
        let server = Server::start(&lab, Kind::OpenSsh, &[&subsystem, &force])?;
        // By either of its names it is the same host.
        let (known, port) = (fs::read_to_string(&server.known_hosts)?, server.port);
        let [one, other] = ["127.0.0.1", "localhost"].map(|name| format!("[{name}]:{port}"));
        fs::write(&server.known_hosts, known.replace(&one, &format!("{one},{other}")))?;
        fs::create_dir(lab.path("tree"))?;
        fs::write(lab.path("tree").join(NAME), "harmless")?;
        Ok(Self { lab, server })
    }

    fn path(&self, name: &str) -> String {
        self.lab.path(name).display().to_string()
    }

    /// Our program, in the test's directory, with a way to the server.
    fn run(&self, program: &str, args: &[&str]) -> Result<()> {
        let mut command = Command::new(lab::program(program)?);
        command.current_dir(self.lab.path("")).env("XDG_STATE_HOME", self.lab.path("state"));
        command.args(["-F", "none", "-P", &self.server.port.to_string(), "-i"]);
        command.arg(self.lab.key("user_ed25519"));
        command.arg(format!("-oUserKnownHostsFile={}", self.server.known_hosts.display()));
        command.args(args);
        let outcome = run(command, Input::Empty, Output::Keep, SOON)?;
        ensure!(outcome.status == 0, "{program} {args:?}: {}", outcome.stderr);
        Ok(())
    }

    /// Nothing was run but the sftp server, and nothing of a name.
    fn only_the_server_was_run(&self) -> Result<()> {
        let commands = fs::read_to_string(self.lab.path("commands"))?;
        ensure!(!commands.is_empty(), "nothing was noted");
        for command in commands.lines() {
            ensure!(!command.contains("touch"), "a name in a command: {command}");
            ensure!(!command.contains(&self.path("")), "a path in a command: {command}");
        }
        let pwned: Vec<PathBuf> =
            ["", "tree", "there", "back"].map(|dir| self.lab.path(dir).join("pwned")).into();
        ensure!(!pwned.iter().any(|path| path.exists()), "a name was run");
        Ok(())
    }
}

#[test]
fn f4_lhscp_makes_no_command_of_a_path() -> Result<()> {
    if !Kind::OpenSsh.available() {
        return Ok(());
    }
    let watched = Watched::start()?;
    let far = |name: &str| format!("127.0.0.1:{}", watched.path(name));
    watched.run("lhscp", &["-rp", "tree", &far("there")])?;
    watched.run("lhscp", &["-r", "--verify", &far("there"), "back"])?;
    watched.run("lhscp", &["--verify", &far("there/x*"), "back"])?;
    watched.run("lhscp", &["-r", "--verify", &far("there"), &far("within")])?;
    let other = far("between").replace("127.0.0.1", "localhost");
    watched.run("lhscp", &["-r", "--verify", &far("there"), &other])?;
    for copy in ["there", "back", "within", "between"] {
        let content = fs::read(watched.lab.path(copy).join(NAME))?;
        ensure!(content == b"harmless", "{copy}");
    }
    watched.only_the_server_was_run()
}

#[test]
fn f4_lhsftp_makes_no_command_of_a_path() -> Result<()> {
    if !Kind::OpenSsh.available() {
        return Ok(());
    }
    let watched = Watched::start()?;
    let name = format!("\"there/{}\"", NAME.replace('"', "\\\""));
    let batch = format!(
        "cd {}\nput -Rp tree there\nls -l there/x*\nget -R there back\nget there/x* copy\n\
         rename {name} there/y\nrename there/y {name}\nchmod 600 there/x*\ncp {name} there/copy\n\
         ln -s {name} there/soft\nreget {name} copy\nrm there/soft\n",
        watched.path("")
    );
    fs::write(watched.lab.path("batch"), batch)?;
    watched.run("lhsftp", &["-b", "batch", "127.0.0.1"])?;
    ensure!(fs::read(watched.lab.path("back").join(NAME))? == b"harmless", "it did not come back");
    watched.only_the_server_was_run()
}
