//! Link: a symbolic link is made beside its name and takes it, like any file (R1).

use super::super::copying::Delayed;
use super::super::meta::{Identity, Kind, Setting};
use super::super::names;
use super::super::side::{Answered, Ask, Fault, Told};
use super::{At, FileId, Lane, What};

impl Lane<'_> {
    pub(super) fn read_link(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let from = file.entry().from.clone();
        self.ask_for(At::Source, Ask::Readlink(from), id, What::LinkRead);
    }

    pub(super) fn linked(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let entry = file.entry().clone();
        let link = names::part_beside(&entry.to, &self.copying.id);
        match (what, answer) {
            (What::LinkRead, Ok(Told::Names(names))) => {
                let Some(name) = names.into_iter().next() else {
                    return self.fail(id, Fault::other("a link that leads nowhere").at(At::Source));
                };
                // What a run that broke off may have left.
                self.ask(At::Target, Ask::Remove(link.clone()), id, What::Whatever);
                let ask = Ask::Symlink { target: name.name, link };
                self.ask_for(At::Target, ask, id, What::Linked);
            }
            (What::Linked, Ok(_)) if self.copying.options.preserve => {
                let all = Setting::of(&entry.meta, true, self.copying.privileged(), 0);
                self.ask_for(
                    At::Target,
                    Ask::SetPath(link, Setting { mode: None, ..all }),
                    id,
                    What::LinkSet,
                );
            }
            (What::LinkSet, Err(why))
                if self.copying.privileged()
                    && self.copying.goes_without_owner(&entry.to, &why) =>
            {
                self.linked(id, &What::Linked, Ok(Told::Done));
            }
            // A server that cannot set a link's own times made a good link all the same.
            (What::Linked | What::LinkSet, Ok(_)) | (What::LinkSet, Err(_)) => {
                debug_assert_eq!(entry.meta.kind, Kind::Symlink);
                match self.copying.options.delay_updates {
                    true => self.delay_link(id, link),
                    false => self.place(id, &link, &entry),
                }
            }
            (_, Err(fault)) => self.fail(id, fault),
            (_, Ok(_)) => self.fail(id, Fault::unfit()),
        }
    }

    /// Waits for its name, as files do.
    fn delay_link(&mut self, id: FileId, part: Vec<u8>) {
        let Some(file) = self.files.remove(&id) else { return };
        let (entry, target) = (file.entry().clone(), Identity::default());
        self.copying.late().delayed.push(Delayed { part, entry, target, verified: false });
        self.copying.queue.done();
    }
}
