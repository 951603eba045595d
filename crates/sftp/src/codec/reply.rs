//! Replies: what a server answers (section 7).

use super::{Attrs, Handle, Status, kind, list, packet, write_count};
use wire::{Malformed, Reader, Writer};

/// One name of a NAME reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Name {
    /// Of the file; the whole path where one was asked for.
    pub name: Vec<u8>,
    /// A line as `ls -l` has it: for eyes only.
    pub longname: Vec<u8>,
    /// What is known of it.
    pub attrs: Attrs,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// How it went.
    Status {
        /// The number.
        code: Status,
        /// What the server says about it; empty where it says nothing.
        text: Vec<u8>,
    },
    /// Of OPEN and OPENDIR.
    Handle(Handle),
    /// For completeness: bulk data is moved behind a [`super::DataHead`].
    Data(Vec<u8>),
    /// Of READDIR, REALPATH, READLINK and some extended requests.
    Names(Vec<Name>),
    /// Of the requests that end in `stat`.
    Attrs(Attrs),
    /// Of extended requests: read by the types of the module's `typed`.
    Extended(Vec<u8>),
}

impl Reply {
    /// A status with its usual text.
    pub fn status(code: Status) -> Self {
        Self::Status { code, text: code.text().into() }
    }

    /// Appends the reply with its length.
    pub fn encode(&self, id: u32, out: &mut Vec<u8>) {
        packet(self.kind(), Some(id), out, |w| self.write(w));
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Status { .. } => kind::STATUS,
            Self::Handle(_) => kind::HANDLE,
            Self::Data(_) => kind::DATA,
            Self::Names(_) => kind::NAME,
            Self::Attrs(_) => kind::ATTRS,
            Self::Extended(_) => kind::EXTENDED_REPLY,
        }
    }

    fn write(&self, w: &mut Writer) {
        match self {
            // No language.
            Self::Status { code, text } => {
                w.u32(code.code()).string(text).string(b"");
            }
            Self::Handle(handle) => {
                w.string(handle);
            }
            Self::Data(data) => {
                w.string(data);
            }
            Self::Names(names) => {
                write_count(w, names);
                names.iter().for_each(|name| name.write(w));
            }
            Self::Attrs(attrs) => attrs.write(w),
            Self::Extended(data) => {
                w.raw(data);
            }
        }
    }

    /// Of a packet without its length: the reply and the id of its request.
    pub fn parse(packet: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut r = Reader::new(packet);
        let kind = r.u8("type")?;
        let id = r.u32("id")?;
        let reply = Self::read(kind, &mut r)?;
        r.end("reply")?;
        Ok((id, reply))
    }

    fn read(kind: u8, r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            kind::STATUS => Self::read_status(r)?,
            kind::HANDLE => Self::Handle(Handle::read(r)?),
            kind::DATA => Self::Data(r.string("data")?.to_vec()),
            kind::NAME => Self::Names(list(r, "names", Name::read)?),
            kind::ATTRS => Self::Attrs(Attrs::read(r)?),
            kind::EXTENDED_REPLY => Self::Extended(r.rest().to_vec()),
            _ => return Err(Malformed("reply type")),
        })
    }

    /// Old servers leave out text and language.
    fn read_status(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let code = Status::read(r)?;
        if r.left() == 0 {
            return Ok(Self::Status { code, text: Vec::new() });
        }
        let text = r.string("status text")?.to_vec();
        if r.left() > 0 {
            r.string("status language")?;
        }
        Ok(Self::Status { code, text })
    }
}

impl Name {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (name, longname) = (r.string("name")?.to_vec(), r.string("long name")?.to_vec());
        Ok(Self { name, longname, attrs: Attrs::read(r)? })
    }

    fn write(&self, w: &mut Writer) {
        self.attrs.write(w.string(&self.name).string(&self.longname));
    }
}
