//! What each target starts from, made by the code that the targets read against.

use crate::compress::packed;
use crate::files::KEY;
use crypt::Cover;
use keys::known_hosts::{HostName, line};
use keys::{PublicKey, SigAlg};
use packet::Deflate;
use sftp::codec::{
    Attrs, Extended, Handle, Name, OpenFlags, PutFile, PutFlags, Reply, Request, Status,
};
use wire::{Writer, msg};

/// Keys of the other types, from the test data of `proto`.
const FILES: [&[u8]; 4] = [
    include_bytes!("../../../crates/proto/testdata/ecdsa256"),
    include_bytes!("../../../crates/proto/testdata/ecdsa384"),
    include_bytes!("../../../crates/proto/testdata/ecdsa521"),
    include_bytes!("../../../crates/proto/testdata/rsa2048"),
];

fn public_keys() -> Vec<PublicKey> {
    let others = FILES.iter().map(|file| keys::PrivateKey::public_of_file(file));
    let others = others.map(|key| key.expect("test data is good"));
    std::iter::once(KEY.public().clone()).chain(others).collect()
}

/// Lists of keys, signatures, refusals.
pub fn agent() -> Vec<Vec<u8>> {
    let mut list = Writer::message(12);
    list.u32(2).string(KEY.public().blob()).string("me").string("\0\0\0\x01x").string("other");
    let signature = KEY.sign(SigAlg::Ed25519, b"data").expect("an Ed25519 key signs");
    let signed = Writer::message(14).string(signature).take();
    let frame = |message: &[u8]| Writer::new().string(message).take();
    vec![frame(list.as_slice()), frame(&signed), frame(&[5])]
}

/// Lines with every option.
pub fn authorized_keys() -> Vec<Vec<u8>> {
    let options = [
        "",
        "restrict ",
        r#"command="echo \"hi\"",no-pty "#,
        r#"from="192.0.2.0/24,!192.0.2.7,*.example.org,2001:db8::/32" "#,
        r#"environment="A=b",expiry-time="20380119031407Z" "#,
        r#"permitopen="host:22",permitlisten="*:80",tunnel="0",principals="a,b" "#,
        "cert-authority,verify-required,no-touch-required ",
        "port-forwarding,agent-forwarding,X11-forwarding,user-rc,no-user-rc,pty ",
    ];
    let line = |options| format!("# a comment\n{options}{} me@here\n\n", KEY.public().to_openssh());
    let other = |key: PublicKey| key.to_openssh().into_bytes();
    let lines = options.into_iter().map(|options| line(options).into_bytes());
    lines.chain(public_keys().into_iter().map(other)).collect()
}

/// Both kinds.
pub fn data() -> Vec<Vec<u8>> {
    vec![
        Writer::message(msg::CHANNEL_DATA).u32(7).string("hello").take(),
        Writer::message(msg::CHANNEL_EXTENDED_DATA).u32(7).u32(1).string("hello").take(),
    ]
}

/// Lines that are taken and lines that are not, from either sender.
pub fn ident() -> Vec<Vec<u8>> {
    let banner = [b"\x01".to_vec(), b"hello\r\n".repeat(70)].concat();
    let texts: [&[u8]; 5] = [
        b"\0SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\0\0\x01\x2c",
        b"\x01Welcome\r\nto this host\nSSH-1.99-x\n",
        b"\0GET / HTTP/1.1\r\n",
        b"\x01SSH-1.5-old\r\n",
        &banner,
    ];
    texts.map(<[u8]>::to_vec).into()
}

/// Both ways, in little room and in enough: payloads of one stream, of several, of none; messages
/// that shrink, that do not, and that have no room.
pub fn inflate() -> Vec<Vec<u8>> {
    const ROOMS: [u8; 3] = [0, 12 << 1, 18 << 1];
    let pieces = |pieces: &[Vec<u8>]| {
        let framed = |piece: &Vec<u8>| [&[u8::try_from(piece.len()).unwrap()], &piece[..]].concat();
        pieces.iter().flat_map(framed).collect::<Vec<u8>>()
    };
    let mut deflate = Deflate::default();
    let messages = [&b"hello"[..], b"hello, hello, hello", &[0; 9000], b"a third message"];
    let stream = messages.map(|message| packed(&mut deflate, message));
    let stored = b"\x78\x01\x01\x03\x00\xfc\xffabc".to_vec();
    let payloads = [
        pieces(&stream),
        pieces(&[&stream[..1], &stream[..1]].concat()),
        pieces(&[stored.clone(), stream[1].clone()]),
        pieces(&[b"not zlib at all".to_vec()]),
    ];
    let texts = [
        b"\0\x05hello\x03\x05hello\0\x01x".to_vec(),
        [&b"\xff\xc8"[..], &[b'x'; 200], b"\0\x05hello"].concat(),
        [
            &b"\x03\x80"[..],
            &(0..128).map(|n: u8| n.wrapping_mul(73) ^ (n >> 3)).collect::<Vec<u8>>(),
        ]
        .concat(),
    ];
    let with = |low: u8, rest: &[Vec<u8>]| {
        let of = |room: u8| rest.iter().map(move |rest| [&[room | low], &rest[..]].concat());
        ROOMS.into_iter().flat_map(of).collect::<Vec<_>>()
    };
    [with(0, &payloads), with(1, &texts)].concat()
}

