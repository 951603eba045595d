//! One request to its reply, on whichever thread runs it.

use super::change::shown;
use super::fault::Fault;
use super::log::Level;
use super::permit::Operation;
use super::queue::Shared;
use crate::codec::{Extended, Reply, Request, Status};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::Mode;

impl Shared {
    /// What every thread that runs requests does first: a umask of the session's own must not
    /// become that of the whole process. Where that fails the session ends, rather than make files
    /// with more permissions than allowed.
    pub(super) fn enter_thread(&self) {
        self.enter_by(|| unshare(CloneFlags::CLONE_FS));
    }

    fn enter_by(&self, unshare: impl FnOnce() -> nix::Result<()>) {
        let options = &self.setup.options;
        let Some(mask) = options.umask.filter(|_| !options.umask_is_set) else { return };
        match unshare() {
            Ok(()) => {
                rustix::process::umask(Mode::from_raw_mode(mask));
            }
            Err(why) => {
                self.log(Level::Error, format_args!("cannot set a umask: {why}"));
                self.fail();
            }
        }
    }

    /// The answer to a request.
    pub(super) fn answer(&self, id: u32, request: &Request) -> Reply {
        let name = Operation::of(request).map_or("unknown", Operation::name);
        self.log(Level::Debug, format_args!("request {id}: {name}"));
        let reply = self.run(request).unwrap_or_else(|fault| fault.reply());
        self.log_status(&reply);
        reply
    }

    fn run(&self, request: &Request) -> Result<Reply, Fault> {
        let Some(operation) = Operation::of(request) else {
            return Err(Status::Unsupported.into());
        };
        self.permit(operation)?;
        match &*self.setup.links.of_request(request) {
            Request::Open { path, flags, attrs } => self.open(path, *flags, attrs),
            Request::Opendir(path) => self.opendir(path),
            Request::Readdir(handle) => self.readdir(handle),
            Request::Lstat(path) => self.stat(path, false),
            Request::Stat(path) => self.stat(path, true),
            Request::Fstat(handle) => self.fstat(handle),
            Request::Realpath(path) => self.realpath(path),
            Request::Readlink(path) => self.readlink(path),
            Request::Close(handle) => done(self.close_handle(handle)),
            Request::Setstat(path, attrs) => done(self.setstat(path, attrs, true)),
            Request::Fsetstat(handle, attrs) => done(self.fsetstat(handle, attrs)),
            Request::Remove(path) => done(self.remove(path)),
            Request::Mkdir(path, attrs) => done(self.mkdir(path, attrs)),
            Request::Rmdir(path) => done(self.rmdir(path)),
            Request::Rename { from, to } => done(self.rename(from, to)),
            Request::Symlink { target, link } => done(self.symlink(target, link)),
            Request::Extended(extended) => self.run_extended(extended),
            // Where their data lies: input and output deal with them.
            Request::Read { .. } | Request::Write { .. } => Err(Status::Unsupported.into()),
        }
    }

    fn run_extended(&self, request: &Extended) -> Result<Reply, Fault> {
        match request {
            Extended::PosixRename { from, to } => done(self.posix_rename(from, to)),
            Extended::Hardlink { from, to } => done(self.hardlink(from, to)),
            Extended::Fsync(handle) => done(self.fsync(handle)),
            Extended::Lsetstat(path, attrs) => done(self.setstat(path, attrs, false)),
            Extended::Statvfs(path) => self.statvfs(path),
            Extended::Fstatvfs(handle) => self.fstatvfs(handle),
            Extended::Limits => Ok(self.limits()),
            Extended::ExpandPath(path) => self.expand_path(path),
            Extended::HomeDirectory(user) => self.home_directory(user),
            Extended::UsersGroupsById { users, groups } => self.users_groups(users, groups),
            Extended::CopyData { from, from_offset, len, to, to_offset } => {
                done(self.copy_data((from, *from_offset), *len, (to, *to_offset)))
            }
            Extended::BlockHashes { handle, offset, len, block } => {
                self.block_hashes(handle, *offset, *len, *block)
            }
            Extended::PutFiles { flags, files } => Ok(self.put_files(*flags, files)),
            Extended::GetFiles(files) => Ok(self.get_files(files)),
            Extended::SparseMap { handle, offset } => self.sparse_map(handle, *offset),
            Extended::GetXattrs(handle) => self.get_xattrs(handle),
            Extended::SetXattrs(handle, pairs) => done(self.set_xattrs(handle, pairs)),
            Extended::Unknown { .. } => Err(Status::Unsupported.into()),
        }
    }

    /// Whether an operation is allowed at all.
    pub(super) fn permit(&self, operation: Operation) -> Result<(), Fault> {
        if self.setup.options.permit.operation(operation) {
            return Ok(());
        }
        self.log(Level::Verbose, format_args!("Refusing {} request", operation.name()));
        Err(Status::PermissionDenied.into())
    }

    /// Failures are told by the way, other statuses to those who want to know all.
    pub(super) fn log_status(&self, reply: &Reply) {
        let Reply::Status { code, text } = reply else { return };
        let level =
            if matches!(code, Status::Ok | Status::Eof) { Level::Debug } else { Level::Info };
        self.log(level, format_args!("sent status {}: {}", code.text(), shown(text)));
    }

    pub(super) fn log_start(&self) {
        let (user, peer) = (shown(&self.setup.account.name), &self.setup.peer);
        self.log(Level::Info, format_args!("session opened for local user {user} from [{peer}]"));
        for name in &self.setup.options.strangers {
            self.log(Level::Error, format_args!("there is no request \"{name}\""));
        }
    }

    /// What was still open is closed with the session.
    pub(super) fn log_end(&self) {
        for open in self.handles.drain() {
            self.log_close("forced ", &open);
        }
        let (user, peer) = (shown(&self.setup.account.name), &self.setup.peer);
        self.log(Level::Info, format_args!("session closed for local user {user} from [{peer}]"));
    }
}

fn done(result: Result<(), Fault>) -> Result<Reply, Fault> {
    result.map(|()| Reply::status(Status::Ok))
}

#[cfg(test)]
mod tests {
    use super::super::{Account, Action, Log, Options, Setup};
    use super::*;
    use crate::codec::LinkOrder;
    use std::sync::Arc;

    struct Nowhere;

    impl Log for Nowhere {
        fn line(&self, _: Level, _: std::fmt::Arguments<'_>) {}
    }

    fn shared(words: &[&str]) -> Shared {
        let words = words.iter().map(std::ffi::OsString::from);
        let Ok(Action::Serve(options)) = Options::parse(words) else { panic!("options") };
        let setup = Setup {
            options: *options,
            account: Account { name: b"somebody".to_vec(), home: "/".into() },
            start: "/".into(),
            peer: String::new(),
            links: LinkOrder::default(),
            log: Arc::new(Nowhere),
        };
        Shared::new(setup).unwrap()
    }

    #[test]
    fn f3_a_session_without_the_umask_it_must_have_serves_nothing() {
        let refused = || Err(nix::errno::Errno::EPERM);
        let session = shared(&["-u", "077"]);
        session.enter_by(refused);
        assert!(session.is_closed() && session.exit_status() != 0);
        let session = shared(&[]);
        session.enter_by(refused);
        assert!(!session.is_closed());
    }
}
