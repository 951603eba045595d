//! Both ways over the wire, and what is not whole or not true.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn handle() -> impl Strategy<Value = Handle> {
    vec(any::<u8>(), 0..=8).prop_map(|bytes| Handle::new(bytes).unwrap())
}

fn pairs() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    vec((bytes(), bytes()), 0..3)
}

fn attrs() -> impl Strategy<Value = Attrs> {
    let owner = any::<Option<(u32, u32)>>();
    let times = any::<Option<(u32, u32)>>();
    (any::<Option<u64>>(), owner, any::<Option<u32>>(), times, pairs()).prop_map(
        |(size, owner, mode, times, extended)| Attrs { size, owner, mode, times, extended },
    )
}

fn extended() -> impl Strategy<Value = Extended> {
    let number = any::<u64>;
    let put = (bytes(), attrs(), bytes()).prop_map(|(path, attrs, content)| PutFile {
        path,
        attrs,
        content,
    });
    let get = (bytes(), any::<u32>()).prop_map(|(path, most)| GetFile { path, most });
    prop_oneof![
        (bytes(), bytes()).prop_map(|(from, to)| Extended::PosixRename { from, to }),
        (bytes(), bytes()).prop_map(|(from, to)| Extended::Hardlink { from, to }),
        bytes().prop_map(Extended::Statvfs),
        bytes().prop_map(Extended::ExpandPath),
        bytes().prop_map(Extended::HomeDirectory),
        handle().prop_map(Extended::Fstatvfs),
        handle().prop_map(Extended::Fsync),
        handle().prop_map(Extended::GetXattrs),
        (bytes(), attrs()).prop_map(|(path, attrs)| Extended::Lsetstat(path, attrs)),
        Just(Extended::Limits),
        (handle(), number(), number(), handle(), number()).prop_map(
            |(from, from_offset, len, to, to_offset)| Extended::CopyData {
                from,
                from_offset,
                len,
                to,
                to_offset
            }
        ),
        (vec(any::<u32>(), 0..5), vec(any::<u32>(), 0..5))
            .prop_map(|(users, groups)| Extended::UsersGroupsById { users, groups }),
        (handle(), number(), number(), any::<u32>()).prop_map(|(handle, offset, len, block)| {
            Extended::BlockHashes { handle, offset, len, block }
        }),
        (any::<u32>(), vec(put, 0..4))
            .prop_map(|(flags, files)| Extended::PutFiles { flags: PutFlags(flags), files }),
        vec(get, 0..4).prop_map(Extended::GetFiles),
        (handle(), number()).prop_map(|(handle, offset)| Extended::SparseMap { handle, offset }),
        (handle(), pairs()).prop_map(|(handle, pairs)| Extended::SetXattrs(handle, pairs)),
        bytes().prop_map(|data| Extended::Unknown { name: b"x@y".to_vec(), data }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let path = bytes;
    prop_oneof![
        (path(), any::<u32>(), attrs()).prop_map(|(path, flags, attrs)| Request::Open {
            path,
            flags: OpenFlags(flags),
            attrs
        }),
        handle().prop_map(Request::Close),
        (handle(), any::<u64>(), any::<u32>()).prop_map(|(handle, offset, len)| Request::Read {
            handle,
            offset,
            len
        }),
        (handle(), any::<u64>(), bytes()).prop_map(|(handle, offset, data)| Request::Write {
            handle,
            offset,
            data
        }),
        path().prop_map(Request::Lstat),
        handle().prop_map(Request::Fstat),
        (path(), attrs()).prop_map(|(path, attrs)| Request::Setstat(path, attrs)),
        (handle(), attrs()).prop_map(|(handle, attrs)| Request::Fsetstat(handle, attrs)),
        path().prop_map(Request::Opendir),
        handle().prop_map(Request::Readdir),
        path().prop_map(Request::Remove),
        (path(), attrs()).prop_map(|(path, attrs)| Request::Mkdir(path, attrs)),
        path().prop_map(Request::Rmdir),
        path().prop_map(Request::Realpath),
        path().prop_map(Request::Stat),
        (path(), path()).prop_map(|(from, to)| Request::Rename { from, to }),
        path().prop_map(Request::Readlink),
        (path(), path()).prop_map(|(target, link)| Request::Symlink { target, link }),
        extended().prop_map(Request::Extended),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let name = (bytes(), bytes(), attrs()).prop_map(|(name, longname, attrs)| Name {
        name,
        longname,
        attrs,
    });
    prop_oneof![
        (any::<u32>(), bytes())
            .prop_map(|(code, text)| Reply::Status { code: Status::of(code), text }),
        handle().prop_map(Reply::Handle),
        bytes().prop_map(Reply::Data),
        vec(name, 0..5).prop_map(Reply::Names),
        attrs().prop_map(Reply::Attrs),
        bytes().prop_map(Reply::Extended),
    ]
}

/// The packet after its length field, which must be right.
fn body(packet: &[u8]) -> &[u8] {
    let (len, body) = packet.split_first_chunk().unwrap();
    assert_eq!(packet_length(*len), Ok(body.len()));
    body
}

/// Whether what ends earlier or later than it should is refused; some end in bytes of any number.
fn open_ended(request: &Request) -> bool {
    matches!(request, Request::Extended(Extended::Unknown { .. }))
}

proptest! {
    #[test]
    fn requests_survive_the_wire(id: u32, request in request()) {
        let mut packet = Vec::new();
        request.encode(id, &mut packet);
        prop_assert_eq!(Request::parse(body(&packet)), Ok((id, request)));
    }

    #[test]
    fn replies_survive_the_wire(id: u32, reply in reply()) {
        let mut packet = Vec::new();
        reply.encode(id, &mut packet);
        prop_assert_eq!(Reply::parse(body(&packet)), Ok((id, reply)));
    }

    #[test]
    fn f6_requests_cut_or_extended_are_refused(request in request(), cut in 0usize..100) {
        let mut packet = Vec::new();
        request.encode(7, &mut packet);
        let body = body(&packet);
        if !open_ended(&request) {
            prop_assert!(Request::parse(&[body, b"\0"].concat()).is_err());
            let cut = cut % body.len();
            prop_assert!(Request::parse(&body[..cut]).is_err(), "cut to {}", cut);
        }
    }

    #[test]
    fn f6_replies_cut_or_extended_are_refused(reply in reply(), cut in 0usize..100) {
        let mut packet = Vec::new();
        reply.encode(7, &mut packet);
        let body = body(&packet);
        let cut = cut % body.len();
        match reply {
            Reply::Extended(_) => {}
            // Text and language may be missing, as old servers have it.
            Reply::Status { .. } => {
                prop_assert!(Reply::parse(&[body, b"\0"].concat()).is_err());
                prop_assert!(cut >= 9 || Reply::parse(&body[..cut]).is_err());
            }
            _ => {
                prop_assert!(Reply::parse(&[body, b"\0"].concat()).is_err());
                prop_assert!(Reply::parse(&body[..cut]).is_err(), "cut to {}", cut);
            }
        }
    }

    #[test]
    fn f6_any_bytes_are_a_value_or_malformed(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (Request::parse(&bytes), Reply::parse(&bytes), Hello::parse_init(&bytes));
        let _ = (Hello::parse_version(&bytes), WriteHead::parse(&bytes));
        let _ = (Limits::parse(&bytes), Statvfs::parse(&bytes), Groups::parse(&bytes));
        let _ = (BlockHashes::parse(&bytes), FileStatus::parse_list(&bytes));
        let _ = (FileContent::parse_list(&bytes), SparseMap::parse(&bytes), Xattrs::parse(&bytes));
    }

    /// A head that says what a whole packet says, wherever the bytes that are there end.
    #[test]
    fn heads_of_write_agree_with_the_request(
        id: u32, handle in handle(), offset: u64, data in vec(any::<u8>(), 0..50), cut in 0usize..100
    ) {
        let len = u32::try_from(data.len()).unwrap();
        let head = WriteHead { id, handle: handle.clone(), offset, len };
        let (mut of_head, mut packet) = (Vec::new(), Vec::new());
        head.encode(&mut of_head);
        of_head.extend_from_slice(&data);
        Request::Write { handle, offset, data: data.clone() }.encode(id, &mut packet);
        prop_assert_eq!(&of_head, &packet);
        let used = packet.len() - data.len();
        let cut = cut.min(packet.len());
        let expected = (cut >= used).then_some((head, used));
        prop_assert_eq!(WriteHead::parse(&packet[..cut]), Ok(expected));
    }

    #[test]
    fn heads_of_data_agree_with_the_reply(id: u32, data in bytes()) {
        let head = DataHead { id, len: u32::try_from(data.len()).unwrap() };
        let mut packet = Vec::new();
        Reply::Data(data.clone()).encode(id, &mut packet);
        prop_assert_eq!([&head.encode()[..], &data].concat(), packet);
        prop_assert_eq!(DataHead::parse(&head.encode()), Ok(head));
    }

    #[test]
    fn hellos_survive_the_wire(version: u32, extensions in pairs()) {
        let hello = Hello { version, extensions };
        let (mut init, mut answer) = (Vec::new(), Vec::new());
        hello.encode_init(&mut init);
        hello.encode_version(&mut answer);
        prop_assert_eq!(Hello::parse_init(body(&init)), Ok(hello.clone()));
        prop_assert_eq!(Hello::parse_version(body(&answer)), Ok(hello));
        prop_assert!(Hello::parse_version(body(&init)).is_err());
    }

    #[test]
    fn contents_of_extended_replies_survive_the_wire(
        numbers: [u64; 11], names in vec(bytes(), 0..4), hashes in vec(any::<[u8; 32]>(), 0..4),
        code: u32, attrs in attrs(), pairs in pairs(), data in vec(any::<(u64, u64)>(), 0..4)
    ) {
        let [packet, read, write, handles, ..] = numbers;
        let limits = Limits { packet, read, write, handles };
        prop_assert_eq!(Limits::parse(&limits.encode()), Ok(limits));
        let [bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax] =
            numbers;
        let statvfs = Statvfs {
            bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax,
        };
        prop_assert_eq!(Statvfs::parse(&statvfs.encode()), Ok(statvfs));
        let groups = Groups { users: names.clone(), groups: names.clone() };
        prop_assert_eq!(Groups::parse(&groups.encode()), Ok(groups));
        let hashes = BlockHashes { hashed: packet, hashes };
        prop_assert_eq!(BlockHashes::parse(&hashes.encode()), Ok(hashes));
        let statuses: Vec<_> =
            names.iter().map(|n| FileStatus { code: Status::of(code), text: n.clone() }).collect();
        prop_assert_eq!(FileStatus::parse_list(&FileStatus::encode_list(&statuses)), Ok(statuses));
        let contents: Vec<_> = names
            .iter()
            .map(|n| FileContent { code: Status::of(code), attrs: attrs.clone(), content: n.clone() })
            .collect();
        prop_assert_eq!(
            FileContent::parse_list(&FileContent::encode_list(&contents)), Ok(contents)
        );
        let map = SparseMap { size: packet, data };
        prop_assert_eq!(SparseMap::parse(&map.encode()), Ok(map));
        prop_assert_eq!(Xattrs::parse(&Xattrs(pairs.clone()).encode()), Ok(Xattrs(pairs)));
    }
}

#[test]
fn f6_lengths_are_checked_before_anything_is_kept() {
    let field = |len: usize| u32::try_from(len).unwrap().to_be_bytes();
    assert_eq!(packet_length(field(1)), Ok(1));
    assert_eq!(packet_length(field(MAX_PACKET)), Ok(MAX_PACKET));
    assert!(packet_length(field(0)).is_err());
    assert!(packet_length(field(MAX_PACKET + 1)).is_err());
    assert!(packet_length([0xff; 4]).is_err());
}

/// A count that no packet could hold costs no memory.
#[test]
fn f6_a_count_of_four_billion_names_is_malformed_at_once() {
    let names = [&[kind::NAME, 0, 0, 0, 1][..], &[0xff; 4]].concat();
    assert!(Reply::parse(&names).is_err());
    assert!(SparseMap::parse(&[0xff; 12]).is_err());
}

#[test]
fn f7_a_handle_of_257_bytes_is_malformed() {
    assert!(Handle::new(vec![0; 256]).is_ok());
    assert!(Handle::new(vec![0; 257]).is_err());
    let mut head = Vec::new();
    WriteHead { id: 1, handle: Handle::new(vec![0; 256]).unwrap(), offset: 0, len: 3 }
        .encode(&mut head);
    assert_eq!(head.len(), WRITE_HEAD);
    head[11..13].copy_from_slice(&[1, 1]);
    assert!(WriteHead::parse(&head).is_err());
}

/// The data of a WRITE does not reach beyond its packet; DATA is all there is in its own.
#[test]
fn f6_a_write_whose_lengths_disagree_is_malformed() {
    let head = WriteHead { id: 1, handle: Handle::new(*b"h").unwrap(), offset: 0, len: 100 };
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    assert_eq!(head.surplus(&bytes), 0);
    for (change, surplus) in [(99, Some(1)), (0, Some(100)), (101, None)] {
        *bytes.last_mut().unwrap() = change;
        let read = WriteHead::parse(&bytes).ok().flatten();
        assert_eq!(read.map(|(head, _)| head.surplus(&bytes)), surplus);
    }
    let mut data = DataHead { id: 1, len: 100 }.encode();
    data[12] = 99;
    assert!(DataHead::parse(&data).is_err());
}

#[test]
fn statuses_have_the_numbers_of_the_draft() {
    for code in 0..20 {
        assert_eq!(Status::of(code).code(), code);
    }
    assert_eq!((Status::Unsupported.code(), Status::of(9)), (8, Status::Other(9)));
}

#[test]
fn nanoseconds_are_told_once_and_must_be_sane() {
    let mut attrs = Attrs::default();
    assert_eq!(attrs.nanoseconds(), None);
    attrs.set_nanoseconds(1, 999_999_999);
    assert_eq!(attrs.nanoseconds(), Some((1, 999_999_999)));
    attrs.set_nanoseconds(1, 1_000_000_000);
    assert_eq!((attrs.nanoseconds(), attrs.extended.len()), (None, 1));
}