/// Plain, hashed, marked, with patterns.
pub fn known_hosts() -> Vec<Vec<u8>> {
    let key = KEY.public().to_openssh();
    let mut all: Vec<String> = [("host", 22), ("host", 2222), ("::1", 22)]
        .into_iter()
        .flat_map(|(host, port)| {
            [false, true].map(|hashed| line(&HostName::new(host, port), KEY.public(), hashed))
        })
        .flatten()
        .collect();
    all.push(format!("@revoked * {key}\n@cert-authority *.example.org {key}\n"));
    all.push(format!("!host,h?st,192.0.2.*,[host]:2222 {key} comment\r\n# comment\n\n"));
    all.extend(public_keys().iter().map(|key| format!("host {}\n", key.to_openssh())));
    all.into_iter().map(String::into_bytes).collect()
}

/// Each cover: arbitrary bytes, a whole stream, a damaged one, in small and large pieces.
pub fn packet() -> Vec<Vec<u8>> {
    let count = u8::try_from(Cover::all().count()).unwrap_or(u8::MAX);
    let messages = b"\x05hello\0\x20a message of several blocks here\x01x";
    let of = |which: u8| {
        let head = |how: u8, flip: u8| [&[which, how, flip, 0, 40][..], messages].concat();
        [head(0, 0), head(1, 0), head(255, 0), head(7, 1), head(255, 0x80)]
    };
    // One that is well formed, for those who look at nothing but that: bare, and before any key.
    let formed = |which: u8| [&[which, 0x20, 0, 0, 0, 12, 10, msg::IGNORE][..], &[0; 10]].concat();
    (0..=count).flat_map(of).chain([count - 1, count].map(formed)).collect()
}

/// Whole files, their containers, an encrypted one.
pub fn private_key() -> Vec<Vec<u8>> {
    let file = |file: &[u8]| [b"\0", file].concat();
    let encrypted = Writer::new()
        .raw(b"\x01\x03openssh-key-v1\0")
        .string("aes256-ctr")
        .string("bcrypt")
        .string(Writer::new().string([7; 16]).u32(1).take())
        .u32(1)
        .string(KEY.public().blob())
        .string([9; 160])
        .take();
    FILES.into_iter().map(file).chain([encrypted, ed25519_container()]).collect()
}

/// A container without encryption (OpenSSH PROTOCOL.key).
fn ed25519_container() -> Vec<u8> {
    let public = KEY.public().blob();
    let raw = public.get(public.len() - 32..).unwrap_or_default();
    let private = Writer::new()
        .raw(&[5; 8])
        .string("ssh-ed25519")
        .string(raw)
        .string([&[1; 32], raw].concat())
        .string("me")
        .raw(&[1, 2, 3, 4, 5, 6])
        .take();
    let head = Writer::new().raw(b"\x01\x03openssh-key-v1\0").string("none").string("none").take();
    let tail = Writer::new().string("").u32(1).string(public).string(private).take();
    [head, tail].concat()
}

/// Blobs and lines of every type, with a signature where it fits.
pub fn public_key() -> Vec<Vec<u8>> {
    let signature = KEY.sign(SigAlg::Ed25519, b"data").expect("an Ed25519 key signs");
    let len = u8::try_from(signature.len()).unwrap_or_default();
    let signature = [&[len][..], &signature].concat();
    let both = |key: PublicKey| {
        let blob = [&[0], &signature[..], key.blob()].concat();
        let line = [&[1], &signature[..], key.to_openssh().as_bytes()].concat();
        [blob, line]
    };
    public_keys().into_iter().flat_map(both).collect()
}

