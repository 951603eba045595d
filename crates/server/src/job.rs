//! What a channel is to run: from the client's request and the key's options to a command.

use crate::environment::{self, Facts};
use crate::refusal::Refusal;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use wire::text::visible_within;

/// Runs the user's rc file, then what was asked for, in its place. `$1` is the shell, the rest
/// its arguments.
const WITH_RC: &str = r#""$1" -c "/bin/sh .ssh/rc" </dev/null; exec "$@""#;
/// The same with the file of the whole host.
const WITH_HOST_RC: &str = r#"/bin/sh /etc/ssh/sshrc </dev/null; exec "$@""#;
const HOST_RC: &str = "/etc/ssh/sshrc";

/// Most of a home's name that is shown: the line must fit into an empty pipe.
const MAX_HOME: usize = 1024;

/// The one subsystem that sshd runs in its own process.
const INTERNAL_SFTP: &str = "internal-sftp";

/// A request that starts something (RFC 4254 section 6.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Shell,
    Exec(Vec<u8>),
    Subsystem(String),
}

/// What is done about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// A program of the user's.
    Run(Script),
    /// `discard@longhaul`: everything is taken and dropped.
    Discard,
    /// `zeros@longhaul`: zero bytes without end.
    Zeros,
    /// `internal-sftp`: the SFTP server in this process.
    Sftp(Box<sftp::server::Options>),
    /// Nothing, and why.
    Refuse(Refusal),
}

/// Something for the user's shell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// For `-c`; a login shell without it.
    command: Option<OsString>,
    /// What the client asked for, where a forced command took its place.
    pub(crate) original: Option<OsString>,
    forced: bool,
    subsystem: bool,
}

impl Script {
    /// Whether the client may send it signals: to what it started itself, as in sshd.
    pub(crate) fn takes_signals(&self) -> bool {
        !self.forced && !self.subsystem
    }
}

/// Decides; an error is for the log.
pub(crate) fn decide(
    wanted: Wanted,
    forced: Option<&str>,
    config: &conf::Server,
) -> Result<Job, String> {
    let subsystem = matches!(wanted, Wanted::Subsystem(_));
    let asked = match wanted {
        Wanted::Shell => None,
        Wanted::Exec(command) => Some(OsString::from_vec(command)),
        Wanted::Subsystem(name) => {
            if let Some(job) = built_in(&name, config).filter(|_| forced.is_none()) {
                return Ok(job);
            }
            let command = config.subsystems.command(&name);
            Some(command.ok_or_else(|| format!("subsystem {name:?} not found"))?.into())
        }
    };
    let (command, original) = match forced {
        // Nothing stands for a shell, as in sshd: scripts ask whether the variable is set.
        Some(forced) => (Some(forced.into()), asked),
        None => (asked, None),
    };
    let configured = forced.is_some() || subsystem;
    // A client that names it as a command means a program of that name, as in sshd.
    if let Some(arguments) = command.as_deref().and_then(internal).filter(|_| configured) {
        return if subsystem {
            internal_sftp(arguments)
        } else {
            Ok(Job::Refuse(Refusal::sftp_only()))
        };
    }
    Ok(Job::Run(Script { command, original, forced: forced.is_some(), subsystem }))
}

fn built_in(name: &str, config: &conf::Server) -> Option<Job> {
    match name {
        "discard@longhaul" if config.test_subsystems => Some(Job::Discard),
        "zeros@longhaul" if config.test_subsystems => Some(Job::Zeros),
        _ => None,
    }
}

/// The words after `internal-sftp`, if a command is that.
fn internal(command: &OsStr) -> Option<impl Iterator<Item = OsString>> {
    let words = command.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut words = words.map(|word| OsStr::from_bytes(word).to_owned());
    (words.next()? == INTERNAL_SFTP).then_some(words)
}

/// `-h` and `-Q` mean nothing in a session.
fn internal_sftp(arguments: impl Iterator<Item = OsString>) -> Result<Job, String> {
    use sftp::server::{Action, Options};
    match Options::parse(arguments) {
        Ok(Action::Serve(options)) => Ok(Job::Sftp(options)),
        Ok(_) => Err(format!("{INTERNAL_SFTP}: not an option for a session")),
        Err(wrong) => Err(format!("{INTERNAL_SFTP}: {wrong}")),
    }
}

/// A command that can be started.
pub(crate) struct Ready {
    pub(crate) command: Command,
    /// What its standard error begins with.
    pub(crate) notice: Option<String>,
}

