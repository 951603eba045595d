//! `linkemu capacity`: what the emulator sustains here, with a plain TCP stream from a to b.
//!
//! Sender, receiver and emulator share the machine's cores, as they do in any measurement over
//! the link; so this is what a program that costs no more than read and write can get.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use linkemu::{Link, Side, Spec, Stats, Verdict};

const RATES: [u64; 6] = [1, 2, 3, 5, 8, 10];
const BUFFERS: u64 = 256 << 20;
const BLOCK: usize = 256 << 10;
const PORT: u16 = 5001;

pub(crate) fn measure(seconds: u64, rtt: Duration) -> anyhow::Result<u8> {
    let time = Duration::from_secs(seconds);
    println!("{:34}{:>10}{:>14}  verdict", "link", "Gbit/s", "CPU-s per GB");
    let unlimited = Spec { rmem: Some(BUFFERS), wmem: Some(BUFFERS), ..Spec::default() };
    row("no limits, no delay", &unlimited, time)?;
    row("  two threads", &Spec { threads: 2, ..unlimited.clone() }, time)?;
    row("  gso off", &Spec { gso: false, ..unlimited.clone() }, time)?;
    let mut sustained = None;
    for gbit in RATES {
        let rate = Some(gbit * 1_000_000_000);
        let spec = Spec { rtt, rate, rate_back: rate, ..unlimited.clone() };
        let (rate, verdict) = row(&format!("{gbit} Gbit/s, {rtt:?}"), &spec, time)?;
        if verdict == Verdict::Sound && rate > 0.9 * gbit as f64 {
            sustained = Some(gbit);
        }
    }
    match sustained {
        Some(gbit) => println!("sustains {gbit} Gbit/s at {rtt:?} with one TCP stream"),
        None => println!("sustains none of these rates at {rtt:?}"),
    }
    Ok(0)
}

fn row(name: &str, spec: &Spec, time: Duration) -> anyhow::Result<(f64, Verdict)> {
    let link = Link::up(spec.clone())?;
    // The stream first fills the path; what is counted begins when it has.
    let ramp = spec.rtt * 20;
    let (rate, stats) = stream(&link, ramp, time)?;
    let verdict = stats.verdict(spec);
    let per_gb = stats.cpu_seconds / (stats.a_to_b.bytes_out as f64 / 1e9);
    // Without limits something must be the bottleneck; it is no figure about a link.
    let judged = if spec.is_timed() { verdict.to_string() } else { "(no limits)".to_owned() };
    println!("{name:34}{rate:>10.2}{per_gb:>14.2}  {judged}");
    link.down();
    Ok((rate, verdict))
}

/// Sends for `ramp` and `time`; returns the Gbit/s that arrived in `time`, as seen at b.
fn stream(link: &Link, ramp: Duration, time: Duration) -> anyhow::Result<(f64, Stats)> {
    let address = SocketAddr::from((link.spec().addresses[1], PORT));
    let listener = link.run_in(Side::B, || TcpListener::bind(address))?;
    let mut sender = link.run_in(Side::A, || TcpStream::connect(address))?;
    let (mut receiver, _) = listener.accept()?;
    let deadline = Instant::now() + ramp + time;
    let rate = thread::scope(|s| {
        s.spawn(move || {
            let block = vec![0; BLOCK];
            while Instant::now() < deadline && sender.write_all(&block).is_ok() {}
        });
        receive(&mut receiver, Instant::now() + ramp, deadline)
    })?;
    Ok((rate, link.stats()))
}

fn receive(stream: &mut TcpStream, from: Instant, to: Instant) -> io::Result<f64> {
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let read = stream.read(&mut block)?;
        let now = Instant::now();
        if now >= to || read == 0 {
            break;
        }
        if now >= from {
            bytes += read;
        }
    }
    stream.shutdown(std::net::Shutdown::Both)?;
    Ok(bytes as f64 * 8.0 / 1e9 / (to - from).as_secs_f64())
}
