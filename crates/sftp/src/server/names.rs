//! Names of users and groups, each looked up once in a session.

use nix::unistd::{Gid, Group, Uid, User};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

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
    known.entry(id).or_insert_with(|| look_up(id)).clone()
}
