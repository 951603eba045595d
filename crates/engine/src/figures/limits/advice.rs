//! What would lift a limit: the option, the sysctl and the numbers, in sentences.

use super::{Bytes, Cause, End, Rate, Verdict};
use std::time::Duration;

/// What this host lets sockets have, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// `net.ipv4.tcp_rmem`: least, first and most that autotuning gives; zeros if it is not known.
    pub receive_auto: [u64; 3],
    /// `net.ipv4.tcp_wmem`, in the same way.
    pub send_auto: [u64; 3],
    /// `net.core.rmem_max`.
    pub receive_most: u64,
    /// `net.core.wmem_max`.
    pub send_most: u64,
}

impl System {
    /// This one, now.
    #[must_use]
    pub fn here() -> Self {
        Self {
            receive_auto: sys::receive_buffers().unwrap_or_default().map(|bytes| bytes as u64),
            send_auto: sys::send_buffers().unwrap_or_default().map(|bytes| bytes as u64),
            receive_most: sys::most_receive_buffer() as u64,
            send_most: sys::most_send_buffer() as u64,
        }
    }
}

/// Sentences on what `verdict` means and what would lift it; `peer_is_ours` says that the other
/// end is longhaul, too.
#[must_use]
pub fn advice(verdict: &Verdict, system: &System, peer_is_ours: bool) -> Vec<String> {
    use End::{Here, There};
    match (verdict.cause, verdict.end) {
        (Cause::Producer, Here) => lines(&[
            "The connection waits for data: whatever feeds it is the limit, no setting here is.",
            "A pipe of 64 KiB halves many producers: larger reads or mbuffer(1) in front help.",
        ]),
        (Cause::Producer, There) => {
            lines(&["The server waits for its own command: a faster one is all that helps."])
        }
        (Cause::Consumer, _) => lines(&[
            "What takes the data (a disk, a pipe, a program) is the limit, no setting here is.",
        ]),
        (Cause::Window, There) => peer_window(verdict, peer_is_ours),
        (Cause::Window, Here) => our_window(verdict, peer_is_ours),
        (Cause::ReceiveBuffer, Here) => our_buffer(verdict, &RECEIVE, system),
        (Cause::ReceiveBuffer, There) => vec![
            product(verdict),
            if peer_is_ours {
                format!("From here: -o RemoteRcvBuf={} asks the server for it.", wanted(verdict))
            } else {
                "Several connections fill the path without it: lhscp does that by itself."
                    .to_owned()
            },
            "There: raise net.core.rmem_max, or for every socket net.ipv4.tcp_rmem[2].".to_owned(),
        ],
        (Cause::SendBuffer, Here) => our_buffer(verdict, &SEND, system),
        (Cause::SendBuffer, There) => vec![
            product(verdict),
            "There: raise net.core.wmem_max, or for every socket net.ipv4.tcp_wmem[2].".to_owned(),
        ],
        (Cause::Cipher, _) => lines(&[
            "AES-GCM is the fastest cipher where the CPU has AES: -c aes128-gcm@openssh.com.",
            "Idle cores can share the work of any cipher: -o CryptoWorkers=2.",
        ]),
        (Cause::Core, _) => lines(&[
            "One thread moves all bytes, and its core has nothing to spare.",
            "lhscp uses several connections, and so several cores.",
        ]),
        (Cause::Machine, _) => {
            lines(&["The machine has no core left for this: other programs use them."])
        }
        (Cause::Loss, _) => lines(&[
            "TCP takes every loss for a full path and slows down.",
            "-o CongestionControl=bbr does not, where the kernel has it (modprobe tcp_bbr); it \
             counts at the end that sends.",
            "Several connections lose less by each loss: lhscp uses them by itself.",
        ]),
        (Cause::Path, _) => lines(&[
            "No buffer, window or processor has anything to give: this is the path's rate.",
        ]),
        (Cause::Unknown, _) => lines(&[
            "Nothing here holds the data back. There: its send buffer (third figure of \
             net.ipv4.tcp_wmem), its processor, or what it reads from.",
            "With longhaul at both ends --explain could tell which.",
        ]),
    }
}

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

