//! What `ls` and `df` print.

use crate::escape::shown;
use sftp::codec::{Attrs, Groups, Statvfs};
use sftp::longname::{mode, time};
use std::cmp::Ordering;
use std::collections::HashMap;

/// How names are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// One name a line (`-1`).
    pub(crate) single: bool,
    /// Mode, owner, size, time (`-l`).
    pub(crate) long: bool,
    /// Users and groups as numbers (`-n`).
    pub(crate) numeric: bool,
    /// Names with a dot in front too (`-a`).
    pub(crate) all: bool,
    /// Sizes with units (`-h`).
    pub(crate) human: bool,
    /// The other way round (`-r`).
    pub(crate) reverse: bool,
    /// In which order (`-f`, `-S`, `-t`).
    pub(crate) order: Order,
}

/// The order of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Name,
    /// The largest first.
    Size,
    /// The latest first.
    Time,
    AsListed,
}

/// A line of a listing.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// As it is shown.
    pub(crate) name: Vec<u8>,
    /// What is known of it; nothing, if the server could not say.
    pub(crate) attrs: Option<Attrs>,
    /// As the server would print it.
    pub(crate) longname: Option<Vec<u8>>,
}

/// Names of users and groups of the server.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) users: HashMap<u32, Vec<u8>>,
    pub(crate) groups: HashMap<u32, Vec<u8>>,
}

impl Names {
    /// Those that the server has an answer for; an empty name is none.
    pub(crate) fn new(users: &[u32], groups: &[u32], answer: Groups) -> Self {
        let pairs = |ids: &[u32], names: Vec<Vec<u8>>| {
            let pairs = ids.iter().copied().zip(names);
            pairs.filter(|(_, name)| !name.is_empty()).collect()
        };
        Self { users: pairs(users, answer.users), groups: pairs(groups, answer.groups) }
    }

    /// Some more of them.
    pub(crate) fn add(&mut self, more: Self) {
        self.users.extend(more.users);
        self.groups.extend(more.groups);
    }
}

impl View {
    /// Neither order nor width depend on what is still to come.
    pub(crate) fn is_as_it_comes(self) -> bool {
        self.order == Order::AsListed && (self.long || self.single)
    }

    /// Puts items into the order asked for.
    pub(crate) fn sort(self, items: &mut [Item]) {
        let time = |item: &Item| item.attrs.as_ref().and_then(|a| a.times).map(|(_, mtime)| mtime);
        let size = |item: &Item| item.attrs.as_ref().and_then(|a| a.size);
        let compare = |a: &Item, b: &Item| match self.order {
            Order::Name => a.name.cmp(&b.name),
            Order::Size => size(b).cmp(&size(a)),
            Order::Time => time(b).cmp(&time(a)),
            Order::AsListed => Ordering::Equal,
        };
        let backwards = self.reverse && self.order != Order::AsListed;
        items.sort_by(|a, b| if backwards { compare(b, a) } else { compare(a, b) });
    }

    /// The listing in short form, for a terminal of `width` columns: as many names a line as fit
    /// when all are as long as the longest.
    pub(crate) fn short(self, items: &[Item], longest: usize, width: usize) -> String {
        let columns = if self.single { 1 } else { (width / (longest + 2)).max(1) };
        let space = if self.single { 0 } else { width / columns };
        let mut out = String::new();
        for line in items.chunks(columns) {
            for item in line {
                out += &shown(&item.name);
                // By bytes, as sftp(1) counts.
                out.extend(std::iter::repeat_n(' ', space.saturating_sub(item.name.len())));
            }
            out.push('\n');
        }
        out
    }

    /// A line of the long form. With `names` the line is ours, otherwise the server's.
    pub(crate) fn long(self, item: &Item, names: Option<&Names>, now: i64) -> String {
        let ours = names.is_some() || self.numeric || self.human || item.longname.is_none();
        match (&item.attrs, &item.longname) {
            (_, Some(line)) if !ours => shown(line),
            (Some(attrs), _) => self.line(&item.name, attrs, names, now),
            (None, line) => shown(line.as_ref().unwrap_or(&item.name)),
        }
    }

    fn line(self, name: &[u8], attrs: &Attrs, names: Option<&Names>, now: i64) -> String {
        let (uid, gid) = attrs.owner.unwrap_or_default();
        let known = |names: Option<&HashMap<u32, Vec<u8>>>, id: u32| match names {
            Some(names) if !self.numeric => names.get(&id).map(|name| shown(name)),
            _ => None,
        };
        let user = known(names.map(|n| &n.users), uid).unwrap_or_else(|| uid.to_string());
        let group = known(names.map(|n| &n.groups), gid).unwrap_or_else(|| gid.to_string());
        let size = attrs.size.unwrap_or(0);
        let size = if self.human { scaled(size) } else { size.to_string() };
        let mode = mode(attrs.mode.unwrap_or(0));
        let time = time(attrs.times.map_or(0, |(_, mtime)| mtime.into()), now);
        format!("{mode}    ? {user:<8} {group:<8} {size:>8} {time} {}", shown(name))
    }
}

