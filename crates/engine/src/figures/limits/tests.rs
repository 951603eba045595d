//! Verdicts from figures as they are measured in each case.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Ten seconds of a path that has nothing to complain of.
fn path(rtt: Duration) -> Path {
    let tcp = sys::TcpInfo {
        rtt,
        shortest_rtt: rtt,
        busy: 10 * SECOND,
        congestion_window: 10_000,
        segment: 1448,
        segments_out: 1_000_000,
        segments_in: 1_000_000,
        peer_window: 64 << 20,
        our_window: 64 << 20,
        ..Default::default()
    };
    Path { tcp, send_buffer: 128 << 20, receive_buffer: 128 << 20, congestion: "cubic".into() }
}

/// Ten seconds of sending at this rate, busy for one of them.
fn sends(rate: u64, rtt: Duration) -> Figures {
    let mut f = Figures { path: Some(path(rtt)), ..Figures::default() };
    f.sender = Labour { age: 10 * SECOND, busy: SECOND, bytes: rate * 10, ..Labour::default() };
    f.sent.window = 2 << 20;
    f
}

/// Ten seconds of receiving, likewise, mostly waiting for the network.
fn receives(rate: u64, rtt: Duration) -> Figures {
    let mut f = Figures { path: Some(path(rtt)), ..Figures::default() };
    f.receiver = Labour {
        age: 10 * SECOND,
        busy: SECOND,
        network: 10 * SECOND,
        bytes: rate * 10,
        ..Labour::default()
    };
    f.received.window = 32 << 20;
    f.received.window_cap = 128 << 20;
    f
}

fn verdict(f: &Figures) -> (Cause, End) {
    let verdict = find(f, None).unwrap();
    (verdict.cause, verdict.end)
}

#[test]
fn little_data_says_nothing() {
    let mut f = sends(1000, ms(10));
    f.sender.input = 9 * SECOND;
    assert_eq!(find(&f, None), None);
}

#[test]
fn a_sender_waits_for_its_input_or_the_peers_window() {
    let mut f = sends(1_000_000, ms(10));
    f.sender.input = 8 * SECOND;
    assert_eq!(verdict(&f), (Cause::Producer, End::Here));
    let mut f = sends(20_000_000, ms(100));
    f.sender.window = 8 * SECOND;
    assert_eq!(verdict(&f), (Cause::Window, End::There), "2 MiB per round trip");
    let mut f = sends(2_000_000, ms(100));
    f.sender.window = 8 * SECOND;
    assert_eq!(verdict(&f), (Cause::Consumer, End::There), "a second per window");
    f.path.as_mut().unwrap().tcp.sndbuf_limited = 3 * SECOND;
    assert_eq!(verdict(&f), (Cause::SendBuffer, End::Here), "it is still to be written");
    let mut f = sends(100_000_000, Duration::from_micros(100));
    f.sender.window = 8 * SECOND;
    assert_eq!(verdict(&f), (Cause::Consumer, End::There), "21 ms per window");
}

#[test]
fn a_full_socket_is_told_apart_by_what_the_kernel_counted() {
    let with = |change: fn(&mut Path)| {
        let mut f = sends(50_000_000, ms(100));
        f.sender.socket = 9 * SECOND;
        change(f.path.as_mut().unwrap());
        verdict(&f)
    };
    assert_eq!(with(|_| ()), (Cause::Path, End::Here));
    assert_eq!(with(|p| p.tcp.sndbuf_limited = 8 * SECOND), (Cause::SendBuffer, End::Here));
    assert_eq!(with(|p| p.send_buffer = 8 << 20), (Cause::SendBuffer, End::Here));
    let small = with(|p| (p.tcp.rwnd_limited, p.tcp.peer_window) = (8 * SECOND, 5 << 20));
    assert_eq!(small, (Cause::ReceiveBuffer, End::There));
    let slow = with(|p| {
        (p.tcp.rwnd_limited, p.tcp.peer_window) = (8 * SECOND, 5 << 20);
        (p.tcp.rtt, p.tcp.shortest_rtt) = (ms(1), ms(1));
    });
    assert_eq!(slow, (Cause::Core, End::There));
    let shut = with(|p| (p.tcp.rwnd_limited, p.tcp.peer_window) = (8 * SECOND, 0));
    assert_eq!(shut, (Cause::Core, End::There), "a window that is shut has no size to be raised");
    assert_eq!(with(|p| p.tcp.retransmits = 100), (Cause::Loss, End::Here));
    let queue = with(|p| (p.tcp.retransmits, p.tcp.rtt) = (100, ms(190)));
    assert_eq!(queue, (Cause::Path, End::Here), "the losses are those of its own queue");
}

#[test]
fn a_busy_thread_is_told_apart_by_its_work() {
    let mut f = sends(1_000_000_000, ms(1));
    f.sender.busy = 9 * SECOND;
    assert_eq!(verdict(&f), (Cause::Core, End::Here));
    f.sender.crypto = 6 * SECOND;
    assert_eq!(verdict(&f), (Cause::Cipher, End::Here));
    (f.sender.busy, f.sender.queued) = (SECOND, 7 * SECOND);
    assert_eq!(verdict(&f), (Cause::Machine, End::Here));
    let mut f = sends(1_000_000_000, ms(1));
    f.sender.queue = 9 * SECOND;
    f.workers = (2, 17 * SECOND);
    assert_eq!(verdict(&f), (Cause::Cipher, End::Here), "it waits for the workers");
    let mut f = receives(1_000_000_000, ms(1));
    (f.receiver.busy, f.receiver.crypto) = (9 * SECOND, 8 * SECOND);
    assert_eq!(verdict(&f), (Cause::Cipher, End::Here));
}

