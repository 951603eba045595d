//! Figures as names and values: the reply to `tcp-info@longhaul` (PROTOCOL.md), and the columns
//! of a table. A row per figure; a name says its unit, times are in microseconds.

use super::{Figures, Path};
use std::time::Duration;
use wire::{Malformed, Reader, Writer};

/// Most pairs that are read of a peer.
const MOST: usize = 256;

/// A figure that is a number.
trait Number {
    fn number(&self) -> u64;
    fn set(&mut self, number: u64);
}

impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }

    fn set(&mut self, number: u64) {
        *self = number;
    }
}

impl Number for u32 {
    fn number(&self) -> u64 {
        (*self).into()
    }

    fn set(&mut self, number: u64) {
        *self = Self::try_from(number).unwrap_or(Self::MAX);
    }
}

impl Number for Duration {
    fn number(&self) -> u64 {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX)
    }

    fn set(&mut self, number: u64) {
        *self = Self::from_micros(number);
    }
}

type Row<T> = (&'static str, fn(&mut T) -> &mut dyn Number);

#[rustfmt::skip] // a table
static PATH: &[Row<Path>] = &[
    ("rtt_us",             |p| &mut p.tcp.rtt),
    ("rtt_min_us",         |p| &mut p.tcp.shortest_rtt),
    ("rtt_receive_us",     |p| &mut p.tcp.receive_rtt),
    ("retransmits",        |p| &mut p.tcp.retransmits),
    ("out_of_order",       |p| &mut p.tcp.out_of_order),
    ("congestion_window",  |p| &mut p.tcp.congestion_window),
    ("segment",            |p| &mut p.tcp.segment),
    ("unacknowledged",     |p| &mut p.tcp.unacknowledged),
    ("not_sent",           |p| &mut p.tcp.not_sent),
    ("delivery_rate",      |p| &mut p.tcp.delivery_rate),
    ("segments_out",       |p| &mut p.tcp.segments_out),
    ("segments_in",        |p| &mut p.tcp.segments_in),
    ("acknowledged",       |p| &mut p.tcp.acknowledged),
    ("received",           |p| &mut p.tcp.received),
    ("busy_us",            |p| &mut p.tcp.busy),
    ("rwnd_limited_us",    |p| &mut p.tcp.rwnd_limited),
    ("sndbuf_limited_us",  |p| &mut p.tcp.sndbuf_limited),
    ("peer_window",        |p| &mut p.tcp.peer_window),
    ("our_window",         |p| &mut p.tcp.our_window),
    ("send_buffer",        |p| &mut p.send_buffer),
    ("receive_buffer",     |p| &mut p.receive_buffer),
];

#[rustfmt::skip] // a table
static REST: &[Row<Figures>] = &[
    ("age_us",              |f| &mut f.age),
    ("data_sent",           |f| &mut f.sent.bytes),
    ("data_received",       |f| &mut f.received.bytes),
    ("data_written",        |f| &mut f.written),
    ("clear_sent",          |f| &mut f.sent.clear),
    ("clear_received",      |f| &mut f.received.clear),
    ("window_granted",      |f| &mut f.received.window),
    ("window_cap",          |f| &mut f.received.window_cap),
    ("window_of_peer",      |f| &mut f.sent.window),
    ("sender",              |f| &mut f.sender.thread),
    ("sender_data",         |f| &mut f.sender.bytes),
    ("sender_age_us",       |f| &mut f.sender.age),
    ("sender_busy_us",      |f| &mut f.sender.busy),
    ("sender_queued_us",    |f| &mut f.sender.queued),
    ("sender_crypto_us",    |f| &mut f.sender.crypto),
    ("sender_input_us",     |f| &mut f.sender.input),
    ("sender_window_us",    |f| &mut f.sender.window),
    ("sender_queue_us",     |f| &mut f.sender.queue),
    ("sender_socket_us",    |f| &mut f.sender.socket),
    ("receiver",            |f| &mut f.receiver.thread),
    ("receiver_data",       |f| &mut f.receiver.bytes),
    ("receiver_age_us",     |f| &mut f.receiver.age),
    ("receiver_busy_us",    |f| &mut f.receiver.busy),
    ("receiver_queued_us",  |f| &mut f.receiver.queued),
    ("receiver_crypto_us",  |f| &mut f.receiver.crypto),
    ("receiver_network_us", |f| &mut f.receiver.network),
    ("receiver_sink_us",    |f| &mut f.receiver.sink),
    ("workers",             |f| &mut f.workers.0),
    ("workers_crypto_us",   |f| &mut f.workers.1),
];

/// The name under which the congestion control's name stands.
const CONGESTION: &str = "congestion";

/// All figures, in a fixed order; those of the path only where there is one.
#[must_use]
pub fn all(figures: &Figures) -> Vec<(&'static str, String)> {
    let mut figures = figures.clone();
    let mut columns = figures.path.as_mut().map(of_path).unwrap_or_default();
    columns.extend(REST.iter().map(|(name, at)| (*name, at(&mut figures).number().to_string())));
    columns
}

/// The names of [`all`] where there is a path.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let path = PATH.iter().map(|(name, _)| *name).chain([CONGESTION]);
    path.chain(REST.iter().map(|(name, _)| *name)).collect()
}