/// A size in at most four digits and a unit, powers of 1024, as OpenBSD's fmt_scaled(3).
pub(crate) fn scaled(size: u64) -> String {
    const UNITS: [char; 7] = ['B', 'K', 'M', 'G', 'T', 'P', 'E'];
    let mut unit = 0;
    while unit + 1 < UNITS.len() && size >> (10 * unit) >= 1024 {
        unit += 1;
    }
    let letter = UNITS.get(unit).copied().unwrap_or('E');
    let mut whole = size >> (10 * unit);
    // 1024ths of the unit, rounded down, as tenths.
    let fraction = if unit == 0 { 0 } else { (size >> (10 * (unit - 1))) & 1023 };
    let mut tenths = (10 * fraction + 512) / 1024;
    if tenths == 10 {
        (whole, tenths) = (whole + 1, 0);
    }
    if unit == 0 || whole >= 100 {
        format!("{}{letter}", whole + u64::from(tenths >= 5))
    } else {
        format!("{whole}.{tenths}{letter}")
    }
}

/// What `df` prints.
pub(crate) fn space(of: &Statvfs, human: bool, inodes: bool) -> String {
    let percent = |used: u64, all: u64| match all {
        0 => "ERR".to_owned(),
        all => format!("{:3}%", u128::from(used) * 100 / u128::from(all)),
    };
    let used = of.blocks.saturating_sub(of.bfree);
    let bytes = |blocks: u64| blocks.saturating_mul(of.frsize);
    let [all, full, free, root] = [of.blocks, used, of.bavail, of.bfree].map(bytes);
    let part = percent(used, of.blocks);
    if inodes {
        let used = of.files.saturating_sub(of.ffree);
        let (part, free, root) = (percent(used, of.files), of.favail, of.ffree);
        let head = "     Inodes        Used       Avail      (root)    %Capacity";
        format!("{head}\n{:11} {used:11} {free:11} {root:11}         {part}\n", of.files)
    } else if human {
        let [all, full, free, root] = [all, full, free, root].map(scaled);
        let head = "    Size     Used    Avail   (root)    %Capacity";
        format!("{head}\n{all:>7}B {full:>7}B {free:>7}B {root:>7}B         {part}\n")
    } else {
        let [all, full, free, root] = [all, full, free, root].map(|bytes| bytes / 1024);
        let head = "        Size         Used        Avail       (root)    %Capacity";
        format!("{head}\n{all:12} {full:12} {free:12} {root:12}         {part}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, size: u64, mtime: u32) -> Item {
        let attrs = Attrs {
            size: Some(size),
            owner: Some((0, 7)),
            mode: Some(0o100_644),
            times: Some((0, mtime)),
            extended: Vec::new(),
        };
        Item { name: name.into(), attrs: Some(attrs), longname: None }
    }

    fn sorted(view: View) -> String {
        let mut items = [item("b", 1, 30), item("a", 3, 10), item("c", 2, 20)];
        view.sort(&mut items);
        items.iter().map(|item| String::from_utf8(item.name.clone()).unwrap()).collect()
    }

    #[test]
    fn orders_are_those_of_the_flags() {
        let view = View::default();
        assert_eq!(sorted(view), "abc");
        assert_eq!(sorted(View { reverse: true, ..view }), "cba");
        assert_eq!(sorted(View { order: Order::Size, ..view }), "acb");
        assert_eq!(sorted(View { order: Order::Time, ..view }), "bca");
        assert_eq!(sorted(View { order: Order::Time, reverse: true, ..view }), "acb");
        assert_eq!(sorted(View { order: Order::AsListed, reverse: true, ..view }), "bac");
    }

    #[test]
    fn names_stand_in_columns() {
        let items = ["f1", "lf", "sub"].map(|name| item(name, 0, 0));
        let view = View::default();
        assert_eq!(view.short(&items, 3, 80), "f1   lf   sub  \n");
        assert_eq!(view.short(&items, 3, 11), "f1   lf   \nsub  \n");
        assert_eq!(view.short(&items, 3, 1), "f1\nlf\nsub\n");
        assert_eq!(View { single: true, ..view }.short(&items, 3, 80), "f1\nlf\nsub\n");
        assert_eq!(view.short(&[], 0, 80), "");
    }

    #[test]
    fn long_lines_are_ours_when_we_know_the_names() {
        let now = 1_700_000_000;
        let mut file = item("x", 2048, 1_000_000_000);
        let names = Names { users: HashMap::from([(0, b"root".to_vec())]), ..Names::default() };
        let view = View::default();
        let line = view.long(&file, Some(&names), now);
        assert_eq!(line, "-rw-r--r--    ? root     7            2048 Sep  9  2001 x");
        file.longname = Some(b"as the server has it\x1b".to_vec());
        assert_eq!(view.long(&file, None, now), "as the server has it\\033");
        let numeric = View { numeric: true, human: true, ..view }.long(&file, Some(&names), now);
        assert_eq!(numeric, "-rw-r--r--    ? 0        7            2.0K Sep  9  2001 x");
    }

    #[test]
    fn sizes_have_units() {
        for (size, want) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (10_000, "9.8K"),
            (10_189, "10.0K"),
            (102_399, "100K"),
            (500 << 20, "500M"),
            (u64::MAX, "16.0E"),
        ] {
            assert_eq!(scaled(size), want, "{size}");
        }
    }
}
