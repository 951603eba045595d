//! Climb: how many lanes `-n auto` has. A hill is climbed: lanes are doubled for as long as that
//! makes all of them together faster by a tenth.
//!
//! A channel costs a round trip and multiplies the window; a connection costs a login and
//! multiplies TCP's windows and the cores. So on a long path channels are tried first, then
//! connections, and on a short one, where no window limits, connections alone. What brought nothing
//! is taken back, and tried again later: paths change.

use std::time::Duration;

/// Channels of one connection: below OpenSSH's MaxSessions of 10, with room for the scan's own.
const CHANNELS: u32 = 8;
/// Connections: what may log in at once. OpenSSH's MaxStartups (10:30:100) begins to refuse at 10.
const CONNECTIONS: u32 = 8;
/// Lanes in all: each has a thread and buffers.
const LANES: u32 = 32;
/// From this round trip on a window of 2 MiB carries less than 1 Gbit/s.
const DISTANT: Duration = Duration::from_millis(16);
/// What an addition has to bring on a long path ...
const RISE: f64 = 1.10;
/// ... and on a short one: twice the connections bring twice the rate if a core for each was what
/// limited, and cost both ends processor time if not. Rates vary by a tenth there by themselves.
const NEAR_RISE: f64 = 1.30;
/// Judgements without a trial after the hill's top was found; doubles each time.
const REST: u32 = 8;

/// How many lanes there are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) connections: u32,
    /// Of each connection.
    pub(super) channels: u32,
}

impl Shape {
    /// What auto starts with.
    pub(super) const FIRST: Self = Self { connections: 1, channels: 2 };

    /// What auto goes on with on a short path, where there is more to do than the first lanes took:
    /// a stock server has one thread for each connection, and that is what limits.
    const NEAR: Self = Self { connections: 2, channels: 2 };

    /// What auto goes on with at once where there is more to do than the first lanes took, and
    /// every step up would cost seconds: over 100 ms a channel's window of 2 MiB carries 20 MB/s,
    /// and a connection's send buffer of 4 MiB 17 to 27.
    const FAR: Self = Self { connections: CONNECTIONS, channels: 2 };

    /// Where the climb begins on a path of this round trip, from a host of so many cores.
    fn base(round_trip: Duration, cores: u32) -> Self {
        match round_trip < DISTANT {
            true if cores < Self::NEAR.connections => Self::FIRST,
            true => Self::NEAR,
            false => Self::FAR,
        }
    }

    /// Connections worth trying from a host of so many cores: on a short path the cores limit, and
    /// a server's thread needs up to twice the time per byte of ours; on a long one TCP does.
    fn connections(round_trip: Duration, cores: u32) -> u32 {
        if round_trip < DISTANT { cores.saturating_mul(2) } else { CONNECTIONS }
    }

    /// `lanes` of them, on as many connections as there are cores to use, and no more.
    pub(super) fn fixed(lanes: u32, cores: u32) -> Self {
        let connections = lanes.min(CONNECTIONS).min(cores.max(lanes.div_ceil(CHANNELS)).max(1));
        Self { connections, channels: lanes.div_ceil(connections.max(1)) }
    }

    pub(super) fn lanes(self) -> u32 {
        self.connections * self.channels
    }
}

/// What is being tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    None,
    Channels,
    Connections,
}

/// The climber.
#[derive(Debug)]
pub(super) struct Climb {
    kept: Shape,
    rate: f64,
    trial: Trial,
    /// The most that the server allows.
    most: Shape,
    near: bool,
    /// Channels, or connections, brought nothing.
    steep: (bool, bool),
    rest: u32,
    pause: u32,
}

impl Climb {
    /// On a path of this round trip, from a host of so many cores.
    pub(super) fn new(round_trip: Duration, cores: u32) -> Self {
        let kept = Shape::base(round_trip, cores);
        let connections = Shape::connections(round_trip, cores);
        let near = round_trip < DISTANT;
        Self {
            kept,
            rate: 0.0,
            trial: Trial::None,
            most: Shape {
                connections: connections.clamp(kept.connections, CONNECTIONS),
                channels: CHANNELS,
            },
            near,
            steep: (false, false),
            rest: 0,
            pause: REST,
        }
    }

    /// The server opens no more channels on a connection than this.
    pub(super) fn channels_refused(&mut self, most: u32) {
        self.most.channels = self.most.channels.min(most.max(1));
        self.kept.channels = self.kept.channels.min(self.most.channels);
    }

    /// The server takes no more connections than this.
    pub(super) fn connections_refused(&mut self, most: u32) {
        self.most.connections = self.most.connections.min(most.max(1));
        self.kept.connections = self.kept.connections.min(self.most.connections);
    }

    /// What to try next, after all lanes of the shape told last had `rate` together, and there was
    /// an idle core or not: without one, more lanes only divide what there is.
    pub(super) fn judge(&mut self, tried: Shape, rate: f64, idle: bool) -> Shape {
        match self.trial {
            Trial::None if self.rest > 0 || !idle => {
                self.rest = self.rest.saturating_sub(1);
                return self.kept;
            }
            Trial::None => self.rate = rate,
            _ if rate > self.rate * self.rise() => self.keep(tried, rate),
            Trial::Channels => self.steep.0 = true,
            Trial::Connections => self.steep.1 = true,
        }
        self.next()
    }

