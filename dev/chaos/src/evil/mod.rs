//! Evil: an SFTP server on standard input and output that plays one trick, `chaos evil TRICK GUARD`.
//!
//! ```text
//! honest   the right answer      tricks   what is sent instead
//! ```

mod honest;
mod tricks;

pub use tricks::{Expect, TRICKS, Trick};

use crate::copier::Way;
use anyhow::{Context, Result};
use honest::Honest;
use sftp::codec::{Hello, Pairs, Reply, Request, Status, kind, packet_length};
use std::io::{Read, Write};

/// One conversation.
#[derive(Debug)]
pub struct Stage {
    honest: Honest,
    /// An absolute path beside the client's destination, where nothing may be written.
    guard: Vec<u8>,
    /// How many requests of the kind that the trick is played on came before.
    times: u64,
}

/// What goes back.
#[derive(Debug)]
pub(crate) enum Said {
    /// A proper reply to the request.
    Reply(Reply),
    /// These bytes, whatever they are.
    Raw(Vec<u8>),
    /// Nothing, and the end.
    Hang,
}

/// A request, and what would be right.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: u32,
    pub(crate) request: &'a Request,
    pub(crate) right: Reply,
}

/// Content of `/tree/big`, for comparison.
#[must_use]
pub fn big() -> Vec<u8> {
    honest::big()
}

/// Serves until the client goes away.
pub fn serve(trick: &str, guard: &str) -> Result<()> {
    let trick = TRICKS.iter().find(|known| known.name == trick).context("unknown trick")?;
    let (mut input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut stage = Stage {
        honest: Honest::new(trick.name.starts_with("link")),
        guard: guard.as_bytes().to_vec(),
        times: 0,
    };
    next(&mut input)?;
    out.write_all(&greeting(trick))?;
    out.flush()?;
    while let Ok(packet) = next(&mut input) {
        let said = match Request::parse(&packet) {
            Ok((id, request)) => {
                let right = stage.honest.answer(&request);
                let asked = Asked { id, request: &request, right };
                match (trick.play)(&mut stage, asked) {
                    Said::Reply(reply) => encoded(&reply, id),
                    Said::Raw(bytes) => bytes,
                    Said::Hang => return Ok(()),
                }
            }
            Err(_) => encoded(&Reply::status(Status::Unsupported), id_of(&packet)),
        };
        out.write_all(&said)?;
        out.flush()?;
    }
    Ok(())
}

fn greeting(trick: &Trick) -> Vec<u8> {
    let mut out = Vec::new();
    let announced = trick.announces.iter().map(|name| (name.to_vec(), b"1".to_vec()));
    let extensions: Pairs = announced.collect();
    match trick.greeting {
        Some(bytes) => out.extend_from_slice(bytes),
        None => Hello { version: 3, extensions }.encode_version(&mut out),
    }
    out
}

pub(crate) fn encoded(reply: &Reply, id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    reply.encode(id, &mut out);
    out
}

/// A packet of this type and body, with its length.
pub(crate) fn raw(kind: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &[kind], &body].concat()
}

fn id_of(packet: &[u8]) -> u32 {
    packet.get(1..).and_then(|rest| rest.first_chunk()).map_or(0, |id| u32::from_be_bytes(*id))
}

fn next(input: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut packet = vec![0; packet_length(length).map_err(|why| anyhow::anyhow!("{why:?}"))?];
    input.read_exact(&mut packet)?;
    debug_assert!(
        packet.first().is_some_and(|first| *first < kind::STATUS || *first == kind::EXTENDED)
    );
    Ok(packet)
}

impl Trick {
    /// Whether lhsftp's recursive get meets it too: it asks for none of our extensions.
    #[must_use]
    pub fn meets_sftp(&self) -> bool {
        let ours = self.announces.iter().any(|name| name.ends_with(b"@longhaul"));
        self.way == Way::Down && !ours
    }
}
