//! From the command line to [`copy::Options`]: configuration of every host read once, places on the
//! same host brought together.

use crate::args::{Args, Connect};
use crate::uri::{Address, Operand};
use anyhow::{Context, Error, Result};
use conf::{Level, Setting};
use copy::options::{Host, Options, Place, Remote, Way};
use std::ffi::OsString;
use std::sync::Arc;

/// Keywords that make sense for a login and none for a copy; scp passes them to ssh as well.
const ALWAYS: [(&str, &str); 5] = [
    ("PermitLocalCommand", "no"),
    ("ClearAllForwardings", "yes"),
    ("RemoteCommand", "none"),
    ("RequestTTY", "no"),
    ("ForwardAgent", "no"),
];

/// What is to be done, with the warnings that are to be told before.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) warnings: Vec<String>,
}

/// Resolves everything; touches no network.
pub(crate) fn plan(args: Args) -> Result<Plan> {
    let Args { sources, target, connect, what, .. } = args;
    let mut hosts = Hosts { connect, known: Vec::new(), warnings: Vec::new() };
    let sources = sources.into_iter().map(|source| hosts.place(source)).collect::<Result<_>>()?;
    let target = hosts.place(target)?;
    let options = Options {
        sources,
        target,
        recursive: what.recursive,
        preserve: what.preserve,
        lanes: what.lanes,
        verify: what.verify,
        inplace: what.inplace,
        fsync: what.fsync,
        delay_updates: what.delay_updates,
        dry_run: what.dry_run,
        bwlimit: what.bwlimit,
        filter: what.filter,
        list: what.list,
        shard: what.shard,
        test: what.test.map(|test| test.amount),
    };
    Ok(Plan { options, warnings: hosts.warnings })
}

/// The hosts of one command line.
struct Hosts {
    connect: Connect,
    known: Vec<(Address, Arc<Host>)>,
    warnings: Vec<String>,
}

impl Hosts {
    fn place(&mut self, operand: Operand) -> Result<Place> {
        match operand {
            Operand::Local(path) => Ok(Place::Local(path)),
            Operand::Remote { address, path } => {
                Ok(Place::Remote(Remote { host: self.host(address)?, path }))
            }
        }
    }

    fn host(&mut self, address: Address) -> Result<Arc<Host>> {
        if let Some((_, host)) = self.known.iter().find(|(known, _)| *known == address) {
            return Ok(Arc::clone(host));
        }
        // `-D` counts before `-S`, as in scp.
        let way = match (&self.connect.server, &self.connect.program) {
            (Some(server), _) => Way::Program { program: server.clone(), args: Vec::new() },
            (None, Some(ssh)) => {
                Way::Program { program: ssh.clone(), args: ssh_args(&self.connect, &address) }
            }
            (None, None) => Way::Ssh(Box::new(self.configuration(&address)?)),
        };
        let host = Arc::new(Host { name: address.name(), way });
        self.known.push((address, Arc::clone(&host)));
        Ok(host)
    }

    fn configuration(&mut self, address: &Address) -> Result<conf::Client> {
        let always = ALWAYS.map(|(keyword, value)| Setting::given(keyword, value));
        let given = own_settings(address).chain(self.connect.settings.iter().cloned());
        let settings: Vec<_> = always.into_iter().chain(given).collect();
        let files = &self.connect.files;
        let local = login::local_user().context("user database")?;
        let loaded =
            conf::client::load(&address.host, &settings, files, &login::supported(), &local)?;
        for notice in loaded.notices {
            if notice.level == Level::Warning && !self.warnings.contains(&notice.text) {
                self.warnings.push(notice.text);
            }
        }
        Ok(loaded.config)
    }
}

/// The operand's user and port count before all others.
fn own_settings(address: &Address) -> impl Iterator<Item = Setting> {
    let user = address.user.as_ref().map(|user| Setting::given("User", user));
    let port = address.port.map(|port| Setting::given("Port", &port.to_string()));
    user.into_iter().chain(port)
}

/// Arguments for the program of `-S`, as scp gives them.
fn ssh_args(connect: &Connect, address: &Address) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-x".into()];
    let option = |keyword: &str, value: &str| OsString::from(format!("-o{keyword}={value}"));
    args.extend(ALWAYS.map(|(keyword, value)| option(keyword, value)));
    if let Some(config) = &connect.config {
        args.extend(["-F".into(), config.clone().into_os_string()]);
    }
    let settings = own_settings(address).chain(connect.settings.iter().cloned());
    args.extend(settings.map(|setting| option(&setting.keyword, &setting.rest)));
    args.extend(["-s", "--", &address.host, "sftp"].map(OsString::from));
    args
}

