//! The figures of a connection for its user: at the end with `-v`, and whenever SIGUSR1 asks.

use engine::figures::{Record, limits};
use engine::{Figures, Session};
use login::{Log, Proxy};
use proto::Role;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::Scope;
use std::time::Instant;

/// The other end's figures come by this global request (PROTOCOL.md).
pub(crate) const TCP_INFO: &str = "tcp-info@longhaul";

/// The other end's answer to [`ask`]: its figures, if it gave any that can be read.
pub(crate) type Answer = Option<Figures>;

/// Where the other end's figures go that come in as replies.
#[derive(Default)]
pub(crate) struct Replies(Option<Sender<Answer>>);

impl Replies {
    /// To `sender`.
    pub(crate) fn to(sender: Sender<Answer>) -> Self {
        Self(Some(sender))
    }

    /// A reply to a global request, for whoever asked for figures.
    pub(crate) fn hear(&self, name: &str, ok: bool, data: &[u8]) {
        if let (TCP_INFO, Some(sender)) = (name, &self.0) {
            let figures = ok.then(|| engine::figures::columns::read(data).ok()).flatten();
            // Nobody may be waiting any more.
            let _ = sender.send(figures);
        }
    }
}

/// Asks the other end for its figures; only for a peer that is longhaul.
pub(crate) fn ask(session: &Session) -> Result<(), engine::Error> {
    session.call(|connection, out| connection.global_request(TCP_INFO, &[], true, out)).map(drop)
}

/// One line of all figures, and one of what limited if that can be told.
pub(crate) fn lines(session: &Session, began: Instant) -> Vec<String> {
    let figures = session.figures();
    let mut record = Record::default();
    session.transport(|transport| {
        if let Some(peer) = transport.peer() {
            record.text("server", peer.ident().software());
        }
        if let Some(negotiated) = transport.negotiated() {
            record.algorithms(negotiated, Role::Client);
        }
    });
    record.figures(&figures, began.elapsed());
    let limit = limits::find(&figures, None).map(|verdict| format!("limited by: {verdict}"));
    [format!("transfer: {}", record.line())].into_iter().chain(limit).collect()
}

/// A thread that listens to signals; it ends when this is dropped, so that a scope that unwinds does
/// not wait for it.
struct Listening(Handle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What listens while a session runs. Afterwards signals that end the program do so again.
pub(crate) struct Watch {
    _questions: Listening,
    _endings: Listening,
    over: Arc<AtomicBool>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// SIGUSR1 does not end the program: before the login there is nothing to tell.
pub(crate) fn survive_questions() -> io::Result<()> {
    signal_hook::flag::register(SIGUSR1, Arc::default()).map(drop)
}

/// Tells the figures whenever a signal asks. Signals that end the program end its proxy, too: on a
/// thread of their own, as telling may wait for whoever reads what we say.
pub(crate) fn on_signal<'scope>(
    scope: &'scope Scope<'scope, '_>,
    session: &'scope Session,
    proxy: Option<&'scope Proxy>,
    log: &'scope Log,
    began: Instant,
) -> io::Result<Watch> {
    let questions = listen(scope, &[SIGUSR1], move |_| {
        lines(session, began).iter().for_each(|line| log.info(format_args!("lhssh: {line}")));
    })?;
    let signals = endings();
    let endings = listen(scope, &signals, move |signal| {
        proxy.into_iter().for_each(Proxy::hang_up);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    })?;
    let watch = Watch { _questions: questions, _endings: endings, over: Arc::default() };
    for signal in signals {
        // The handler stays when nobody listens any more.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&watch.over))?;
    }
    Ok(watch)
}

/// Those that end us, unless whoever started us wants them ignored (nohup).
fn endings() -> Vec<i32> {
    [SIGHUP, SIGTERM].into_iter().filter(|signal| !sys::is_ignored(*signal)).collect()
}

fn listen<'scope>(
    scope: &'scope Scope<'scope, '_>,
    signals: &[i32],
    act: impl Fn(i32) + Send + 'scope,
) -> io::Result<Listening> {
    let mut signals = Signals::new(signals)?;
    let listening = Listening(signals.handle());
    let listen = move || signals.forever().for_each(act);
    std::thread::Builder::new().name("signals".to_owned()).spawn_scoped(scope, listen)?;
    Ok(listening)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_panic_beside_the_watch_ends_it() {
        let (told, heard) = channel();
        std::thread::spawn(move || {
            let unwound = std::panic::catch_unwind(|| {
                std::thread::scope(|scope| {
                    let _listening = listen(scope, &[SIGUSR1], |_| ()).unwrap();
                    panic!("beside the watch");
                })
            });
            told.send(unwound.is_err())
        });
        assert_eq!(heard.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
