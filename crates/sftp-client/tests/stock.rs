//! The same batch by /usr/bin/sftp and by lhsftp, against OpenSSH's server and ours: what they print,
//! how they end and what they leave behind must be the same. Without those programs, skipped by
//! name; under `LONGHAUL_CI`, failed.
//!
//! Differences that are meant, and so are not in the batches: `ls -n` shows numbers as the manual
//! says (9.2 shows names), names with line ends are escaped, braces without a match do not crash.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

const STOCK: &str = "/usr/bin/sftp";
const OURS: &str = env!("CARGO_BIN_EXE_lhsftp");
const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Whether stock programs are here.
fn stock() -> bool {
    need::require(&[STOCK, SERVER])
}

/// Files of many kinds and names, all as old as if made at `now`.
fn plant(top: &Path, now: SystemTime) {
    let at = |name: &str| top.join(name);
    let pattern: Vec<u8> = (0..1_047_552_u32).map(|i| (i % 251) as u8).collect();
    fs::create_dir_all(at("d/sub")).unwrap();
    for (name, len) in [
        ("a1", 10_189),
        ("a2", 1_047_552),
        ("a3", 102_399),
        ("d/f1", 7),
        ("d/.hid", 1),
        ("d/sub/x", 3),
    ] {
        fs::write(at(name), &pattern[..len]).unwrap();
    }
    for name in ["esc\x1b[1mx", "é", "tab\tx", "sp ace", "st*r", "q\"uote", "back\\slash"] {
        fs::write(at(name), name).unwrap();
    }
    for (link, target) in [("ld", "d"), ("dangling", "nowhere"), ("d/lf", "f1")] {
        symlink(target, at(link)).unwrap();
    }
    for name in ["old", "future", "recent"] {
        fs::write(at(name), "").unwrap();
    }
    let day = Duration::from_secs(86_400);
    let age = |name: &str, time| fs::File::open(at(name)).unwrap().set_modified(time).unwrap();
    for name in ["d/f1", "d/.hid", "d/sub/x", "d/sub", "d"] {
        age(name, now);
    }
    for (name, time) in
        [("old", now - 2000 * day), ("future", now + 400 * day), ("recent", now - day)]
    {
        age(name, time);
    }
    // Apart by more than the second that listings tell.
    for (hundreds, name) in (1..).zip(["a3", "a1", "a2"]) {
        age(name, now - hundreds * Duration::from_secs(100));
    }
}

/// All below `top`: path, mode, owner, size or target, content.
fn tree(top: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let stat = path.symlink_metadata().unwrap();
            let content = match stat.file_type() {
                kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
                kind if kind.is_dir() => String::new(),
                _ => checksum(&fs::read(&path).unwrap()),
            };
            let (mode, uid, gid) = (stat.mode(), stat.uid(), stat.gid());
            // Times of files that the batch makes differ by how long it takes.
            let old = stat.mtime() < 1_500_000_000;
            let time = old.then(|| stat.mtime());
            let name = path.strip_prefix(top).unwrap();
            all.push(format!("{name:?} {mode:o} {uid} {gid} {time:?} {content}"));
            if stat.is_dir() {
                open.push(path);
            }
        }
    }
    all.sort();
    all
}

fn checksum(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} {sum:x}", bytes.len())
}

fn run(program: &str, server: &str, options: &[&str], input: &str, at: &Path) -> Output {
    let batch = at.parent().unwrap().join("batch");
    fs::write(&batch, input).unwrap();
    let mut command = Command::new(program);
    command.args(options).arg("-D").arg(server).current_dir(at).env("LC_ALL", "C.UTF-8");
    command.stdin(fs::File::open(&batch).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.output().unwrap()
}

/// What a run printed, left and ended with; its directory in messages is called TOP.
fn trace(
    program: &str,
    server: &str,
    options: &[&str],
    input: &str,
) -> (String, String, Vec<String>) {
    trace_at(SystemTime::now(), (program, server), options, input)
}

/// The same with files of that age.
fn trace_at(
    now: SystemTime,
    (program, server): (&str, &str),
    options: &[&str],
    input: &str,
) -> (String, String, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap().join("top");
    fs::create_dir(&top).unwrap();
    plant(&top, now);
    let input = input.replace("TOP", top.to_str().unwrap());
    let output = run(program, server, options, &input, &top);
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(top.to_str().unwrap(), "TOP");
        text.replace('\r', "")
    };
    let out = format!("{}exit {:?}\n", text(&output.stdout), output.status.code());
    (out, text(&output.stderr), tree(&top))
}

