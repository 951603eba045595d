//! The name of a file that is not whole yet (R1): the same from the server, for put-files, and from
//! a client that makes part files of its own.

/// The longest name that file systems take, in bytes (`NAME_MAX`).
const LONGEST: usize = 255;
/// Of the hash of a name that is cut, in hexadecimal digits.
const DIGITS: usize = 16;

/// What `name` is called until it is whole: `.<name>.<id>.part`. Where that would be too long,
/// `name` is cut, and ends in a hash of all of it: names that begin alike have parts of their own.
pub fn part_name(name: &[u8], id: &str) -> Vec<u8> {
    let room = LONGEST.saturating_sub(id.len() + ".".len() + ".".len() + ".part".len());
    // One that just fits is cut as well: it could be what another one is cut to.
    let name = if name.len() < room { name.to_vec() } else { cut(name, room) };
    [b".", name.as_slice(), b".", id.as_bytes(), b".part"].concat()
}

/// The beginning of `name` and a hash of all of it, `room` bytes together.
fn cut(name: &[u8], room: usize) -> Vec<u8> {
    let hash = blake3::hash(name).to_hex();
    let hash = hash.get(..DIGITS).unwrap_or_default();
    let head = name.get(..room.saturating_sub(hash.len() + "~".len())).unwrap_or_default();
    [head, b"~", hash.as_bytes()].concat()
}
