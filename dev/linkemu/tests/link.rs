//! Real kernel TCP over real links. These need root: without it each test says that it was
//! skipped, and fails where LONGHAUL_CI=1 says that skipping is not an option.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use linkemu::spec::ADDRESSES_V6;
use linkemu::{Error, Link, Side, Spec, Stats};

const PORT: u16 = 7001;
const GBIT: u64 = 1_000_000_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A link, or `None` when this user cannot make one.
#[allow(clippy::panic, reason = "a helper of tests")]
fn link_or_skip(spec: Spec) -> Option<Link> {
    match Link::up(spec) {
        Ok(link) => Some(link),
        Err(error @ (Error::NotPermitted | Error::NoTun)) => {
            need::have(false, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The least of several round trips of a small datagram, echoed at b.
fn round_trip(link: &Link, at: SocketAddr) -> io::Result<Duration> {
    let server = link.run_in(Side::B, || UdpSocket::bind(at))?;
    let local = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let client = link.run_in(Side::A, || UdpSocket::bind(local))?;
    client.connect(at)?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    }
    thread::scope(|s| {
        s.spawn(|| {
            let mut byte = [0];
            while let Ok((1, from)) = server.recv_from(&mut byte) {
                let _ = server.send_to(&byte, from);
                if byte[0] == u8::MAX {
                    break;
                }
            }
        });
        let mut least = Duration::MAX;
        for byte in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, u8::MAX] {
            let start = Instant::now();
            client.send(&[byte])?;
            client.recv(&mut [0])?;
            least = least.min(start.elapsed());
        }
        Ok(least)
    })
}

/// Byte `i` of the stream that the transfers send; its period divides no packet or buffer size.
fn pattern(block: &mut [u8], offset: u64) {
    for (i, byte) in block.iter_mut().enumerate() {
        let at = offset + i as u64;
        *byte = (at % 251) as u8 ^ (at >> 16) as u8;
    }
}

/// Sends `bytes` from a to b and compares every one.
fn transfer(link: &Link, bytes: u64) -> io::Result<()> {
    let at = SocketAddr::from((link.spec().addresses[1], PORT));
    let listener = link.run_in(Side::B, || TcpListener::bind(at))?;
    let mut sender = link.run_in(Side::A, || TcpStream::connect(at))?;
    let (receiver, _) = listener.accept()?;
    thread::scope(|s| {
        // Closed when this ends, however it does: the sender ends with it.
        let mut receiver = receiver;
        s.spawn(move || {
            let mut block = vec![0; 64 << 10];
            for offset in (0..bytes).step_by(block.len()) {
                let len = block.len().min((bytes - offset) as usize);
                pattern(&mut block[..len], offset);
                if sender.write_all(&block[..len]).is_err() {
                    break; // the receiver notices that bytes are missing
                }
            }
        });
        let (mut got, mut want) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut offset = 0;
        loop {
            let len = receiver.read(&mut got)?;
            if len == 0 {
                break;
            }
            pattern(&mut want[..len], offset);
            assert!(got[..len] == want[..len], "bytes from {offset} on differ");
            offset += len as u64;
        }
        assert_eq!(offset, bytes);
        Ok(())
    })
}

/// Megabits per second that b receives in one second, after `ramp`.
fn steady_rate(link: &Link, ramp: Duration) -> io::Result<f64> {
    let at = SocketAddr::from((link.spec().addresses[1], PORT));
    let listener = link.run_in(Side::B, || TcpListener::bind(at))?;
    let mut sender = link.run_in(Side::A, || TcpStream::connect(at))?;
    let (mut receiver, _) = listener.accept()?;
    let (from, to) = (Instant::now() + ramp, Instant::now() + ramp + Duration::from_secs(1));
    thread::scope(|s| {
        s.spawn(move || {
            let block = vec![0; 256 << 10];
            while Instant::now() < to && sender.write_all(&block).is_ok() {}
        });
        let (mut block, mut bytes) = (vec![0; 256 << 10], 0);
        while Instant::now() < to {
            let read = receiver.read(&mut block)?;
            if Instant::now() >= from {
                bytes += read;
            }
        }
        drop(receiver);
        Ok(bytes as f64 * 8.0 / 1e6)
    })
}

fn assert_segments_add_up(stats: &Stats) {
    for direction in [&stats.a_to_b, &stats.b_to_a] {
        let gone = direction.dropped_segments + direction.lost_segments;
        // What was still on its way when the link went down is in neither.
        assert!(direction.segments_in >= direction.segments_out + gone, "{direction:?}");
    }
}

#[test]
fn the_round_trip_is_within_a_millisecond_in_both_families() {
    let spec = Spec { rtt: ms(40), rate: Some(GBIT), rate_back: Some(GBIT), ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    let v4 = SocketAddr::from((link.spec().addresses[1], PORT));
    let v6 = SocketAddr::from((ADDRESSES_V6[1], PORT));
    for at in [v4, v6] {
        let rtt = round_trip(&link, at).unwrap();
        assert!((ms(40)..ms(41)).contains(&rtt), "{at}: {rtt:?}");
    }
}

#[test]
fn every_byte_arrives_though_one_segment_in_a_hundred_is_lost() {
    let spec = Spec { rtt: ms(2), rate: Some(GBIT), loss: 0.01, jitter: ms(1), ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    transfer(&link, 32 << 20).unwrap();
    let stats = link.down();
    let lost = stats.a_to_b.lost_segments as f64 / stats.a_to_b.segments_in as f64;
    assert!((0.008..0.012).contains(&lost), "{lost}");
    assert_segments_add_up(&stats);
}

#[test]
fn every_byte_arrives_through_a_queue_that_overflows() {
    // Reno does not pace: its slow start is sure to overrun the queue.
    let (queue, cc) = (Some(100_000), Some("reno".to_owned()));
    let spec = Spec { rtt: ms(20), rate: Some(GBIT / 5), queue, cc, ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    transfer(&link, 8 << 20).unwrap();
    let stats = link.down();
    assert!(stats.a_to_b.dropped_segments > 0);
    assert!(stats.a_to_b.peak_queue_bytes <= 100_000);
    assert_segments_add_up(&stats);
}

#[test]
fn every_byte_arrives_without_segmentation_offload() {
    let spec = Spec { rtt: ms(2), loss: 0.001, gso: false, mtu: 9000, ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    transfer(&link, 8 << 20).unwrap();
    let direction = link.down().a_to_b;
    assert_eq!(direction.packets_in, direction.segments_in);
}

#[test]
fn a_stream_gets_the_rate_less_its_headers() {
    let rate = Some(GBIT / 10);
    let spec = Spec { rtt: ms(10), rate, rate_back: rate, threads: 2, ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    let ideal = 100.0 * 1448.0 / 1500.0;
    // A busy machine may starve sender and receiver for a while, but not make them faster.
    let rates: Vec<f64> = (0..3).map(|_| steady_rate(&link, ms(500)).unwrap()).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    assert!((best - ideal).abs() < 0.05 * ideal, "{rates:?} of {ideal}");
}

#[test]
fn a_command_finds_its_peer_and_its_limits_in_its_namespace() {
    let (rmem, wmem, cc) = (Some(77 << 20), Some(88 << 20), Some("reno".to_owned()));
    let spec = Spec { rmem, wmem, cc, ..Spec::default() };
    let Some(link) = link_or_skip(spec) else { return };
    let script = "cd /proc/sys/net/ipv4; cut -f3 tcp_rmem; cut -f3 tcp_wmem; \
                  cat tcp_congestion_control; echo $LINKEMU_LOCAL $LINKEMU_REMOTE $LINKEMU_PEER_NS";
    let mut shell = Command::new("sh");
    let child = link.exec_in_b(shell.args(["-c", script]).stdout(Stdio::piped())).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let a = link.namespace(Side::A);
    let want = format!("{}\n{}\nreno\n10.99.0.2 10.99.0.1 {a}\n", 77 << 20, 88 << 20);
    assert_eq!(output, want);
}

#[test]
fn nothing_is_left_when_the_link_is_dropped() {
    let Some(link) = link_or_skip(Spec::default()) else { return };
    let names = [Side::A, Side::B].map(|side| format!("/run/netns/{}", link.namespace(side)));
    assert!(names.iter().all(|name| std::fs::exists(name).unwrap()));
    drop(link);
    assert!(!names.iter().any(|name| std::fs::exists(name).unwrap()));
}
