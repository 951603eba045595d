//! Files that another process holds a lease on, as NFS servers and Samba do (fcntl(2)).

use crate::peer::*;
use sftp::codec::*;
use std::fs;

#[test]
fn a_file_under_a_lease_is_waited_for() {
    let mut peer = Peer::new("");
    let requests = [
        Request::Open { path: b"f".to_vec(), flags: OpenFlags::READ, attrs: Attrs::default() },
        Request::Open {
            path: b"f".to_vec(),
            flags: OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE,
            attrs: Attrs::default(),
        },
        Request::Setstat(b"f".to_vec(), Attrs { size: Some(2), ..Attrs::default() }),
        Request::Extended(Extended::GetFiles(vec![GetFile { path: b"f".to_vec(), most: 100 }])),
    ];
    for request in requests {
        // Another file each time: a lease is for whom nobody else has it open.
        let _ = fs::remove_file(peer.path("f"));
        fs::write(peer.path("f"), "content").unwrap();
        let Some(_lease) = need::lease(&peer.path("f")) else { return };
        match peer.call(request.clone()) {
            Reply::Status { code, text } => {
                let text = String::from_utf8_lossy(&text);
                assert_eq!(code, Status::Ok, "{request:?}: {text}");
            }
            Reply::Extended(content) => {
                let files = FileContent::parse_list(&content).unwrap();
                assert_eq!((files[0].code, &files[0].content[..]), (Status::Ok, &b"content"[..]));
            }
            reply => assert!(matches!(reply, Reply::Handle(_)), "{request:?}: {reply:?}"),
        }
    }
}