/// One line on what the user can do about an error, where there is something.
pub(crate) fn hint(error: &Error) -> Option<String> {
    error.downcast_ref::<conf::Error>().and_then(conf::Error::hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Invocation, parse};

    fn planned(line: &str) -> Result<Plan> {
        let args = parse(line.split_whitespace().map(OsString::from)).map_err(Error::msg)?;
        let Invocation::Copy(args) = args else { panic!("{line}") };
        plan(*args)
    }

    fn ssh(place: &Place) -> &conf::Client {
        match &place.host().unwrap().way {
            Way::Ssh(conf) => conf,
            Way::Program { .. } => panic!("a program"),
        }
    }

    #[test]
    fn places_on_the_same_host_share_it() {
        let plan = planned("-F none h:a h:b me@h:c scp://h:7/d k:").unwrap();
        let hosts: Vec<_> =
            plan.options.sources.iter().map(|place| place.host().unwrap()).collect();
        assert!(Arc::ptr_eq(hosts[0], hosts[1]));
        assert!(!Arc::ptr_eq(hosts[0], hosts[2]) && !Arc::ptr_eq(hosts[0], hosts[3]));
        assert_eq!(hosts[2].name, "me@h");
    }

    #[test]
    fn the_operands_user_and_port_count_before_the_options() {
        let plan = planned("-F none -P 1 -o User=other scp://me@h:7/d .").unwrap();
        let conf = ssh(&plan.options.sources[0]);
        assert_eq!((conf.user.as_str(), conf.port), ("me", 7));
        let plan = planned("-F none -P 1 -o User=other h:d .").unwrap();
        let conf = ssh(&plan.options.sources[0]);
        assert_eq!((conf.user.as_str(), conf.port), ("other", 1));
    }

    #[test]
    fn compression_is_wanted_from_every_host() {
        let plan = planned("-C -F none a:x b:y c:").unwrap();
        assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
        assert!(plan.options.sources.iter().all(|source| ssh(source).compression));
    }

    #[test]
    fn what_has_no_effect_is_warned_of_once() {
        let plan = planned("-o ForwardX11=yes -F none a:x b:y c:").unwrap();
        assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
        assert!(plan.warnings[0].contains("ForwardX11"), "{:?}", plan.warnings);
    }

    #[test]
    fn what_is_not_there_yet_is_refused_with_a_hint() {
        let error = planned("-F none -o Tunnel=yes h:x .").unwrap_err();
        assert!(error.to_string().contains("Tunnel is not supported yet"), "{error}");
        assert!(hint(&error).is_some());
    }

    #[test]
    fn every_host_is_reached_through_the_hosts_of_dash_j() {
        let plan = planned("-F none -J a,me@gate:7 h:x k:y .").unwrap();
        for source in &plan.options.sources {
            let jump = ssh(source).jump().unwrap().unwrap();
            let args: Vec<_> = jump.args.iter().map(|arg| arg.to_str().unwrap()).collect();
            let host = &source.host().unwrap().name;
            let want = format!("-l me -p 7 -J a -F none -W [{host}]:22 -- gate");
            assert_eq!(args.join(" "), want);
        }
    }

    #[test]
    fn a_program_in_place_of_ssh_gets_scps_arguments() {
        let plan = planned("-S myssh -F conf -P 7 -i key -oCiphers=x me@h:a .").unwrap();
        let Way::Program { program, args } = &plan.options.sources[0].host().unwrap().way else {
            panic!()
        };
        let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(program, std::path::Path::new("myssh"));
        assert_eq!(
            args.join(" "),
            "-x -oPermitLocalCommand=no -oClearAllForwardings=yes -oRemoteCommand=none \
             -oRequestTTY=no -oForwardAgent=no -F conf -oUser=me -oPort=7 -oIdentityFile=key \
             -oCiphers=x -s -- h sftp"
        );
        for line in ["-D /usr/lib/sftp-server h:a .", "-S myssh -D /usr/lib/sftp-server h:a ."] {
            let plan = planned(line).unwrap();
            let Way::Program { program, args } = &plan.options.sources[0].host().unwrap().way
            else {
                panic!()
            };
            assert_eq!(program, std::path::Path::new("/usr/lib/sftp-server"));
            assert!(args.is_empty());
        }
    }
}