/// Steps of [`Pair::interfere`](crate::pair::Pair): deliver all; messages of every number put in
/// between; a rekey, a change of one byte, a lost and a repeated message, the sides' own acts.
pub fn machine() -> Vec<Vec<u8>> {
    const SETTLE: u8 = 1 << 1;
    let inject = |number: u8| vec![1, SETTLE, 2 << 1, 9, number, 0, 0, 0, 0, 0, 0, 0, 1, SETTLE];
    let each = [1, 2, 3, 4, 5, 6, 7, 20, 21, 30, 50, 51, 52, 60, 80, 81, 82]
        .into_iter()
        .chain(90..=100)
        .chain([192, 193])
        .map(inject);
    let acts = (0..14).map(|what| {
        let [client, server] = [3 << 1, (3 << 1) | 1];
        vec![
            1, SETTLE, client, what, 0x90, SETTLE, server, what, 0x80, SETTLE, client, 0, 0, SETTLE,
        ]
    });
    let between = [
        vec![0, SETTLE],
        vec![3, SETTLE, SETTLE],
        vec![1, 6 << 1, 30, 1, SETTLE],
        vec![1, 0, 1, 4 << 1, SETTLE],
        vec![1, 5 << 1, SETTLE],
        vec![1, 0, 1, 0, 1, 6 << 1, 0, 7, SETTLE],
        vec![1, SETTLE, 3 << 1, 0, 0, 7 << 1, 20, 4, 1, 2, 3, 4, SETTLE],
    ];
    each.chain(acts).chain(between).collect()
}

/// Packets of both sides, without their lengths.
pub fn sftp_codec() -> Vec<Vec<u8>> {
    let attrs = some_attrs();
    let name = Name { name: b"n".to_vec(), longname: b"-rw n".to_vec(), attrs: attrs.clone() };
    let replies = [
        Reply::status(Status::Failure),
        Reply::Handle(sftp_handle()),
        Reply::Data(vec![0; 20]),
        Reply::Names(vec![name.clone(), name]),
        Reply::Attrs(attrs),
        Reply::Extended(vec![0; 32]),
    ];
    let mut seeds: Vec<_> = sftp_requests().iter().map(|request| encoded(request, 4)).collect();
    for reply in replies {
        let mut packet = Vec::new();
        reply.encode(1, &mut packet);
        seeds.push(packet.split_off(4));
    }
    seeds
}

/// One request each, then all of them, behind the two bytes that choose sizes.
pub fn sftp_server() -> Vec<Vec<u8>> {
    let all: Vec<_> = sftp_requests().iter().map(|request| encoded(request, 0)).collect();
    let with_sizes = |packets: &[u8]| [&[40, 10], packets].concat();
    all.iter().map(Vec::as_slice).chain([all.concat().as_slice()]).map(with_sizes).collect()
}

fn encoded(request: &Request, skip: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    request.encode(1, &mut packet);
    packet.split_off(skip)
}

fn sftp_handle() -> Handle {
    Handle::new([0; 8]).expect("eight bytes")
}

fn some_attrs() -> Attrs {
    let (owner, times) = (Some((1, 2)), Some((3, 4)));
    let mut attrs = Attrs { size: Some(5), owner, mode: Some(0o644), times, extended: Vec::new() };
    attrs.set_nanoseconds(6, 7);
    attrs
}

fn sftp_requests() -> Vec<Request> {
    let (handle, attrs, path) = (sftp_handle, some_attrs, || b"p".to_vec());
    let file = PutFile { path: path(), attrs: attrs(), content: vec![0; 9] };
    vec![
        Request::Open { path: path(), flags: OpenFlags::READ, attrs: attrs() },
        Request::Close(handle()),
        Request::Read { handle: handle(), offset: 0, len: 100 },
        Request::Write { handle: handle(), offset: 0, data: vec![0; 100] },
        Request::Setstat(path(), attrs()),
        Request::Fsetstat(handle(), attrs()),
        Request::Realpath(b"/usr/../bin".to_vec()),
        Request::Stat(b"/".to_vec()),
        Request::Readdir(handle()),
        Request::Rename { from: path(), to: path() },
        Request::Extended(Extended::Limits),
        Request::Extended(Extended::ExpandPath(b"~/x".to_vec())),
        Request::Extended(Extended::UsersGroupsById { users: vec![0], groups: vec![0, 1] }),
        Request::Extended(Extended::PutFiles { flags: PutFlags::FSYNC, files: vec![file] }),
        Request::Extended(Extended::BlockHashes {
            handle: handle(),
            offset: 0,
            len: 0,
            block: 65_536,
        }),
        Request::Extended(Extended::Unknown { name: b"x@y".to_vec(), data: vec![1] }),
    ]
}