fn of_path(path: &mut Path) -> Vec<(&'static str, String)> {
    let mut columns: Vec<_> =
        PATH.iter().map(|(name, at)| (*name, at(path).number().to_string())).collect();
    columns.push((CONGESTION, path.congestion.clone()));
    columns
}

/// The reply to `tcp-info@longhaul`.
#[must_use]
pub fn write(figures: &Figures) -> Vec<u8> {
    let mut w = Writer::new();
    for (name, value) in all(figures) {
        w.string(name).string(value);
    }
    w.take()
}

/// Reads what [`write`] wrote, here or in another version: names we do not know are passed over.
///
/// # Errors
/// It is not what [`write`] writes.
pub fn read(reply: &[u8]) -> Result<Figures, Malformed> {
    let mut r = Reader::new(reply);
    let mut figures = Figures::default();
    for _ in 0..MOST {
        if r.left() == 0 {
            return Ok(figures);
        }
        let (name, value) = (r.text("name of a figure")?, r.text("value of a figure")?);
        take(&mut figures, name, value)?;
    }
    Err(Malformed("figures: too many"))
}

fn take(figures: &mut Figures, name: &str, value: &str) -> Result<(), Malformed> {
    if name == CONGESTION {
        // Of the peer, and for a table: what no kernel calls its own is not taken.
        let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if plain && value.len() <= 16 {
            figures.path.get_or_insert_default().congestion = value.to_owned();
        }
        return Ok(());
    }
    let number = || value.parse().map_err(|_| Malformed("value of a figure"));
    if let Some((_, at)) = PATH.iter().find(|(known, _)| *known == name) {
        at(figures.path.get_or_insert_default()).set(number()?);
    } else if let Some((_, at)) = REST.iter().find(|(known, _)| *known == name) {
        at(figures).set(number()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every figure different, so that none can stand for another.
    fn some() -> Figures {
        let mut figures = Figures { path: Some(Path::default()), ..Figures::default() };
        let mut next = 1..;
        for (_, at) in REST {
            at(&mut figures).set(next.next().unwrap());
        }
        let path = figures.path.as_mut().unwrap();
        PATH.iter().for_each(|(_, at)| at(path).set(next.next().unwrap()));
        path.congestion = "bbr".to_owned();
        figures
    }

    #[test]
    fn figures_survive_the_way_to_the_other_end() {
        assert_eq!(read(&write(&some())).unwrap(), some());
        assert_eq!(read(&write(&Figures::default())).unwrap(), Figures::default());
    }

    #[test]
    fn names_we_do_not_know_are_passed_over_and_nonsense_is_refused() {
        let pair = |name: &str, value: &str| Writer::new().string(name).string(value).take();
        assert_eq!(read(&pair("of_tomorrow", "x")).unwrap(), Figures::default());
        assert!(read(&pair("rtt_us", "-1")).is_err());
        assert!(read(&pair("rtt_us", "1")[1..]).is_err());
        assert!(read(&pair("of_tomorrow", "x").repeat(MOST + 1)).is_err());
        let wild = read(&pair(CONGESTION, "a,\u{1b}[2J")).unwrap();
        assert_eq!(wild, Figures::default());
    }

    #[test]
    fn the_columns_of_a_table_fit_its_rows() {
        let columns: Vec<_> = all(&some()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(columns, names());
        let mut unique = names();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names().len());
    }
}
