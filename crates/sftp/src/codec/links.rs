//! The order of SYMLINK's arguments. The draft (section 6.10) has the link first and what it says
//! second; OpenSSH's server and client have it the other way round (its PROTOCOL, section 4.1), and
//! so has nearly everybody. Some know only OpenSSH by its identification for this, and keep to the
//! draft with all others: with us.

use super::Request;
use std::borrow::Cow;

/// Clients that send the draft's order to any server that is not OpenSSH (paramiko counts as it with
/// asyncssh): by how their identification begins.
const CLIENTS: &[&str] = &["AsyncSSH_", "libssh_", "WinSCP_"];

/// Servers that expect it of any client that is not OpenSSH or paramiko.
const SERVERS: &[&str] = &["AsyncSSH_"];

/// Which argument of SYMLINK comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkOrder {
    /// What the link says: OpenSSH's.
    #[default]
    TargetFirst,
    /// Where the link is: the draft's.
    LinkFirst,
}

impl LinkOrder {
    /// That of a client to us, by the software version of its identification.
    pub fn of_client(software: &str) -> Self {
        Self::among(CLIENTS, software)
    }

    /// That which a server expects of us, by the software version of its identification.
    pub fn of_server(software: &str) -> Self {
        Self::among(SERVERS, software)
    }

    fn among(known: &[&str], software: &str) -> Self {
        match known.iter().any(|name| software.starts_with(name)) {
            true => Self::LinkFirst,
            false => Self::TargetFirst,
        }
    }

    /// A request such that, encoded, it is in this order; the same again undoes it. Others than
    /// SYMLINK stay as they are.
    pub fn of_request(self, request: &Request) -> Cow<'_, Request> {
        match (self, request) {
            (Self::LinkFirst, Request::Symlink { target, link }) => {
                Cow::Owned(Request::Symlink { target: link.clone(), link: target.clone() })
            }
            _ => Cow::Borrowed(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkOrder::{LinkFirst, TargetFirst};

    #[test]
    fn only_those_who_keep_to_the_draft_get_its_order() {
        for (software, client, server) in [
            ("AsyncSSH_2.24.1", LinkFirst, LinkFirst),
            ("libssh_0.10.6", LinkFirst, TargetFirst),
            ("WinSCP_release_6.3.5", LinkFirst, TargetFirst),
            ("libssh2_1.10.0", TargetFirst, TargetFirst),
            ("OpenSSH_9.2p1", TargetFirst, TargetFirst),
            ("paramiko_5.1.0", TargetFirst, TargetFirst),
            ("Go", TargetFirst, TargetFirst),
            ("longhaul_0.1.0", TargetFirst, TargetFirst),
            ("", TargetFirst, TargetFirst),
        ] {
            assert_eq!(LinkOrder::of_client(software), client, "{software}");
            assert_eq!(LinkOrder::of_server(software), server, "{software}");
        }
    }
}
