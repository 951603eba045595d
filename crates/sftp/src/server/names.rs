//! Names of users and groups, each looked up once in a session, as long as there are not too many.

use nix::unistd::{Gid, Group, Uid, User};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Most names of either kind that are remembered: a client may ask for any number.
const MOST: usize = 4096;

type Known<K> = Mutex<HashMap<K, Option<String>>>;

/// What was looked up.
#[derive(Default)]
pub(super) struct Names {
    users: Known<Uid>,
    groups: Known<Gid>,
}

impl Names {
    /// A user's name, if there is one.
    pub(super) fn user(&self, id: u32) -> Option<String> {
        known(&self.users, Uid::from_raw(id), |id| Some(User::from_uid(id).ok()??.name))
    }

    /// A group's name, if there is one.
    pub(super) fn group(&self, id: u32) -> Option<String> {
        known(&self.groups, Gid::from_raw(id), |id| Some(Group::from_gid(id).ok()??.name))
    }
}

fn known<K: Hash + Eq + Copy>(
    known: &Known<K>,
    id: K,
    look_up: impl FnOnce(K) -> Option<String>,
) -> Option<String> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(&id) {
        Some(name) => name.clone(),
        None => {
            let name = look_up(id);
            if known.len() < MOST {
                known.insert(id, name.clone());
            }
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f7_names_that_are_remembered_are_bounded_and_looked_up_once() {
        let table = Mutex::default();
        let mut asked = 0;
        for id in (0..2 * MOST).chain(0..2 * MOST) {
            let name = known(&table, id, |id| {
                asked += 1;
                Some(id.to_string())
            });
            assert_eq!(name, Some(id.to_string()));
        }
        assert_eq!((table.lock().unwrap().len(), asked), (MOST, 3 * MOST));
    }
}
