//! SFTP: the codec of both roles, and a whole server that may only look.

use crate::input::Input;
use sftp::codec::{
    BlockHashes, DataHead, FileContent, FileStatus, Groups, Hello, Limits, Reply, Request,
    SparseMap, Statvfs, VERSION, WriteHead, Xattrs, packet_length,
};
use sftp::server::{Account, Action, Level, Log, Options, Setup, start};
use std::fmt::Arguments;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

/// What is read is written so that it is read again.
pub fn sftp_codec(data: &[u8]) {
    let mut packet = Vec::new();
    if let Ok((id, request)) = Request::parse(data) {
        request.encode(id, &mut packet);
        assert_eq!(Request::parse(&packet[4..]), Ok((id, request)));
    }
    packet.clear();
    if let Ok((id, reply)) = Reply::parse(data) {
        reply.encode(id, &mut packet);
        assert_eq!(Reply::parse(&packet[4..]), Ok((id, reply)));
    }
    let _ = (Hello::parse_init(data), Hello::parse_version(data));
    if let Ok(Some((head, used))) = WriteHead::parse(data) {
        assert!(used <= data.len());
        packet.clear();
        head.encode(&mut packet);
        assert_eq!(packet[4..], data[4..used]);
    }
    if let Some(head) = data.first_chunk()
        && let Ok(read) = DataHead::parse(head)
    {
        assert_eq!(&read.encode(), head);
    }
    contents(data);
}

fn contents(data: &[u8]) {
    let _ = (Limits::parse(data), Statvfs::parse(data), Groups::parse(data));
    let _ = (BlockHashes::parse(data), SparseMap::parse(data), Xattrs::parse(data));
    let _ = (FileStatus::parse_list(data), FileContent::parse_list(data));
}

struct Nowhere;

impl Log for Nowhere {
    fn line(&self, _: Level, _: Arguments<'_>) {}
}

/// Nothing may be changed, and nothing opened that is more than a name.
const WORDS: [&str; 5] = ["-R", "-P", "open,opendir,get-files", "-l", "DEBUG"];

/// A server that gets any bytes in pieces of any size ends, and all it says are replies. The
/// first byte chooses the size of pieces, the second that of what it may send at once.
pub fn sftp_server(data: &[u8]) {
    let mut input = Input(data);
    let piece = usize::from(input.byte_or_zero()) + 1;
    let mut area = vec![0; usize::from(input.byte_or_zero()) * 16 + 1];
    let Ok(Action::Serve(options)) = Options::parse(WORDS.map(Into::into)) else {
        panic!("the words are options")
    };
    let (mut receives, mut sends, _) = start(Setup {
        options: *options,
        account: Account { name: b"nobody".to_vec(), home: "/".into() },
        start: "/".into(),
        peer: String::new(),
        links: Default::default(),
        log: Arc::new(Nowhere),
    })
    .expect("there are descriptors");
    let mut bytes = Vec::new();
    Hello { version: VERSION, extensions: Vec::new() }.encode_init(&mut bytes);
    bytes.extend_from_slice(input.0);
    let (mut left, mut sent) = (bytes.as_slice(), Vec::new());
    while !left.is_empty() {
        let pieces: Vec<_> = left.chunks(piece).take(20).map(IoSlice::new).collect();
        match receives.take(&pieces) {
            Ok(0) if !sends.wait() => break,
            Ok(0) => {
                let filled = sends.fill(&mut [IoSliceMut::new(&mut area)]);
                sent.extend_from_slice(&area[..filled]);
            }
            Ok(taken) => left = &left[taken..],
            Err(_) => break,
        }
    }
    receives.end();
    while sends.wait() {
        let filled = sends.fill(&mut [IoSliceMut::new(&mut area)]);
        sent.extend_from_slice(&area[..filled]);
    }
    replies(&sent);
}

fn replies(mut sent: &[u8]) {
    let mut greeted = false;
    while let Some((length, rest)) = sent.split_first_chunk() {
        let length = packet_length(*length).expect("we keep to lengths");
        let (packet, next) = rest.split_at(length);
        if greeted {
            Reply::parse(packet).expect("we send replies");
        } else {
            Hello::parse_version(packet).expect("VERSION comes first");
        }
        (greeted, sent) = (true, next);
    }
    assert!(sent.is_empty());
}
