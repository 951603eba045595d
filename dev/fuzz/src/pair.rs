//! Two sides and whoever sits between them: an input says which message arrives, how changed.

use crate::input::Input;
use crate::side::Side;
use proto::KexConfig;

/// Client and server.
pub(crate) struct Pair {
    sides: [Side; 2],
}

impl Pair {
    /// Two transports alone, or with logins above them.
    pub(crate) fn new(cfg: &KexConfig, bare: bool) -> Self {
        Self { sides: [Side::client(cfg.clone(), bare), Side::server(cfg.clone(), bare)] }
    }

    /// Delivers everything unchanged while something is under way and `go_on` says so.
    pub(crate) fn settle(&mut self, mut go_on: impl FnMut(&[Side; 2]) -> bool) {
        while go_on(&self.sides) && (self.deliver(0) | self.deliver(1)) {}
    }

    /// Delivers the next message to side `to`; whether there was one.
    fn deliver(&mut self, to: usize) -> bool {
        let message = self.sides[1 - to].sent.pop_front();
        message.iter().for_each(|message| self.sides[to].gets(message));
        message.is_some()
    }

    /// Both sides at once, for what must have worked.
    pub(crate) fn are_connected(&self) -> bool {
        self.sides.iter().all(Side::is_connected)
    }

    /// A side acts of its own accord.
    pub(crate) fn acts(&mut self, side: usize, bytes: &[u8]) {
        self.sides[side].acts(&mut Input(bytes));
    }

    /// Follows `input` to its end.
    pub(crate) fn interfere(&mut self, input: &mut Input<'_>) {
        while let Some(step) = input.byte() {
            self.step(usize::from(step & 1), step >> 1, input);
            let [client, server] = &self.sides;
            if let (Some(one), Some(other)) = (client.session_id(), server.session_id()) {
                assert!(one == other, "two exchanges that differ both succeeded");
            }
            if client.is_over() && server.is_over() {
                return;
            }
        }
    }

    fn step(&mut self, to: usize, what: u8, input: &mut Input<'_>) {
        let queue = &mut self.sides[1 - to].sent;
        match what % 8 {
            0 => drop(self.deliver(to)),
            1 => self.settle(|_| true),
            2 => self.sides[to].gets(input.piece()),
            3 => self.sides[to].acts(input),
            4 => drop(queue.pop_front()),
            5 => {
                let message = queue.front().cloned().unwrap_or_default();
                self.sides[to].gets(&message);
            }
            6 => {
                let (at, flip) = (usize::from(input.byte_or_zero()), input.byte_or_zero());
                let message = queue.front_mut().map(Vec::as_mut_slice).unwrap_or_default();
                message.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= flip);
            }
            _ => {
                let len = usize::from(input.byte_or_zero());
                let piece = input.piece();
                if let Some(message) = queue.front_mut() {
                    message.truncate(len);
                    message.extend_from_slice(piece);
                }
            }
        }
    }
}