/// Both programs do the same; returns what they print on standard error.
fn same(options: &[&str], input: &str) -> (String, String) {
    let now = SystemTime::now();
    let (want, stock, want_tree) = trace_at(now, (STOCK, SERVER), options, input);
    let (got, ours, got_tree) = trace_at(now, (OURS, SERVER), options, input);
    assert_eq!(got, want, "{input}");
    assert_eq!(got_tree, want_tree, "{input}");
    (stock, ours)
}

/// Every line may fail, so that all are done.
fn all_lines(input: &str) -> String {
    input.lines().map(|line| format!("-{}\n", line.trim_start())).collect()
}

const LISTINGS: &str = "ls
    ls -1
    ls -l
    ls -la d
    ls -a d
    ls -lf d/f1
    ls -1S
    ls -ltr a* old recent future
    ls -1r
    ls -1t a*
    ls -lh a*
    ls -hl old
    ls -l1 old
    ls -1l old
    ls ld
    ls -l ld
    ls d/
    ls -l d*
    ls d/lf
    ls -l d/l*
    ls -l TOP/d
    ls TOP/a?
    ls {d,old}
    ls {a1,a{2,3}}
    ls a[13]
    ls a[!1]
    ls 'st*r'
    ls st\\*r
    ls \"q\\\"uote\"
    ls back\\\\slash
    ls sp\\ ace
    ls no*
    ls nosuch
    ls .*
    ls d/.*
    ls /dev/null
    cd d
    ls
    ls ..
    ls -l sub
    pwd
    cd
    pwd
    cd nosuch
    cd a1
    dir d";

const CHANGES: &str = "mkdir new
    mkdir new
    mkdir no/new
    put a1 new
    put a1 new/other
    put a* new/other
    put a* new
    get new/a* d
    get -P old kept
    put -p old new/kept
    put -R d new/dd
    put -r d new
    get -R new copy
    get -Rp d copy2
    rename a1 a9
    rename a2 d
    rename a3 a2
    rename -l a2 a9
    ln old hard
    ln -s old soft
    symlink old soft2
    chmod 600 a2
    chmod 751 d/s*
    chmod -h 600 soft
    chown 3 a2
    chgrp 4 a2
    chown -h 5 soft
    chgrp 0 no*
    ls -l a2
    rm hard soft
    rm soft*
    rm new/a*
    rmdir new
    rmdir d
    cp a2 copied
    cp d x
    cp a2 no/x
    cd new
    lcd d
    put f1 zz
    get kept
    lcd ..
    cd ..
    lpwd
    lls d
    lls -a d/sub
    lmkdir here
    lmkdir here
    lcd nosuch
    lumask 027
    get a2 masked
    lumask 22
    lumask 9
    get a2 \"x y\"
    put \"x y\" 'q\"u o'
    put q\\\"u\\ o r\\#s
    rm \"q\\\"u*\"
    rm 'x y'
    rm nothing*
    get nothing
    get d
    put d
    put nothing*
    get a* nowhere
    put a* nowhere
    get a2 no/where
    put a2 no/where
    put /proc/version version
    get /proc/version version2
    !echo hello
    !exit 3
    version
    help
    ?
    progress
    bogus
    get
    put
    rename a
    ls -q
    get \"x
    # a comment

    bye
    ls";

