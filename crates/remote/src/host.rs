//! Host: whom to connect to, and what earlier logins to it learnt.

use crate::connection::Connection;
use crate::{Error, login_limit};
use conf::Client;
use login::{CallOff, Keyring, Log};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Silence after which a server is asked whether it is there, and questions without an answer
/// after which it is not. A server answers while data flows, so a slow path is not silent.
const ALIVE: Duration = Duration::from_secs(15);
const ALIVE_COUNT: u32 = 4;

/// How long a host may take for each step of its start, up to the first word of SFTP, unless
/// ConnectTimeout says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same for a program, which may have to ask the user first, as ssh does: longer than sshd's
/// LoginGraceTime of 2 minutes, after which such a login has failed anyway.
const PATIENCE_WITH_PROGRAMS: Duration = Duration::from_secs(150);

/// A host whose files are wanted. Clones share what was learnt: a passphrase is asked once, the key
/// that was accepted is tried first.
#[derive(Clone)]
pub struct Host(Arc<Way>);

enum Way {
    Ssh(Box<Ssh>),
    Program { program: PathBuf, args: Vec<OsString> },
}

struct Ssh {
    conf: Client,
    log: Arc<Log>,
    ring: Keyring,
    /// Somebody has logged in: until then one at a time tries, as the user may be asked.
    known: Mutex<bool>,
}

impl Host {
    /// Over SSH, as configured; a server that says nothing for a minute is given up, unless
    /// ConnectTimeout and, after the login, ServerAliveInterval say otherwise: a copy is to go on
    /// elsewhere, not to hang.
    pub fn ssh(mut conf: Client, log: Arc<Log>) -> Self {
        // A jump asks the user in its own process: the time of that is not known here.
        let patience =
            if matches!(conf.jump(), Ok(Some(_))) { PATIENCE_WITH_PROGRAMS } else { PATIENCE };
        conf.connect_timeout.0.get_or_insert(patience);
        if conf.server_alive_interval.is_zero() {
            (conf.server_alive_interval, conf.server_alive_count_max) = (ALIVE, ALIVE_COUNT);
        }
        if conf.none_switch {
            log.warn(format_args!("no NONE cipher: only lhssh switches; files stay encrypted"));
        }
        let ssh = Ssh { conf, log, ring: Keyring::new(), known: Mutex::new(false) };
        Self(Arc::new(Way::Ssh(Box::new(ssh))))
    }

    /// Over a program that speaks SFTP on its standard input and output, started once per channel.
    pub fn program(program: impl Into<PathBuf>, args: Vec<OsString>) -> Self {
        Self(Arc::new(Way::Program { program: program.into(), args }))
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        match &*self.0 {
            Way::Ssh(ssh) => ssh.conf.host.clone(),
            Way::Program { program, .. } => program.display().to_string(),
        }
    }

    /// Whether commands can be run there at all.
    pub fn runs_commands(&self) -> bool {
        matches!(&*self.0, Way::Ssh(_))
    }

    /// How long it may take to say the first word of SFTP on a channel; `MAX` is without end.
    pub fn patience(&self) -> Duration {
        match &*self.0 {
            Way::Ssh(ssh) => ssh.conf.connect_limit().unwrap_or(Duration::MAX),
            Way::Program { .. } => PATIENCE_WITH_PROGRAMS,
        }
    }

    /// Connects and logs in. Of a process at most eight connections are on their way in at once.
    ///
    /// # Errors
    /// Those of a login.
    pub fn connect(&self) -> Result<Connection, Error> {
        self.connect_unless(&CallOff::default())
    }

    /// The same, but fails as soon as `off` is called.
    ///
    /// # Errors
    /// Those of a login.
    pub fn connect_unless(&self, off: &CallOff) -> Result<Connection, Error> {
        match &*self.0 {
            Way::Program { program, args } => {
                Ok(Connection::program(program.clone(), args.clone()))
            }
            Way::Ssh(ssh) => {
                let mut known = ssh.known.lock().unwrap_or_else(PoisonError::into_inner);
                if *known {
                    drop(known);
                    return ssh.connect(off);
                }
                let connection = ssh.connect(off)?;
                *known = true;
                Ok(connection)
            }
        }
    }
}

impl Ssh {
    fn connect(&self, off: &CallOff) -> Result<Connection, Error> {
        let place = login_limit::enter();
        let logged_in = login::log_in_again(&self.conf, &self.log, &self.ring, off)?;
        drop(place);
        Connection::start(logged_in, &self.conf, &self.log)
    }
}
