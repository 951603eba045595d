//! `ls`: a directory's contents, or the files of a pattern.

use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::glob::{self, Found};
use crate::listing::{Item, View};
use crate::paths::{below, join};
use crate::session::{Session, columns};
use crate::words::Word;
use sftp::codec::{Attrs, Name};

impl Session {
    /// The files of a pattern, or the current directory.
    pub(crate) fn ls(&mut self, view: View, files: Option<&Word>) -> Result<()> {
        let Some(files) = files else {
            return self.ls_directory(view, &self.directory, Some(&self.directory));
        };
        let pattern = self.pattern(files);
        // Relative paths are shown as such.
        let relative = !files.pattern().starts_with(b"/");
        let from = relative.then(|| self.directory.clone());
        match glob::expand_braces(&self.files, &pattern)?.as_slice() {
            [] => {
                let pattern = shown(&pattern);
                Err(Failure::Because(format!("Can't ls: \"{pattern}\" not found")))
            }
            [one] if one.is_directory => self.ls_directory(view, &one.path, from.as_deref()),
            found => self.ls_found(view, found, from.as_deref()),
        }
    }

    fn ls_directory(&self, view: View, directory: &[u8], from: Option<&[u8]>) -> Result<()> {
        let mut listing = self.files.open_listing(directory)?;
        let item = |name: Name| item(view, directory, from, name);
        if view.is_as_it_comes() {
            while let Some(names) = listing.next()?.filter(|_| !self.mover.is_interrupted()) {
                let items: Vec<Item> = names.into_iter().filter_map(item).collect();
                self.show(view, items, 0)?;
            }
            return Ok(());
        }
        let names = listing.all(view.long && !self.files.knows_names())?;
        let items: Vec<Item> = names.into_iter().filter_map(item).collect();
        let longest = items.iter().map(|item| item.name.len()).max();
        self.show(view, items, longest.unwrap_or(0))
    }

    fn ls_found(&self, view: View, found: &[Found<Attrs>], from: Option<&[u8]>) -> Result<()> {
        let item = |found: &Found<Attrs>| Item {
            name: seen(&found.path, from).to_vec(),
            attrs: Some(found.stat.clone()),
            longname: None,
        };
        let items = found.iter().map(item).collect();
        // As sftp(1) counts: by the whole path, though less of it may be shown.
        let longest = found.iter().map(|found| found.path.len()).max();
        self.show(view, items, longest.unwrap_or(0))
    }

    fn show(&self, view: View, mut items: Vec<Item>, longest: usize) -> Result<()> {
        view.sort(&mut items);
        if !view.long {
            return self.print(&view.short(&items, longest, columns().unwrap_or(80)));
        }
        let names = match view.numeric {
            true => None,
            false => self.files.names(items.iter().filter_map(|item| item.attrs.as_ref()))?,
        };
        let now = sftp::longname::now();
        let lines = items.iter().map(|item| view.long(item, names.as_ref(), now) + "\n");
        self.print(&lines.collect::<String>())
    }
}

/// A name of a directory, if it is to be seen.
fn item(view: View, directory: &[u8], from: Option<&[u8]>, name: Name) -> Option<Item> {
    let Name { name, longname, attrs } = name;
    let longname = Some(longname).filter(|line| !line.is_empty());
    let is_seen = view.all || !name.starts_with(b".");
    let name = seen(&join(directory, &name), from).to_vec();
    is_seen.then_some(Item { name, attrs: Some(attrs), longname })
}

/// A path as it is shown: what of it is below a directory that it is relative to.
fn seen<'a>(path: &'a [u8], from: Option<&[u8]>) -> &'a [u8] {
    from.map_or(path, |from| below(path, from))
}