    fn rise(&self) -> f64 {
        if self.near { NEAR_RISE } else { RISE }
    }

    fn keep(&mut self, tried: Shape, rate: f64) {
        self.kept = tried;
        self.rate = rate;
        self.pause = REST;
    }

    fn next(&mut self) -> Shape {
        let Shape { connections, channels } = self.kept;
        let room = |shape: Shape| shape != self.kept && shape.lanes() <= LANES;
        let deeper = Shape { connections, channels: (channels * 2).min(self.most.channels) };
        let wider = Shape { connections: (connections * 2).min(self.most.connections), channels };
        let trials = [
            (Trial::Channels, deeper, self.near || self.steep.0),
            (Trial::Connections, wider, self.steep.1),
        ];
        let trial = trials.into_iter().find(|(_, shape, steep)| !steep && room(*shape));
        let (trial, shape) = trial.map_or_else(
            || {
                self.steep = (false, false);
                self.rest = self.pause;
                self.pause = self.pause.saturating_mul(2);
                (Trial::None, self.kept)
            },
            |(trial, shape, _)| (trial, shape),
        );
        self.trial = trial;
        shape
    }

    /// Where it begins.
    pub(super) fn shape(&self) -> Shape {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs `judgements` times on a path where lanes make `rate`; the shapes tried.
    fn climb(round_trip: Duration, judgements: usize, rate: impl Fn(Shape) -> f64) -> Vec<Shape> {
        let mut climb = Climb::new(round_trip, 64);
        let mut shape = climb.shape();
        (0..judgements)
            .map(|_| {
                shape = climb.judge(shape, rate(shape), true);
                shape
            })
            .collect()
    }

    const SHORT: Duration = Duration::from_micros(200);
    const LONG: Duration = Duration::from_millis(100);

    #[test]
    fn towards_a_stock_server_far_away_the_first_shape_fills_the_path() {
        // 2 MiB of window per channel over 100 ms, 1 Gbit/s of link.
        let shapes = climb(LONG, 40, |shape| (f64::from(shape.lanes()) * 21e6).min(119e6));
        let at_once = shapes.iter().filter(|shape| **shape == Shape::FAR).count();
        assert!(at_once >= 30, "{shapes:?}");
        assert!(f64::from(Shape::FAR.lanes()) * 21e6 > 119e6);
    }

    #[test]
    fn where_cores_are_the_limit_connections_are_added() {
        // 30 MB/s per connection however many channels it has.
        let shapes = climb(SHORT, 8, |shape| f64::from(shape.connections) * 30e6);
        assert!(shapes.iter().any(|shape| shape.connections == CONNECTIONS), "{shapes:?}");
        assert!(shapes.iter().all(|shape| shape.channels == 2), "{shapes:?}");
    }

    #[test]
    fn where_more_lanes_bring_nothing_it_stays_small() {
        let shapes = climb(SHORT, 40, |_| 1e9);
        let small = shapes.iter().filter(|shape| **shape == Shape::NEAR).count();
        assert!(small >= 30, "{shapes:?}");
        assert!(shapes.iter().all(|shape| shape.lanes() <= 8));
    }

    #[test]
    fn while_every_core_is_busy_nothing_is_tried() {
        let mut climb = Climb::new(SHORT, 64);
        for _ in 0..10 {
            assert_eq!(climb.judge(Shape::NEAR, 1e9, false), Shape::NEAR);
        }
        assert_eq!(climb.judge(Shape::NEAR, 1e9, true).connections, 4);
    }

    #[test]
    fn one_core_begins_with_one_connection() {
        assert_eq!(Climb::new(SHORT, 1).shape(), Shape::FIRST);
        assert_eq!(Climb::new(SHORT, 2).shape(), Shape::NEAR);
        assert_eq!(Climb::new(LONG, 1).shape(), Shape::FAR);
    }

    #[test]
    fn a_refusal_is_a_limit() {
        let mut climb = Climb::new(LONG, 2);
        let tried = climb.judge(Shape::FAR, 1.0, true);
        assert_eq!(tried.channels, 4);
        climb.channels_refused(3);
        climb.connections_refused(1);
        let mut shape = Shape { connections: 1, channels: 3 };
        for rate in 2..40 {
            shape = climb.judge(shape, f64::from(rate), true);
            assert!(shape.channels <= 3 && shape.connections == 1, "{shape:?}");
        }
    }

    #[test]
    fn fixed_lanes_are_exactly_so_many_or_one_more_per_connection() {
        assert_eq!(Shape::fixed(1, 64), Shape { connections: 1, channels: 1 });
        assert_eq!(Shape::fixed(8, 2), Shape { connections: 2, channels: 4 });
        assert_eq!(Shape::fixed(8, 64), Shape { connections: 8, channels: 1 });
        assert_eq!(Shape::fixed(64, 2).connections, 8);
    }
}
