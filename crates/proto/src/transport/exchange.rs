//! The transport's part of a key exchange: what leaves in which order, and what it settles.
//!
//! ```text
//! ours     Fence KEXINIT [KEX_INIT]      KEX_INIT or KEX_REPLY, NEWKEYS, SealWith, held messages
//! theirs             KEXINIT [guess]     KEX_REPLY or KEX_INIT, NEWKEYS  -> OpenWith
//! ```

use super::{Authority, MAX_EARLY_REKEYS, Settled, Stage, Transport};
use crate::kex::{Computed, Connection, client, server};
use crate::kexinit::{self, KexInit, Markers, Offer};
use crate::negotiate::Negotiated;
use crate::{Effect, Error, Event, Misbehaved, Outbox, Role, ext_info};
use crypt::kex::Method;
use keys::{PublicKey, SigAlg};
use wire::msg;

impl Transport {
    /// Our KEXINIT. From here to our NEWKEYS only the exchange leaves (RFC 4253 section 7.1).
    pub(super) fn offer(&mut self, may_guess: bool, out: &mut Outbox) -> Result<(), Error> {
        let role = self.role();
        let (kex, host_key) = self.proposals();
        let guess = may_guess && role == Role::Client && self.cfg.first_packet_guess;
        let method = kex.first().and_then(|name| Method::from_name(name)).filter(|_| guess);
        let guess = method.map(client::Share::new).transpose()?;
        let (cfg, first, follows) = (&self.cfg, self.settled.is_none(), guess.is_some());
        let clear = self.clear_offer();
        let offer = Offer { role, cfg, kex: &kex, host_key: &host_key, first, follows, clear };
        let ours = offer.kexinit();

        self.fenced = true;
        out.effects.push(Effect::Fence);
        out.send(ours.payload.clone());
        if let Some(share) = &guess {
            out.send(share.message());
        }
        self.stage = match role {
            Role::Client => Stage::ClientInit(client::ExpectKexInit { ours, guess }),
            Role::Server => Stage::ServerInit(server::ExpectKexInit { ours }),
        };
        Ok(())
    }

    /// What we propose now. A client asks again only for the key it has (B3). Whoever's peer
    /// prefers what was negotiated puts that first too: the answer stays the same, and a client's
    /// guess is right.
    fn proposals(&self) -> (Vec<&'static str>, Vec<SigAlg>) {
        let mut kex = self.cfg.kex.clone();
        let mut host_key = self.cfg.host_key_algs.clone();
        if let Authority::Server(keys) = &self.authority {
            host_key = keys.algorithms();
            host_key.retain(|alg| self.cfg.host_key_algs.contains(alg));
        }
        if let Some(pinned) = self.host_key() {
            host_key.retain(|alg| alg.key_type() == pinned.key_type());
        }
        if let Some(last) = self.negotiated.filter(|_| self.can_guess) {
            // Stable: the others keep their order.
            kex.sort_by_key(|name| *name != last.kex);
            host_key.sort_by_key(|alg| *alg != last.host_key);
        }
        (kex, host_key)
    }

    /// One message of the exchange, which the table says is due.
    pub(super) fn exchange(
        &mut self,
        seq: u32,
        number: u8,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Error> {
        if number == msg::KEXINIT {
            return self.kexinit(seq, payload, out);
        }
        match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Reply(state) => self.reply(state, payload, out),
            Stage::Init(state) => self.init(state, payload, out),
            Stage::NewKeys(state) => {
                let open = self.zip.opens(state.handle(payload)?, self.logged_in);
                out.effects.push(Effect::OpenWith(open));
                out.event(Event::Exchanged { first: !self.opened });
                self.opened = true;
                self.stage = Stage::Idle;
                Ok(())
            }
            _ => Err(Error::Local("no exchange is running".to_owned())),
        }
    }