fn peer_window(verdict: &Verdict, peer_is_ours: bool) -> Vec<String> {
    let first = product(verdict);
    if peer_is_ours {
        return vec![first, "There: raise MaxWindow in the server's configuration.".to_owned()];
    }
    vec![
        first,
        "The server's program grants no more (OpenSSH: 2 MiB); no setting of it does.".to_owned(),
        "lhscp opens several channels and connections, each with a window of its own; longhaul at \
         the other end grants as much as the path needs."
            .to_owned(),
    ]
}

fn our_window(verdict: &Verdict, peer_is_ours: bool) -> Vec<String> {
    let first = product(verdict);
    if !peer_is_ours && verdict.size == u64::from(proto::window::Rule::OPENSSH_CAP) {
        let why = "OpenSSH from 8.9 on slows down when it may send more than 16 MiB ahead: no \
                   more is granted to it. lhscp uses several channels and connections.";
        return vec![first, why.to_owned()];
    }
    vec![first, format!("-o MaxWindow={} would lift it.", wanted(verdict))]
}

/// The bandwidth-delay product in numbers.
fn product(verdict: &Verdict) -> String {
    let rtt = verdict.rtt.as_secs_f64();
    let most = if rtt > 0.0 { verdict.size as f64 / rtt } else { 0.0 };
    format!(
        "{} per round trip of {:.1} ms are at most {}; 1 Gbit/s needs {}, 10 Gbit/s {}.",
        Bytes(verdict.size),
        rtt * 1e3,
        Rate(most as u64),
        Bytes(for_rate(125_000_000, verdict.rtt)),
        Bytes(for_rate(1_250_000_000, verdict.rtt)),
    )
}

/// What a path of 1 Gbit/s needs, but at least four times what there was: a figure to try.
fn wanted(verdict: &Verdict) -> String {
    let bytes = for_rate(125_000_000, verdict.rtt).max(verdict.size.saturating_mul(4));
    format!("{}M", bytes.div_ceil(1 << 20).max(1))
}

fn for_rate(bytes_per_second: u64, rtt: Duration) -> u64 {
    (bytes_per_second as f64 * rtt.as_secs_f64()) as u64
}

/// A buffer of a socket: the option that sets it, and the sysctls that bound it.
struct Buffer {
    option: &'static str,
    most: (&'static str, fn(&System) -> u64),
    auto: (&'static str, fn(&System) -> [u64; 3]),
}

const RECEIVE: Buffer = Buffer {
    option: "TcpRcvBuf",
    most: ("net.core.rmem_max", |system| system.receive_most),
    auto: ("net.ipv4.tcp_rmem", |system| system.receive_auto),
};

const SEND: Buffer = Buffer {
    option: "TcpSndBuf",
    most: ("net.core.wmem_max", |system| system.send_most),
    auto: ("net.ipv4.tcp_wmem", |system| system.send_auto),
};

/// First what lifts it for this connection, then what changes every socket of the host.
fn our_buffer(verdict: &Verdict, buffer: &Buffer, system: &System) -> Vec<String> {
    let (name, most) = (buffer.most.0, (buffer.most.1)(system));
    let option = format!(
        "For this connection: -o {}={}, which root gets, and others up to {name} = {most}.",
        buffer.option,
        wanted(verdict)
    );
    let all = sysctl(buffer.auto.0, (buffer.auto.1)(system), verdict);
    [product(verdict), option].into_iter().chain(all).collect()
}

/// The kernel's figure is about twice the data that a buffer holds. The first two figures stay what
/// they are; nothing is said where the third is enough, or is not known.
fn sysctl(name: &str, [least, first, most]: [u64; 3], verdict: &Verdict) -> Option<String> {
    let bytes = for_rate(125_000_000, verdict.rtt).max(verdict.size.saturating_mul(4));
    let enough = bytes.saturating_mul(2).div_ceil(1 << 20) << 20;
    (0 < most && most < enough).then(|| {
        format!(
            "For every socket: autotuning ends at {} ({name}[2] = {most}); as root, sysctl -w \
             {name}=\"{least} {first} {enough}\".",
            Bytes(most)
        )
    })
}