#[test]
fn a_receiver_waits_for_its_consumer_or_the_network() {
    let mut f = receives(1_000_000, ms(10));
    (f.receiver.sink, f.receiver.network) = (8 * SECOND, SECOND);
    assert_eq!(verdict(&f), (Cause::Consumer, End::Here));
    assert_eq!(verdict(&receives(50_000_000, ms(100))), (Cause::Unknown, End::There));
    let mut f = receives(140_000_000, ms(100));
    (f.received.window, f.received.window_cap) = (15 << 20, 15 << 20);
    assert_eq!(verdict(&f), (Cause::Window, End::Here));
    f.received.window_cap = 16 << 20;
    assert_eq!(verdict(&f), (Cause::Unknown, End::There), "it would have grown");
    let mut f = receives(50_000_000, ms(100));
    f.path.as_mut().unwrap().tcp.our_window = 6 << 20;
    assert_eq!(verdict(&f), (Cause::ReceiveBuffer, End::Here));
    let mut f = receives(50_000_000, ms(100));
    f.path.as_mut().unwrap().tcp.out_of_order = 200;
    assert_eq!(verdict(&f), (Cause::Loss, End::Here));
}

#[test]
fn the_other_ends_figures_tell_what_from_here_is_only_the_other_end() {
    let mut there = sends(50_000_000, ms(100));
    there.sender.input = 8 * SECOND;
    let told = find(&receives(50_000_000, ms(100)), Some(&there)).unwrap();
    assert_eq!((told.cause, told.end, told.sending), (Cause::Producer, End::There, false));

    let mut here = sends(20_000_000, ms(100));
    here.sender.window = 8 * SECOND;
    let mut there = receives(20_000_000, ms(100));
    there.receiver.sink = 9 * SECOND;
    let told = find(&here, Some(&there)).unwrap();
    assert_eq!((told.cause, told.end, told.sending), (Cause::Consumer, End::There, true));
    let waits = receives(20_000_000, ms(100));
    let told = find(&here, Some(&waits)).unwrap();
    assert_eq!((told.cause, told.end), (Cause::Window, End::There), "it only waits for data");
}

#[test]
fn a_line_says_what_where_and_how_much() {
    let mut f = sends(20_971_520, ms(100));
    f.sender.window = 8 * SECOND;
    let line = find(&f, None).unwrap().to_string();
    let want =
        "the peer's 2.0 MiB channel window (80 % of the time; 21.0 MB/s, round trip 100.0 ms)";
    assert_eq!(line, want);
}

#[test]
fn advice_names_the_setting_and_the_numbers() {
    let system = System {
        receive_auto: [4096, 131_072, 6 << 20],
        send_auto: [8192, 16_384, 4 << 20],
        receive_most: 212_992,
        send_most: 212_992,
    };
    let verdict = |cause, end, size| Verdict {
        cause,
        end,
        sending: true,
        share: 0.9,
        rate: 20_000_000,
        rtt: ms(100),
        size,
    };
    let text = |cause, end, size, ours| advice(&verdict(cause, end, size), &system, ours).join(" ");
    let send = text(Cause::SendBuffer, End::Here, 2 << 20, false);
    assert!(send.contains("net.ipv4.tcp_wmem[2] = 4194304"), "{send}");
    assert!(send.contains("net.ipv4.tcp_wmem=\"8192 16384 25165824\""), "{send}");
    assert!(send.find("-o TcpSndBuf=12M") < send.find("sysctl -w"), "the connection first: {send}");
    assert!(send.contains("2.0 MiB per round trip of 100.0 ms are at most 21.0 MB/s"), "{send}");
    assert!(send.contains("1 Gbit/s needs 11.9 MiB"), "{send}");
    let receive = text(Cause::ReceiveBuffer, End::Here, 3 << 20, false);
    assert!(receive.contains("tcp_rmem") && receive.contains("TcpRcvBuf=12M"), "{receive}");
    let remote = text(Cause::ReceiveBuffer, End::There, 3 << 20, true);
    assert!(remote.contains("RemoteRcvBuf=12M"), "{remote}");
    let window = text(Cause::Window, End::There, 2 << 20, false);
    assert!(window.contains("OpenSSH: 2 MiB") && window.contains("lhscp"), "{window}");
    assert!(text(Cause::Window, End::Here, 15 << 20, false).contains("OpenSSH from 8.9"));
    assert!(text(Cause::Window, End::Here, 4 << 20, true).contains("MaxWindow=16M"));
    assert!(text(Cause::Loss, End::Here, 100, false).contains("bbr"));
    let all = [
        Cause::Producer,
        Cause::Consumer,
        Cause::Window,
        Cause::ReceiveBuffer,
        Cause::SendBuffer,
        Cause::Cipher,
        Cause::Core,
        Cause::Machine,
        Cause::Unknown,
        Cause::Loss,
        Cause::Path,
    ];
    for cause in all {
        for end in [End::Here, End::There] {
            assert!(!text(cause, end, 1 << 20, true).is_empty(), "{cause:?} {end:?}");
        }
    }
}
