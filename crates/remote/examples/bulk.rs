//! Moves one file over some channels of one connection, to measure the way without a program
//! around it: `bulk put|get HOST LOCAL REMOTE CHANNELS [-oKeyword=value...]`.

use sftp::client::{Answer, Check, Client, Data, Event, Flight, Target};
use sftp::codec::{Attrs, Handle, OpenFlags, Reply, Request};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [way, host, local, remote, channels, options @ ..] = args.as_slice() else {
        return Err("bulk put|get HOST LOCAL REMOTE CHANNELS [-oKeyword=value...]".into());
    };
    let settings: Result<Vec<_>, _> =
        options.iter().map(|o| conf::Setting::option(o.trim_start_matches("-o"))).collect();
    let me = login::local_user()?;
    let supported = login::supported();
    let files = conf::client::Files::None;
    let conf = conf::client::load(host, &settings?, &files, &supported, &me)?.config;
    let log = Arc::new(login::Log::new("bulk", conf.log_level, None)?);
    let connection = remote::Host::ssh(conf, log).connect()?;
    let job = Job {
        put: way == "put",
        file: Arc::new(if way == "put" { File::open(local)? } else { File::create(local)? }),
        next: AtomicU64::new(0),
        size: AtomicU64::new(0),
    };
    let started = Instant::now();
    let lanes: Result<Vec<_>, Failure> = (0..channels.parse()?)
        .map(|_| {
            let (events, heard) = channel();
            Ok((connection.open(events)?, heard))
        })
        .collect();
    std::thread::scope(|scope| {
        let lanes: Vec<_> = lanes?
            .into_iter()
            .map(|(client, heard)| scope.spawn(|| job.lane(client, heard, remote)))
            .collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "panic")?)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes = job.size.into_inner() as f64;
    println!("{:.3} GB/s, {seconds:.3} s", bytes / seconds / 1e9);
    connection.close();
    Ok(())
}

struct Job {
    put: bool,
    file: Arc<File>,
    next: AtomicU64,
    size: AtomicU64,
}

impl Job {
    fn lane(&self, client: Client, heard: Receiver<Event>, remote: &str) -> Result<(), Failure> {
        let flags = match self.put {
            true => OpenFlags::WRITE | OpenFlags::CREATE,
            false => OpenFlags::READ,
        };
        let path = remote.as_bytes().to_vec();
        let handle = match client.call(&Request::Open { path, flags, attrs: Attrs::default() })? {
            Reply::Handle(handle) => handle,
            other => return Err(format!("{other:?}").into()),
        };
        let size = match client.call(&Request::Fstat(handle.clone()))? {
            _ if self.put => self.file.metadata()?.len(),
            Reply::Attrs(attrs) => attrs.size.unwrap_or(0),
            other => return Err(format!("{other:?}").into()),
        };
        self.size.store(size, Ordering::Relaxed);
        self.bulk(&client, &heard, &handle, size)?;
        client.call(&Request::Close(handle))?;
        Ok(())
    }

    fn bulk(
        &self,
        client: &Client,
        heard: &Receiver<Event>,
        handle: &Handle,
        size: u64,
    ) -> Result<(), Failure> {
        let sizes = client.server()?.sizes;
        let piece = u64::from(if self.put { 4 * sizes.write } else { sizes.read });
        let mut flight = Flight::new(Instant::now());
        loop {
            while flight.room() >= piece || flight.under_way() == 0 {
                let offset = self.next.fetch_add(piece, Ordering::Relaxed);
                let len = piece.min(size.saturating_sub(offset));
                if len == 0 {
                    break;
                }
                flight.sent(len, Instant::now());
                let file = Arc::clone(&self.file);
                if self.put {
                    client.put(handle, offset, Data::File { file, offset, len }, Check::None, len);
                } else {
                    let target = Target::File { file, offset };
                    client.get(handle, offset, u32::try_from(len)?, target, Check::None, len);
                }
            }
            if flight.under_way() == 0 {
                return Ok(());
            }
            match heard.recv()? {
                Event::Answer { token, answer } => match answer? {
                    Answer::Got(got) if u64::from(got.len) < token => return Err("short".into()),
                    _ => flight.done(token, Instant::now()),
                },
                Event::Room | Event::Unsent { .. } => {}
                Event::Ended(why) => return Err(why.into()),
            }
        }
    }
}
