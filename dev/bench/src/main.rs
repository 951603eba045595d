//! lhbench: ours beside stock OpenSSH, netcat and iperf3, on the same work, in one run.
//!
//! A case is a row of [`cases`]; its contenders take turns, several times each. Every process of
//! a run is a child of a [`measured`] process, so its CPU time and peak memory come from the
//! kernel's accounting and not from sampling. docs/perf.md says what the cases mean.

mod bars;
mod cases;
mod chart;
mod command;
mod copy;
mod crypt;
mod figures;
mod keystrokes;
mod lab;
mod leftovers;
mod loopback;
mod measured;
mod net;
mod quiet;
mod room;
mod run;
mod size;
mod stats;
mod stop;
mod stream;
mod suite;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use loopback::Loopback;
use size::Size;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Measures longhaul beside stock programs")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Both ends on this machine, over loopback
    Pipe(Options),
    /// Both ends in namespaces joined by an emulated link (needs root)
    Link(Options),
    /// Files and trees: lhscp beside scp, sftp, rsync, tar and any --peer
    Copy(copy::Options),
    /// Rates by cipher, buffer, distance and processor, as SVG, PNG, CSV and one page
    Figures(figures::Options),
    /// Sealing and opening in this process, without sockets
    Crypt(crypt::Options),
    /// The names of all cases
    Cases,
    /// Writes SIZE bytes of a fixed stream to stdout
    Gen { size: Size },
    /// Types beside bulk on one connection
    #[command(hide = true)]
    Keystrokes(keystrokes::Options),
    /// Reads stdin until a second after its first byte, and says how many bytes that were; fails
    /// when it ends earlier, before SIZE bytes
    Early { size: Size },
    /// Reads SIZE bytes of stdin; fails when there are fewer
    Take { size: Size },
    /// Reads stdin at so many bytes per second
    Throttle { rate: Size },
    #[command(hide = true)]
    Meter(figures::meter::Options),
    #[command(hide = true)]
    Measured(measured::Options),
}

/// What `pipe` and `link` take.
#[derive(Args)]
struct Options {
    /// Only cases whose name contains this (may be given several times), `fairness` for one:
    /// `lhbench cases` lists them all
    #[arg(long = "case")]
    cases: Vec<String>,
    /// Only contenders whose name contains this
    #[arg(long = "only")]
    contenders: Vec<String>,
    /// Bytes per run [default: 8G for pipe, 20 s at the link's rate for link]; less where they do
    /// not fit
    #[arg(long)]
    size: Option<Size>,
    /// Runs of each contender [default: 5 for pipe, 3 for link]
    #[arg(long)]
    runs: Option<usize>,
    /// Cipher, instead of each case's own
    #[arg(long)]
    cipher: Option<String>,
    /// Writes every sample to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Where the source file is put: a tmpfs
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    /// Our client [default: lhssh beside this program]
    #[arg(long)]
    lhssh: Option<PathBuf>,
    /// Our server [default: lhsshd beside this program]
    #[arg(long)]
    lhsshd: Option<PathBuf>,
    #[command(flatten)]
    loopback: Loopback,
    /// Fail when a bar is missed
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    match carry_out(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lhbench: {why:#}");
            stop::status().map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

fn carry_out(task: Task) -> Result<()> {
    // Before there is a second thread.
    match &task {
        Task::Pipe(options) => options.loopback.enter(),
        Task::Copy(options) => options.loopback.enter(),
        Task::Figures(options) => options.loopback.enter(),
        _ => {}
    }
    if matches!(task, Task::Pipe(_) | Task::Link(_) | Task::Copy(_) | Task::Figures(_)) {
        stop::in_order()?;
    }
    match task {
        Task::Pipe(options) => suite::run(&options, cases::PIPE),
        Task::Link(options) => suite::run(&options, cases::LINK),
        Task::Copy(options) => copy::main(&options),
        Task::Figures(options) => figures::main(&options),
        Task::Meter(options) => figures::meter::main(&options),
        Task::Crypt(options) => crypt::main(&options),
        Task::Cases => {
            chart::list();
            copy::list();
            Ok(())
        }
        Task::Gen { size } => stream::write(&mut std::io::stdout().lock(), size.0),
        Task::Keystrokes(options) => keystrokes::main(&options),
        Task::Early { size } => {
            println!("{}", stream::early(&mut std::io::stdin().lock(), stream::SECOND, size.0)?);
            Ok(())
        }
        Task::Take { size } => stream::take(&mut std::io::stdin().lock(), size.0),
        Task::Throttle { rate } => stream::drain_slowly(&mut std::io::stdin().lock(), rate.0),
        Task::Measured(options) => measured::main(&options),
    }
}
