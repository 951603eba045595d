//! `lhbench crypt`: sealing and opening in process, without sockets: each protection, with one
//! to N threads that share one key, as the pipeline's workers do.

use ::crypt::KeyMaterial;
use ::crypt::cipher::Protection;
use anyhow::{Context, Result, anyhow};
use packet::{Batch, OpenKey, SealKey, Stamp};
use serde::Serialize;
use std::io::IoSlice;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// What `crypt` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Most threads [default: the number of cores]
    #[arg(long)]
    workers: Option<usize>,
    /// Seconds per figure
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Only protections whose name contains this
    #[arg(long)]
    cipher: Option<String>,
    /// Writes every figure to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Data per packet and per batch, as the pipeline has them.
const PACKET: usize = 32 << 10;
const BATCH: usize = 16 * PACKET;
const LIMIT: u32 = 1 << 18;

#[derive(Serialize)]
struct Figure {
    protection: String,
    workers: usize,
    /// GB of data per second, all workers together.
    seal: f64,
    open: f64,
}

/// Measures and prints.
pub(crate) fn main(options: &Options) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let most = options.workers.unwrap_or(cores).max(1);
    let time = Duration::from_secs_f64(options.seconds);
    let mut figures = Vec::new();
    println!("{:54} {:>7} {:>11} {:>11}", "protection", "workers", "seal GB/s", "open GB/s");
    for protection in Protection::all() {
        let name = name(protection);
        if options.cipher.as_ref().is_some_and(|part| !name.contains(part.as_str())) {
            continue;
        }
        for workers in counts(most) {
            let figure = measure(protection, name.clone(), workers, time)?;
            let Figure { protection, workers, seal, open } = &figure;
            println!("{protection:54} {workers:>7} {seal:>11.2} {open:>11.2}");
            figures.push(figure);
        }
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&figures)?)?;
    }
    Ok(())
}

/// 1, 2, 4 .. and `most` itself.
fn counts(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < most);
    powers.chain([most]).collect()
}

fn name(protection: Protection) -> String {
    let cipher = protection.cipher().name();
    protection.mac().map_or(cipher.to_owned(), |mac| format!("{cipher} {}", mac.name()))
}

fn measure(protection: Protection, name: String, workers: usize, time: Duration) -> Result<Figure> {
    let bytes = |len, start: u8| (0..len).map(|i| start.wrapping_add(i as u8)).collect::<Vec<u8>>();
    let keys = KeyMaterial {
        iv: bytes(protection.iv_len(), 1).into(),
        key: bytes(protection.key_len(), 2).into(),
        mac: bytes(protection.mac_key_len(), 3).into(),
    };
    let fail = |why: &dyn std::fmt::Display| anyhow!("{name}: {why}");
    let seal = SealKey::new(protection, &keys).map_err(|why| fail(&why))?;
    let open = OpenKey::new(protection, &keys).map_err(|why| fail(&why))?;
    let sealing = together(workers, || seal_for(&seal, time))?;
    let opening = together(workers, || open_for(&seal, &open, time))?;
    Ok(Figure { protection: name, workers, seal: sealing, open: opening })
}

/// The sum of what `workers` threads reach at once.
fn together(workers: usize, work: impl Fn() -> Result<f64> + Sync) -> Result<f64> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(&work)).collect();
        let rates = threads.into_iter().map(|one| one.join());
        rates.map(|one| one.unwrap_or_else(|_| Err(anyhow!("a worker panicked")))).sum()
    })
}

fn seal_for(key: &SealKey, time: Duration) -> Result<f64> {
    let mut batch = Batch::bulk();
    let mut at = Stamp::default();
    rate(time, || {
        batch.finish(BATCH, PACKET, 0, None);
        at = batch.stamp(at, key.layout());
        key.seal(&mut batch).map_err(|why| anyhow!("{why}"))
    })
}

/// Opening destroys what it opens, so each round starts with a copy: 2 % of the fastest cipher's
/// time, as memory copies 55 GB/s.
fn open_for(seal: &SealKey, open: &OpenKey, time: Duration) -> Result<f64> {
    let mut batch = Batch::bulk();
    batch.finish(BATCH, PACKET, 0, None);
    batch.stamp(Stamp::default(), seal.layout());
    seal.seal(&mut batch).map_err(|why| anyhow!("{why}"))?;
    let mut slices = [IoSlice::new(&[]); 64];
    let count = batch.sealed(0, &mut slices).slices;
    let wire: Vec<u8> = slices.iter().take(count).flat_map(|slice| slice.to_vec()).collect();
    let mut work = wire.clone();
    rate(time, || {
        work.copy_from_slice(&wire);
        open_all(open, &mut work)
    })
}

fn open_all(key: &OpenKey, mut bytes: &mut [u8]) -> Result<()> {
    let mut at = Stamp::default();
    while !bytes.is_empty() {
        let length =
            key.peek(at, bytes, LIMIT).map_err(|why| anyhow!("{why}"))?.context("short")?;
        let (packet, rest) =
            bytes.split_at_mut_checked(key.total(length)).context("a cut packet")?;
        key.open(at, packet).map_err(|why| anyhow!("{why}"))?;
        at = key.next(at, length);
        bytes = rest;
    }
    Ok(())
}

/// GB of data per second of a step that handles one batch.
fn rate(time: Duration, mut step: impl FnMut() -> Result<()>) -> Result<f64> {
    step()?; // warms up
    let start = Instant::now();
    let mut batches = 0_u32;
    while start.elapsed() < time {
        step()?;
        batches += 1;
    }
    Ok(f64::from(batches) * BATCH as f64 / start.elapsed().as_secs_f64() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protection_seals_and_opens_with_two_workers() {
        for protection in Protection::all() {
            measure(protection, name(protection), 2, Duration::ZERO).unwrap();
        }
    }

    #[test]
    fn worker_counts_double_and_end_with_the_most() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(6), [1, 2, 4, 6]);
    }
}