const RESUMES: &str = "put a3 part
    put a1 small
    reput a3 part
    reput a3 small
    get small local
    reget a3 local
    get -a a3 a1
    reget a1 a3
    reget nothing
    reput nothing
    reget a3 brandnew
    reput a3 brandnew2
    ls -1";

#[test]
fn listings_are_the_same() {
    if stock() {
        same(&["-b", "-"], &all_lines(LISTINGS));
        same(&["-N", "-b", "-"], &all_lines(LISTINGS));
    }
}

#[test]
fn changes_are_the_same_and_so_are_the_complaints() {
    if stock() {
        let (stock, ours) = same(&["-b", "-"], &all_lines(CHANGES));
        // Of the two ways to say that a file cannot be opened there, ours is always the first.
        let stock = stock.replace("remote open(\"TOP/no/x\")", "remote open \"TOP/no/x\"");
        assert_eq!(ours, stock);
        same(&["-N", "-b", "-"], &all_lines(CHANGES));
    }
}

#[test]
fn resumed_transfers_are_the_same() {
    if stock() {
        same(&["-b", "-"], &all_lines(RESUMES));
        same(&["-a", "-N", "-b", "-"], &all_lines("get a3 a1\nget a1 n\nput a3 a1\nput a1 m"));
    }
}

#[test]
fn a_batch_ends_at_the_first_failure_that_may_not_be() {
    let batches = [
        "pwd\nmkdir d\npwd\n",
        "pwd\n-mkdir d\npwd\n",
        "@pwd\n-@mkdir d\n@-rm nothing\n  @pwd\n",
        "ls\n\n   \n#x\n  # y\n\tpwd\n-#z\n@#z\n",
        "jajaja\npwd\n",
        "-jajaja\npwd\n",
        "get \"x\npwd",
        "ls nosuch\npwd\n",
        "cd nosuch\npwd\n",
        "lcd nosuch\npwd\n",
        "!exit 1\npwd\n",
        "bye\nmkdir d\n",
        "get a1 no/x\npwd\n",
        "rm nothing* a1\npwd",
        "quit",
        "",
        "reget a1 a3\npwd\n",
    ];
    for batch in batches.into_iter().filter(|_| stock()) {
        for options in [&["-b", "-"][..], &[], &["-q"], &["-N", "-b-"]] {
            same(options, batch);
        }
    }
}

/// Exit 0 means that all is there, as sftp(1) has it: so does a batch that goes on after failures.
#[test]
fn r5_r6_a_full_disk_is_told_with_file_and_cause_and_fails_the_batch() {
    for (batch, code) in
        [("get a2 /dev/full\npwd\n", 1), ("-get a2 /dev/full\n", 0), ("get a2 x\n", 0)]
    {
        if stock() {
            let (out, err, _) = trace(OURS, SERVER, &["-b", "-"], batch);
            assert!(out.ends_with(&format!("exit Some({code})\n")), "{batch}: {out}{err}");
            assert!(!out.contains("working directory"), "{out}");
            let told = err.contains("write local \"/dev/full\": No space left on device\n");
            assert_eq!(told, batch.contains("full"), "{err}");
        }
    }
}

/// A server has words for it, or not: the file is named in any case.
#[test]
fn r5_a_full_disk_at_the_server_is_told_with_file_and_cause() {
    let beside = Path::new(OURS).with_file_name("lhsftp-server");
    let beside = beside.to_str().unwrap();
    for (server, cause) in [(SERVER, "Failure"), (beside, "No space left on device")] {
        if need::require(&[server]) {
            let (out, err, _) = trace(OURS, server, &["-b", "-"], "put a2 /dev/full\npwd\n");
            assert!(out.ends_with("exit Some(1)\n"), "{out}{err}");
            assert_eq!(err, format!("write remote \"/dev/full\": {cause}\n"));
        }
    }
}

