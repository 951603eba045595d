//! `ls`: a directory's contents, or the files of a pattern.

use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::glob::{self, Found};
use crate::listing::{Item, View};
use crate::paths::{below, join};
use crate::session::{Session, columns};
use crate::words::Word;
use sftp::codec::{Attrs, Name};
use std::time::SystemTime;

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
        match glob::expand_braces(&self.files, &pattern).as_slice() {
            [] => {
                let pattern = shown(&pattern);
                Err(Failure::Because(format!("Can't ls: \"{pattern}\" not found")))
            }
            [one] if one.is_directory => self.ls_directory(view, &one.path, from.as_deref()),
            found => self.ls_found(view, found, from.as_deref()),
        }
    }

    fn ls_directory(&self, view: View, directory: &[u8], from: Option<&[u8]>) -> Result<()> {
        let entries = self.files.list(directory)?;
        let visible = entries.into_iter().filter(|e| view.all || !e.name.starts_with(b"."));
        let mut items: Vec<Item> = visible
            .map(|Name { name, longname, attrs }| Item {
                name: seen(&join(directory, &name), from).to_vec(),
                attrs: Some(attrs),
                longname: Some(longname),
            })
            .collect();
        let longest = items.iter().map(|item| item.name.len()).max();
        self.show(view, &mut items, longest.unwrap_or(0))
    }

    fn ls_found(&self, view: View, found: &[Found<Attrs>], from: Option<&[u8]>) -> Result<()> {
        let item = |found: &Found<Attrs>| Item {
            name: seen(&found.path, from).to_vec(),
            attrs: Some(found.stat.clone()),
            longname: None,
        };
        let mut items: Vec<Item> = found.iter().map(item).collect();
        // As sftp(1) counts: by the whole path, though less of it may be shown.
        let longest = found.iter().map(|found| found.path.len()).max();
        self.show(view, &mut items, longest.unwrap_or(0))
    }

    fn show(&self, view: View, items: &mut [Item], longest: usize) -> Result<()> {
        view.sort(items);
        if !view.long {
            return self.print(&view.short(items, longest, columns().unwrap_or(80)));
        }
        let names = match view.numeric {
            true => None,
            false => self.files.names(items.iter().filter_map(|item| item.attrs.as_ref()))?,
        };
        let now = SystemTime::now();
        let lines = items.iter().map(|item| view.long(item, names.as_ref(), now) + "\n");
        self.print(&lines.collect::<String>())
    }
}

/// A path as it is shown: what of it is below a directory that it is relative to.
fn seen<'a>(path: &'a [u8], from: Option<&[u8]>) -> &'a [u8] {
    from.map_or(path, |from| below(path, from))
}
