//! NoneSwitch: this command's data in clear text, for who asks for it on the command line
//! (docs/none.md). What speaks against it is said in one line, and the session stays encrypted.

use conf::{Client, RequestTty};
use engine::Port;
use login::Log;
use proto::Event;

/// What the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The NONE MAC, too.
    mac: bool,
}

/// What the session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Command,
    Shell,
    Explain,
    Forward,
}

/// The wish, if there is one that may be granted; a refusal is told.
pub(crate) fn wish(conf: &Client, purpose: Purpose, log: &Log) -> Option<Wish> {
    match judge(conf, purpose)? {
        Ok(wish) => Some(wish),
        Err(why) => {
            refused(log, why);
            None
        }
    }
}

fn judge(conf: &Client, purpose: Purpose) -> Option<Result<Wish, &'static str>> {
    let wish = Wish { mac: conf.none_mac_enabled };
    conf.none_switch.then_some(match () {
        () if cfg!(not(feature = "none")) => Err("this lhssh was built without it"),
        () if !conf.none_enabled => Err("NoneSwitch needs NoneEnabled=yes on the command line"),
        () if purpose == Purpose::Forward => Err("it is for commands, not for -W"),
        () if conf.request_tty == RequestTty::No => Err("-T disables it"),
        () if purpose == Purpose::Shell => Err("it is for commands, not for shells"),
        () if purpose == Purpose::Explain => Err("it is for commands, not for --explain"),
        () => Ok(wish),
    })
}

fn refused(log: &Log, why: impl std::fmt::Display) {
    log.warn(format_args!("lhssh: no NONE cipher: {why}; the session stays encrypted"));
}

/// Asks for the switch; to be called when the channel's requests have left.
#[cfg(feature = "none")]
pub(crate) fn ask(wish: Wish, port: &mut Port<'_>, log: &Log) -> Result<(), engine::Error> {
    if let Err(why) = port.call(|connection, out| connection.switch_to_none(wish.mac, out))? {
        refused(log, why);
    }
    Ok(())
}

/// There is no wish in a build without it.
#[cfg(not(feature = "none"))]
pub(crate) fn ask(_: Wish, _: &mut Port<'_>, _: &Log) -> Result<(), engine::Error> {
    Ok(())
}

/// Tells how it went.
pub(crate) fn tell(event: &Event, wish: Option<Wish>, log: &Log) {
    match event {
        Event::Uncovered { cover } => {
            let mac = match cover.is_authenticated() {
                true => "unencrypted",
                false => "unencrypted and unauthenticated",
            };
            let kept = wish.is_some_and(|wish| wish.mac) && cover.is_authenticated();
            let kept = if kept { "; the server keeps the MAC" } else { "" };
            log.warn(format_args!(
                "lhssh: WARNING: NONE cipher: this session's data travels {mac}, both ways{kept}"
            ));
        }
        Event::StillSealed { why } => refused(log, why),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::client::Files;
    use conf::{Local, Setting};

    fn judged(given: &[&str], file: &str, purpose: Purpose) -> Option<Result<Wish, &'static str>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        std::fs::write(&path, file).unwrap();
        let given: Vec<_> = given.iter().map(|text| Setting::option(text).unwrap()).collect();
        let local = Local { home: dir.path().to_owned(), user: "me".into(), uid: 0 };
        let supported = login::supported();
        let loaded =
            conf::client::load("host", &given, &Files::Only(path), &supported, &local).unwrap();
        judge(&loaded.config, purpose)
    }

    /// N1, the client's half: both options, and from the command line. Effect of NoneEnabled,
    /// NoneSwitch and NoneMacEnabled together with `tests/clear.rs`.
    #[test]
    #[cfg(feature = "none")]
    fn n1_only_the_command_line_asks_for_the_switch() {
        let command = |given: &[&str], file| judged(given, file, Purpose::Command);
        let (enabled, switch, mac) = ("NoneEnabled=yes", "NoneSwitch=yes", "NoneMacEnabled=yes");
        let all = "NoneEnabled yes\nNoneSwitch yes\nNoneMacEnabled yes\n";
        assert_eq!(command(&[], all), None);
        assert_eq!(command(&[enabled], ""), None);
        assert!(command(&[switch], all).unwrap().is_err(), "NoneEnabled of a file is none");
        assert_eq!(command(&[enabled, switch], all), Some(Ok(Wish { mac: false })));
        assert_eq!(command(&[enabled, switch, mac], ""), Some(Ok(Wish { mac: true })));
    }

    #[test]
    #[cfg(feature = "none")]
    fn n3_neither_a_shell_nor_dash_t_switches() {
        let both = ["NoneEnabled=yes", "NoneSwitch=yes"];
        assert!(judged(&both, "", Purpose::Shell).unwrap().is_err());
        assert!(judged(&both, "", Purpose::Explain).unwrap().is_err());
        assert!(judged(&both, "", Purpose::Forward).unwrap().is_err());
        let dash_t = [&both[..], &["RequestTTY=no"]].concat();
        assert!(judged(&dash_t, "", Purpose::Command).unwrap().is_err());
    }
}