/// Files of the kernel's own making have the size of a page, whatever is in them.
#[test]
fn files_that_hold_less_than_they_say_are_sent_as_sftp_sends_them() {
    const FILES: &str = "/sys/module/printk/parameters";
    if stock() && need::require(&[FILES]) {
        same(&["-b", "-"], &format!("put {FILES}/time x\n"));
        same(&["-b", "-"], &format!("put -R {FILES} y\n"));
    }
}

/// What NFS reports only at close(2), by strace: the file did not arrive.
#[test]
fn f5_an_error_that_the_local_close_reports_fails_the_get() {
    if !need::require(&["strace", SERVER]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().canonicalize().unwrap().join("here");
    for batch in ["get file here\n", "get -R tree here\n"] {
        fs::create_dir_all(dir.path().join("tree")).unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        fs::write(dir.path().join("tree/file"), "x").unwrap();
        let closed = if batch.contains("tree") { file.join("file") } else { file.clone() };
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(closed);
        strace.args(["-e", "inject=close:error=EDQUOT", OURS, "-b", "-", "-D", SERVER]);
        strace.current_dir(dir.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = strace.spawn().unwrap();
        child.stdin.take().unwrap().write_all(batch.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{batch}: {told}");
        assert!(told.contains("local close") && told.contains("Disk quota exceeded"), "{told}");
        fs::remove_file(&file).unwrap_or(());
    }
}

#[test]
fn a_file_is_not_emptied_by_a_copy_to_itself() {
    let batch = "ln -s a1 soft\nln a1 hard\ncp a3 a2\ncp a1 hard\ncp a1 new\n";
    for (more, code) in [("", 0), ("cp a1 soft\n", 1), ("cp soft a1\n", 1), ("cp a1 a1\n", 1)] {
        if stock() {
            let (out, err, left) = trace(OURS, SERVER, &["-b", "-"], &format!("{batch}{more}"));
            assert!(out.ends_with(&format!("exit Some({code})\n")), "{more}: {out}{err}");
            for (name, size) in [("a1", 10_189), ("hard", 10_189), ("new", 10_189), ("a2", 102_399)]
            {
                let is = |line: &&String| line.starts_with(&format!("\"{name}\" "));
                let line = left.iter().find(is).unwrap();
                assert!(line.contains(&format!(" {size} ")), "{more}: {line}");
            }
        }
    }
}

/// Its SIGINTs are the child's, however many: the terminal sends them to both.
#[test]
fn a_command_of_the_shell_may_be_interrupted_twice() {
    if stock() {
        let twice = "!kill -INT $PPID; sleep 0.05; kill -INT $PPID; sleep 0.05; echo alive\npwd\n";
        let (out, err, _) = trace(OURS, SERVER, &["-b", "-"], twice);
        assert!(out.contains("alive\n") && out.ends_with("exit Some(0)\n"), "{out}{err}");
        assert!(out.contains("Remote working directory") && !err.contains("Interrupt"), "{err}");
    }
}

#[test]
fn sizes_of_requests_make_no_difference() {
    for (buffer, requests) in [("5", "1"), ("1000", "3"), ("32768", "64"), ("64000", "2")] {
        if stock() {
            let options = ["-B", buffer, "-R", requests, "-b", "-"];
            let input = if buffer == "5" { "get a1 x\nput x y\n" } else { "get a2 x\nput x y\n" };
            same(&options, input);
        }
    }
}

#[test]
fn servers_that_do_not_start_are_told_as_sftp_tells_them() {
    for server in ["/bin/false", "/bin/true", "/nonexistent/server"] {
        if stock() {
            // A server that is gone too soon kills sftp by SIGPIPE, before it can say anything.
            let told = |(said, _, _): &(String, String, _)| !said.contains("exit None");
            let tries = (0..20).map(|_| trace(STOCK, server, &["-b", "-"], "pwd\n"));
            let Some((stock, _, _)) = tries.into_iter().find(told) else { continue };
            let (ours, why, _) = trace(OURS, server, &["-b", "-"], "pwd\n");
            assert_eq!(ours, stock, "{server}");
            assert!(!why.is_empty());
        }
    }
}