    /// The peer's KEXINIT, as an answer to ours or of its own accord.
    fn kexinit(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<(), Error> {
        let theirs = KexInit::parse(payload)?;
        if matches!(self.stage, Stage::Idle) {
            self.check_may_exchange()?;
            self.count_early_rekey()?;
            // Its KEXINIT is known: there is nothing to guess.
            self.offer(false, out)?;
        }
        if self.settled.is_none() {
            self.strict = kexinit::strict(self.role(), &theirs, seq)?;
            self.peer_wants_ext_info =
                theirs.lists.kex.contains(Markers::of(self.role().peer()).ext_info);
            self.note_macs(&theirs.lists.macs);
        }
        let firsts = First::of(&theirs);
        let stage = std::mem::replace(&mut self.stage, Stage::Closed);
        let connection = self.connection()?;
        let (stage, negotiated) = match stage {
            Stage::ClientInit(state) => {
                let guessed = state.guess.is_some();
                let (next, message) = state.handle(&connection, theirs)?;
                if guessed && message.is_some() {
                    out.event(Event::GuessedWrong);
                }
                message.into_iter().for_each(|message| out.send(message));
                let negotiated = next.agreed.negotiated;
                (Stage::Reply(next), negotiated)
            }
            Stage::ServerInit(state) => {
                let next = state.handle(&connection, theirs)?;
                let negotiated = next.agreed.negotiated;
                (Stage::Init(next), negotiated)
            }
            _ => return Err(Error::Local("no KEXINIT of ours is out".to_owned())),
        };
        self.agree_on_clear(&negotiated)?;
        self.stage = stage;
        self.can_guess = firsts.are_of(&negotiated);
        self.negotiated = Some(negotiated);
        Ok(())
    }

    /// B11: who has not logged in cannot have a server compute exchanges without end.
    fn count_early_rekey(&mut self) -> Result<(), Error> {
        if self.role() == Role::Server && self.settled.is_some() && !self.logged_in {
            self.early_rekeys = self.early_rekeys.saturating_add(1);
            if self.early_rekeys > MAX_EARLY_REKEYS {
                return Err(Misbehaved::TooManyExchanges.into());
            }
        }
        Ok(())
    }

    /// Client: the server proved itself; our NEWKEYS leaves.
    fn reply(
        &mut self,
        state: client::ExpectReply,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Error> {
        let Authority::Client(trust) = &self.authority else { return Err(wrong_role()) };
        let connection = self.connection()?;
        let (done, key) = state.handle(&connection, payload, self.host_key(), &**trust)?;
        self.switch(done, Some(key), out);
        Ok(())
    }

    /// Server: we prove ourselves; our NEWKEYS leaves with the reply.
    fn init(
        &mut self,
        state: server::ExpectInit,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Error> {
        let Authority::Server(keys) = &self.authority else { return Err(wrong_role()) };
        let (reply, done) = state.handle(&self.connection()?, payload, &**keys)?;
        out.send(reply);
        self.switch(done, None, out);
        Ok(())
    }

    /// NEWKEYS, the new keys, what must come first under them, then what waited.
    fn switch(&mut self, done: Computed, host_key: Option<PublicKey>, out: &mut Outbox) {
        let first = self.settled.is_none();
        out.send(vec![msg::NEWKEYS]);
        out.effects.push(Effect::SealWith(self.zip.seals(done.seal, self.logged_in)));
        // RFC 8308 section 2.4: "as the next packet following the server's first NEWKEYS".
        if first && self.role() == Role::Server && self.peer_wants_ext_info {
            out.send(ext_info::of_server(&self.login_algs));
        }
        self.settled.get_or_insert(Settled { session_id: done.session_id, host_key });
        self.fenced = false;
        self.tell_of_clear(out);
        self.held.flush(out);
        self.stage = Stage::NewKeys(done.next);
    }

    /// What an exchange needs to know of us.
    fn connection(&self) -> Result<Connection<'_>, Error> {
        let no_ident = || Error::Local("the peer is not identified".to_owned());
        Ok(Connection {
            ours: &self.ours,
            theirs: self.peer.as_ref().ok_or_else(no_ident)?.ident(),
            session_id: self.session_id(),
            strict: self.strict,
        })
    }
}

/// A peer's first choices, which decide whether a guess is right.
struct First {
    kex: String,
    host_key: String,
}

impl First {
    fn of(kexinit: &KexInit) -> Self {
        let first = |names: &kexinit::Names| names.iter().next().unwrap_or_default().to_owned();
        Self { kex: first(&kexinit.lists.kex), host_key: first(&kexinit.lists.host_key) }
    }

    fn are_of(&self, negotiated: &Negotiated) -> bool {
        self.kex == negotiated.kex && self.host_key == negotiated.host_key.name()
    }
}

fn wrong_role() -> Error {
    Error::Local("a message of the other role".to_owned())
}
