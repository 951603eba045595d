//! A name as `ls -l` has it: what clients show their users.

use super::names::Names;
use crate::longname::{mode, time};
use rustix::fs::Stat;

/// The line for `name`; `now` in seconds since 1970.
pub(super) fn longname(name: &[u8], stat: &Stat, names: &Names, now: i64) -> Vec<u8> {
    let user = names.user(stat.st_uid).unwrap_or_else(|| stat.st_uid.to_string());
    let group = names.group(stat.st_gid).unwrap_or_else(|| stat.st_gid.to_string());
    let (mode, links, size) = (mode(stat.st_mode), stat.st_nlink, stat.st_size);
    let time = time(stat.st_mtime, now);
    let line = format!("{mode}  {links:>3} {user:<8} {group:<8} {size:>8} {time} ");
    [line.as_bytes(), name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::longname::now;

    /// Against the program itself.
    #[test]
    fn a_line_is_what_ls_says() {
        let names = Names::default();
        let stat = rustix::fs::lstat("/etc/passwd").unwrap();
        let ours = String::from_utf8(longname(b"/etc/passwd", &stat, &names, now())).unwrap();
        let ls = std::process::Command::new("ls")
            .args(["-l", "/etc/passwd"])
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&ours), words(&String::from_utf8(ls.stdout).unwrap()));
    }
}
