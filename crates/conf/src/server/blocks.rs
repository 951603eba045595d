//! Match blocks: settings that count for some connections, and then before all others.
//!
//! ```text
//! reading      every setting is checked as if it counted; an error shows when the server starts
//! `matched`    the settings of the blocks that apply, the first of a keyword, over the global ones
//! ```

use super::criteria::{Criterion, Subject, Visitor};
use super::{Server, TABLE};
use crate::algorithms::Supported;
use crate::error::Error;
use crate::field::as_argument;
use crate::line::Setting;
use crate::row::Resolver;
use std::fmt::Write;

/// Settings under the same conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    criteria: Vec<Criterion>,
    settings: Vec<Setting>,
}

/// All blocks of a configuration, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    /// Adds a setting that was checked.
    pub(super) fn add(&mut self, criteria: &[Criterion], setting: &Setting) {
        match self.0.last_mut() {
            Some(last) if last.criteria == criteria => last.settings.push(setting.clone()),
            _ => {
                let (criteria, settings) = (criteria.to_vec(), vec![setting.clone()]);
                self.0.push(Block { criteria, settings });
            }
        }
    }

    fn ask_for(&self, subject: Subject) -> bool {
        self.0.iter().flat_map(|block| &block.criteria).any(|c| c.subject == subject)
    }

    /// As a file has them.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for Block { criteria, settings } in &self.0 {
            let all: Vec<String> = criteria.iter().map(Criterion::text).collect();
            let all = if all.is_empty() { "all".to_owned() } else { all.join(" ") };
            _ = writeln!(out, "match {all}");
            for setting in settings {
                let args: Vec<String> = setting.args.iter().map(|arg| as_argument(arg)).collect();
                let args = if setting.is_raw() { setting.rest.clone() } else { args.join(" ") };
                _ = writeln!(out, "{} {args}", setting.keyword);
            }
        }
        out
    }
}

impl Server {
    /// The configuration for one connection.
    ///
    /// # Errors
    /// None that reading the configuration has not found.
    pub fn matched(&self, visitor: &Visitor, supported: &Supported) -> Result<Self, Error> {
        let mut resolver = Resolver::new(&TABLE, supported, self.clone());
        let applies = |block: &&Block| block.criteria.iter().all(|c| c.holds(visitor));
        for setting in self.blocks.0.iter().filter(applies).flat_map(|block| &block.settings) {
            resolver.apply(setting, true)?;
        }
        Ok(resolver.config)
    }

    /// Whether there is any Match block, so that a connection's user matters.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        !self.blocks.0.is_empty()
    }

    /// Whether a Match line asks for the client's name.
    #[must_use]
    pub fn matches_hosts(&self) -> bool {
        self.blocks.ask_for(Subject::Host)
    }

    /// Whether a Match line asks for the user's groups.
    #[must_use]
    pub fn matches_groups(&self) -> bool {
        self.blocks.ask_for(Subject::Group)
    }
}