/// The command as it is started: three pipes, the user's shell, the user's home. As in sshd, a home
/// that cannot be entered is worth a line on standard error, and no reason not to run.
pub(crate) fn command(script: &Script, facts: &Facts<'_>) -> Ready {
    let mut command = shell(script, facts);
    command
        .env_clear()
        .envs(environment::build(facts))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let home = &facts.account.home;
    // What is in it can be looked at only by who may enter it.
    let notice = home.join(".").metadata().err().map(|error| no_home(home, &error));
    command.current_dir(if notice.is_none() { home } else { Path::new("/") });
    Ready { command, notice }
}

/// In sshd's words.
fn no_home(home: &Path, error: &io::Error) -> String {
    let why = wire::text::words(error);
    let home = visible_within(&home.to_string_lossy(), MAX_HOME);
    format!("Could not chdir to home directory {home}: {why}\n")
}

/// What runs first: the user's file or, in its place, the host's, which nothing keeps from running.
fn rc(script: &Script, facts: &Facts<'_>, of_host: &Path) -> Option<&'static str> {
    // sshd_config(5), ForceCommand: the user's file is ignored, or it would be a way around.
    let free = facts.config.force_command().is_none() && !script.subsystem;
    let may = facts.options.user_rc && facts.config.permit_user_rc && free;
    if may && facts.account.home.join(".ssh/rc").is_file() {
        return Some(WITH_RC);
    }
    of_host.is_file().then_some(WITH_HOST_RC)
}

fn shell(script: &Script, facts: &Facts<'_>) -> Command {
    let shell = &facts.account.shell;
    let name = shell.file_name().unwrap_or(shell.as_os_str());
    let rc = rc(script, facts, Path::new(HOST_RC));
    let mut command =
        Command::new(if rc.is_some() { OsStr::new("/bin/sh") } else { shell.as_os_str() });
    if let Some(rc) = rc {
        command.args(["-c", rc, "sh"]).arg(shell);
    }
    match (&script.command, rc) {
        (Some(text), None) => command.arg0(name).arg("-c").arg(text),
        (Some(text), Some(_)) => command.arg("-c").arg(text),
        (None, None) => {
            let mut login = OsString::from("-");
            login.push(name);
            command.arg0(login)
        }
        (None, Some(_)) => command.arg("-l"),
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::endpoint::Endpoints;
    use conf::Setting;
    use conf::server::ConfigFile;
    use keys::authorized_keys::Options;

    fn config() -> conf::Server {
        config_with("ForceCommand=none")
    }

    fn config_with(setting: &str) -> conf::Server {
        let given =
            ["TestSubsystems=yes", "Subsystem=sftp internal-sftp -l INFO", "Subsystem=x /x"];
        let more = Setting::option("Subsystem=x /x -y").unwrap();
        let mut given: Vec<_> = given.iter().take(2).map(|s| Setting::option(s).unwrap()).collect();
        given.extend([more, Setting::option(setting).unwrap()]);
        conf::server::load(&given, &ConfigFile::None, &crate::setup::supported()).unwrap().config
    }

    fn run(command: Option<&str>, original: Option<&str>, subsystem: bool) -> Result<Job, String> {
        let forced = command == Some("id");
        let (command, original) = (command.map(Into::into), original.map(Into::into));
        Ok(Job::Run(Script { command, original, forced, subsystem }))
    }

    #[test]
    fn a_forced_command_takes_the_place_of_whatever_is_asked_for() {
        let config = config();
        let decide = |wanted, forced| decide(wanted, forced, &config);
        let exec = || Wanted::Exec(b"ls".to_vec());
        let subsystem = |name: &str| Wanted::Subsystem(name.into());
        assert_eq!(decide(exec(), None), run(Some("ls"), None, false));
        assert_eq!(decide(exec(), Some("id")), run(Some("id"), Some("ls"), false));
        assert_eq!(decide(Wanted::Shell, None), run(None, None, false));
        assert_eq!(decide(Wanted::Shell, Some("id")), run(Some("id"), None, false));
        assert_eq!(decide(subsystem("x"), None), run(Some("/x -y"), None, true));
        assert_eq!(decide(subsystem("x"), Some("id")), run(Some("id"), Some("/x -y"), true));
        assert_eq!(decide(subsystem("zeros@longhaul"), None), Ok(Job::Zeros));
        assert_eq!(decide(subsystem("discard@longhaul"), None), Ok(Job::Discard));
        assert!(decide(subsystem("zeros@longhaul"), Some("id")).is_err());
        assert!(decide(subsystem("y"), None).is_err());
        assert!(matches!(decide(subsystem("sftp"), None), Ok(Job::Sftp(_))));
        assert_eq!(
            decide(subsystem("sftp"), Some("id")),
            run(Some("id"), Some("internal-sftp -l INFO"), true)
        );
    }

    #[test]
    fn internal_sftp_is_what_the_configuration_or_the_key_says_and_no_client() {
        let config = config();
        let decide = |wanted, forced| decide(wanted, forced, &config);
        let exec = |command: &str| Wanted::Exec(command.into());
        let subsystem = || Wanted::Subsystem("sftp".into());
        let forced = Some("internal-sftp -R");
        let Ok(Job::Sftp(plain)) = decide(subsystem(), None) else { panic!("no sftp") };
        assert_eq!(plain.level, sftp::server::Level::Info);
        let Ok(Job::Sftp(read_only)) = decide(subsystem(), forced) else { panic!("no sftp") };
        assert_ne!(plain, read_only);
        let refused = || Ok(Job::Refuse(Refusal::sftp_only()));
        assert_eq!(decide(exec("ls"), forced), refused());
        assert_eq!(decide(Wanted::Shell, forced), refused());
        assert_eq!(decide(exec("internal-sftp"), None), run(Some("internal-sftp"), None, false));
        for wrong in ["internal-sftp -x", "internal-sftp -h", "internal-sftp -l LOUD"] {
            assert!(decide(subsystem(), Some(wrong)).is_err(), "{wrong}");
        }
    }

    fn account(home: &Path) -> Account {
        Account { name: "u".into(), uid: 7, home: home.to_owned(), shell: "/bin/sh".into() }
    }

    fn facts<'a>(
        account: &'a Account,
        config: &'a conf::Server,
        options: &'a Options,
    ) -> Facts<'a> {
        let (ends, software) = (Endpoints::default(), "");
        Facts { account, config, ends, software, options, client: &[], original: None }
    }

    /// `~/.ssh/rc` runs before the command, whose text no other shell reads, and not for
    /// subsystems or keys that forbid it.
    #[test]
    fn the_users_rc_file_runs_first_unless_forbidden() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(home.path().join(".ssh/rc"), "echo rc $USER $0; cat\n").unwrap();
        let account = account(home.path());
        let output = |user_rc, permitted, subsystem, more: &str| {
            let options = Options { user_rc, ..Options::default() };
            let mut config = config_with(more);
            config.permit_user_rc = permitted;
            let facts = facts(&account, &config, &options);
            let text = r#"echo "a  $HOME" '"b"'; cat"#;
            let script =
                Script { command: Some(text.into()), original: None, forced: false, subsystem };
            let Ready { mut command, notice } = command(&script, &facts);
            assert_eq!(notice, None);
            let output = command.stdin(Stdio::null()).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        const NONE: &str = "ForceCommand=none";
        let plain = format!("a  {} \"b\"\n", home.path().display());
        assert_eq!(output(true, true, false, NONE), format!("rc u .ssh/rc\n{plain}"));
        assert_eq!(output(false, true, false, NONE), plain);
        // Effect of PermitUserRC (D6).
        assert_eq!(output(true, false, false, NONE), plain);
        assert_eq!(output(true, true, true, NONE), plain);
        assert_eq!(output(true, true, false, "ForceCommand=id"), plain, "no way around it");
    }

    /// What forbids the user's file does not forbid the host's, for subsystems neither.
    #[test]
    fn the_hosts_rc_file_runs_in_place_of_the_users() {
        let home = tempfile::tempdir().unwrap();
        let account = account(home.path());
        let (config, options) = (config(), Options { user_rc: false, ..Options::default() });
        let facts = facts(&account, &config, &options);
        let file = tempfile::NamedTempFile::new().unwrap();
        for subsystem in [false, true] {
            let command = Some("id".into());
            let script = Script { command, original: None, forced: false, subsystem };
            assert_eq!(rc(&script, &facts, file.path()), Some(WITH_HOST_RC));
            assert_eq!(rc(&script, &facts, Path::new("/no/such/file")), None);
        }
    }

    #[test]
    fn a_command_whose_home_cannot_be_entered_runs_in_the_root_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (missing, file) = (dir.path().join("missing"), dir.path().join("file"));
        std::fs::write(&file, "").unwrap();
        let (config, options) = (config(), Options::default());
        for (home, why) in [(missing, "No such file or directory"), (file, "Not a directory")] {
            let account = account(&home);
            let text = Some("pwd".into());
            let script = Script { command: text, original: None, forced: false, subsystem: false };
            let Ready { mut command, notice } =
                command(&script, &facts(&account, &config, &options));
            let text = format!("Could not chdir to home directory {}: {why}\n", home.display());
            assert_eq!(notice, Some(text));
            assert_eq!(command.stdin(Stdio::null()).output().unwrap().stdout, b"/\n");
        }
    }
}
