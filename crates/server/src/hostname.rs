//! The client's name, for `from=` (UseDNS). Looked up beside the key exchange, on a thread of its
//! own: a resolver that does not answer delays only those logins that need the name, and not for
//! long.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a name may take: both tries of a resolver with its defaults (resolv.conf(5)).
const PATIENCE: Duration = Duration::from_secs(10);

/// A name that is being looked up.
pub(crate) struct HostName {
    answer: Receiver<Option<String>>,
    deadline: Instant,
    name: Option<String>,
}

impl HostName {
    /// Asks for the name of an address, until the deadline of the login at most.
    pub(crate) fn of(ip: IpAddr, deadline: Option<Instant>) -> Self {
        let patience = Instant::now() + PATIENCE;
        let deadline = deadline.map_or(patience, |deadline| deadline.min(patience));
        Self::by(move || sys::verified_host_name(ip), deadline)
    }

    /// Where no thread can be started, there is no name.
    fn by(ask: impl FnOnce() -> Option<String> + Send + 'static, deadline: Instant) -> Self {
        let (tell, answer) = channel();
        let thread = std::thread::Builder::new().name("hostname".to_owned());
        let _ = thread.spawn(move || tell.send(ask()));
        Self { answer, deadline, name: None }
    }

    /// The name; `None` if there is none, or if none came in time.
    pub(crate) fn get(&mut self) -> Option<&str> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // The second time there is nobody to wait for: the thread has said its one word.
        if let Ok(name) = self.answer.recv_timeout(left) {
            self.name = name;
        }
        self.name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_resolver_that_does_not_answer_is_waited_for_once_and_not_for_long() {
        let (_never, wait) = channel::<Option<String>>();
        let mut name = HostName::by(move || wait.recv().ok()?, soon(50));
        let began = Instant::now();
        assert_eq!(name.get(), None);
        assert_eq!(name.get(), None);
        assert!(began.elapsed() < PATIENCE / 2);
    }

    #[test]
    fn a_name_that_comes_in_time_is_known_from_then_on() {
        let late = || {
            std::thread::sleep(Duration::from_millis(20));
            Some("name".to_owned())
        };
        let mut name = HostName::by(late, soon(20_000));
        assert_eq!(name.get(), Some("name"));
        assert_eq!(name.get(), Some("name"));
    }
}
