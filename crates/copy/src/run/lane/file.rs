//! File: a file under way on a lane, and how far it is.

use super::super::job::Job;
use super::super::meta::Meta;
use super::super::queue::Entry;
use super::super::ranges::Ranges;
use super::super::side::{Fault, Open};
use super::mend::Mend;
use super::span::Span;
use std::sync::Arc;

/// A number that a file under way on this lane has, never used again.
pub(super) type FileId = u64;

/// A file under way on this lane.
pub(super) struct File {
    pub(super) stage: Stage,
    pub(super) source: Option<Open>,
    /// The source may be another than what the lane that began it has open.
    pub(super) unknown: bool,
    pub(super) target: Option<Open>,
    /// Answers that the current step waits for.
    pub(super) waits: u32,
    /// The first that went wrong in it.
    pub(super) fault: Option<Fault>,
    pub(super) spans: Vec<Span>,
    pub(super) next_span: u64,
    /// Of the target before: what scp(1) would write into, and whose mode stays.
    pub(super) old: Option<Meta>,
    /// Of the source, or of the part file, as they were seen last.
    pub(super) seen: (Option<Meta>, Option<Meta>),
    /// Parts with data, where the source may have holes.
    pub(super) data: Option<Ranges>,
    /// Bytes that it was found to have though it says that it has none.
    pub(super) untold: u64,
    /// The part file of a run that broke off was in the way once.
    pub(super) cleared: bool,
    /// What is at the target is only to be read.
    pub(super) read_only: bool,
    /// The part file is asked to take its name.
    pub(super) placing: bool,
    /// What is at the target is compared first (`--verify`).
    pub(super) compare: bool,
    /// Its size is set, and content up to there.
    pub(super) sized: bool,
    /// Its owner was asked to be set, and the answer has come.
    pub(super) owned: bool,
    /// Content was compared at both ends.
    pub(super) verified: bool,
    pub(super) mend: Mend,
}

/// How far a file is.
pub(super) enum Stage {
    /// Not shared.
    New(Entry),
    Job(Arc<Job>),
}

impl File {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            source: None,
            unknown: false,
            target: None,
            waits: 0,
            fault: None,
            spans: Vec::new(),
            next_span: 0,
            old: None,
            seen: (None, None),
            data: None,
            untold: 0,
            cleared: false,
            read_only: false,
            placing: false,
            compare: false,
            sized: false,
            owned: false,
            verified: false,
            mend: Mend::default(),
        }
    }

    pub(super) fn entry(&self) -> &Entry {
        match &self.stage {
            Stage::New(entry) => entry,
            Stage::Job(job) => &job.entry,
        }
    }

    /// Bytes that it will want to have under way and has not yet.
    pub(super) fn promised(&self) -> u64 {
        match self.stage {
            Stage::New(_) => self.entry().meta.size,
            Stage::Job(_) => self.spans.iter().map(Span::promised).fold(0, u64::saturating_add),
        }
    }
}
