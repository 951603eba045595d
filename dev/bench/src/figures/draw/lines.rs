//! Lines: panels of lines over two axes, each named at its own end. A point is a median; the bar
//! or band about it reaches from the least to the greatest of its turns. A point that was
//! refused is a cross at the bottom, and its line is dotted where it passes.

use super::axis::Axis;
use super::frame::{Heading, MARGIN, WIDTH};
use super::scene::{Anchor, Colour, Marker, Pen, Scene, Shape, Text};
use crate::figures::samples::Point;

/// How a line tells its spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// A marker and a bar at each point.
    Points,
    /// A band along the line, for many points.
    Band,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) colour: Colour,
    pub(crate) marker: Marker,
    pub(crate) dashed: bool,
    pub(crate) look: Look,
    pub(crate) points: Vec<Point>,
}

/// A line that is calculated, not measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guide {
    pub(crate) label: String,
    pub(crate) points: Vec<[f64; 2]>,
    /// Which of the points its label stands at, and on which side.
    pub(crate) label_at: (usize, Anchor),
}

/// Axes and what is drawn over them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    pub(crate) guides: Vec<Guide>,
}

/// A picture of panels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lines {
    pub(crate) heading: Heading,
    pub(crate) columns: usize,
    /// Of a panel's axes.
    pub(crate) height: f64,
    pub(crate) panels: Vec<Panel>,
}

const LABEL: f64 = 12.0;
const TICK: f64 = 11.0;
/// Left of the axes: numbers and the axis' name.
const LEFT: f64 = 60.0;
const ABOVE: f64 = 38.0;
const BELOW: f64 = 46.0;
const GAP: f64 = 22.0;

impl Lines {
    pub(crate) fn draw(&self) -> Scene {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let rows = self.panels.len().div_ceil(columns);
        let row = ABOVE + self.height + BELOW;
        let body = rows as f64 * row + rows.saturating_sub(1) as f64 * GAP;
        let (mut scene, top) = self.heading.scene(body);
        let width = (WIDTH - 2.0 * MARGIN - (columns - 1) as f64 * GAP) / columns as f64;
        for (index, panel) in self.panels.iter().enumerate() {
            let x = MARGIN + (index % columns) as f64 * (width + GAP);
            let y = top + (index / columns) as f64 * (row + GAP);
            let right = panel.label_room();
            let plot = Plot {
                panel,
                left: x + LEFT,
                top: y + ABOVE,
                width: width - LEFT - right,
                height: self.height,
            };
            plot.draw(&mut scene);
        }
        scene
    }
}

impl Panel {
    /// Right of the axes: the widest label.
    fn label_room(&self) -> f64 {
        let width = |line: &Line| Text::new([0.0; 2], &line.label, LABEL).bold().width();
        self.lines.iter().map(width).fold(12.0, f64::max) + 20.0
    }
}

/// A panel in its place.
struct Plot<'a> {
    panel: &'a Panel,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Plot<'_> {
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [
            self.left + self.panel.x.share(x) * self.width,
            self.bottom() - self.panel.y.share(y) * self.height,
        ]
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn draw(&self, scene: &mut Scene) {
        self.axes(scene);
        for guide in &self.panel.guides {
            self.guide(guide, scene);
        }
        for line in self.panel.lines.iter().filter(|line| line.look == Look::Band) {
            self.band(line, scene);
        }
        for line in &self.panel.lines {
            self.line(line, scene);
        }
        self.crosses(scene);
        self.labels(scene);
    }

    fn axes(&self, scene: &mut Scene) {
        let panel = self.panel;
        let title = Text::new([self.left, self.top - 22.0], &panel.title, 13.0);
        scene.text(title.bold());
        for (value, label) in &panel.y.ticks {
            let [x, y] = self.at(panel.x.min, *value);
            scene.line([[x, y], [self.right(), y]], Pen::new(Colour::RULE, 1.0));
            scene.text(soft([x - 8.0, y + 4.0], label).anchor(Anchor::End));
        }
        for (value, label) in &panel.x.ticks {
            let [x, y] = self.at(*value, panel.y.min);
            scene.line([[x, y], [x, y + 4.0]], Pen::new(Colour::AXIS, 1.0));
            scene.text(soft([x, y + 18.0], label).anchor(Anchor::Middle));
        }
        let corner = [self.left, self.bottom()];
        scene.line([corner, [self.right(), corner[1]]], Pen::new(Colour::AXIS, 1.0));
        let middle = self.left + self.width / 2.0;
        let name = |at, words: &str| Text::new(at, words, TICK + 0.5).anchor(Anchor::Middle);
        scene.text(name([middle, self.bottom() + 38.0], &panel.x.title));
        let middle = [self.left - LEFT + 12.0, self.top + self.height / 2.0];
        scene.text(name(middle, &panel.y.title).upright());
    }

    fn guide(&self, guide: &Guide, scene: &mut Scene) {
        let points: Vec<_> = guide.points.iter().map(|[x, y]| self.at(*x, *y)).collect();
        let (index, anchor) = guide.label_at;
        if let Some([x, y]) = points.get(index) {
            scene.text(soft([*x, y - 6.0], &guide.label).anchor(anchor));
        }
        scene.line(points, Pen::new(Colour::AXIS, 1.2).dashed([5.0, 4.0]));
    }

    fn band(&self, line: &Line, scene: &mut Scene) {
        let edge = |low: bool| {
            let points =
                line.points.iter().filter_map(move |point| Some((point.at, point.spread?)));
            points.map(move |(x, s)| self.at(x, if low { s.min } else { s.max }))
        };
        let mut corners: Vec<_> = edge(false).collect();
        corners.extend(edge(true).collect::<Vec<_>>().into_iter().rev());
        if corners.len() > 3 {
            let fill = line.colour.tint(0.16);
            scene.shapes.push(Shape::Area { corners, fill, pen: None });
        }
    }

    fn line(&self, line: &Line, scene: &mut Scene) {
        let pen = Pen::new(line.colour, 2.0);
        let solid = if line.dashed { pen.dashed([6.0, 3.5]) } else { pen };
        let dotted = Pen::new(line.colour, 1.2).dashed([1.5, 4.0]);
        for (points, whole) in stretches(&line.points) {
            let points: Vec<_> = points.into_iter().map(|[x, y]| self.at(x, y)).collect();
            scene.line(points, if whole { solid.clone() } else { dotted.clone() });
        }
        for point in &line.points {
            let Some(spread) = point.spread.filter(|_| line.look == Look::Points) else { continue };
            let [x, y] = self.at(point.at, spread.median);
            let [low, high] = [spread.min, spread.max].map(|y| self.at(point.at, y)[1]);
            self.whisker(x, low, high, line.colour, scene);
            scene.shapes.push(line.marker.shape([x, y], line.colour));
        }
    }

    /// What was refused, beside each other where several were.
    fn crosses(&self, scene: &mut Scene) {
        let mut taken: Vec<f64> = Vec::new();
        for line in self.panel.lines.iter().filter(|line| line.look == Look::Points) {
            for point in line.points.iter().filter(|p| p.spread.is_none() && p.refused > 0) {
                let others = taken.iter().filter(|at| **at == point.at).count() as f64;
                taken.push(point.at);
                let x = self.at(point.at, self.panel.y.min)[0] + others * 10.0;
                cross([x, self.bottom() - 8.0], line.colour, scene);
            }
        }
    }

    fn whisker(&self, x: f64, low: f64, high: f64, colour: Colour, scene: &mut Scene) {
        if low - high < 1.0 {
            return;
        }
        let ends =
            [[x - 3.0, low], [x + 3.0, low], [x, low], [x, high], [x - 3.0, high], [x + 3.0, high]];
        scene.line(ends, Pen::new(colour, 1.2));
    }

    /// Each line's name beside its end, moved apart where they would meet.
    fn labels(&self, scene: &mut Scene) {
        let end = |line: &Line| {
            let last = line.points.iter().rev().find_map(|p| Some((p.at, p.spread?)))?;
            Some(self.at(last.0, last.1.median))
        };
        let mut ends: Vec<_> =
            self.panel.lines.iter().filter_map(|line| Some((line, end(line)?))).collect();
        ends.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
        let wanted: Vec<_> = ends.iter().map(|(_, [_, y])| *y).collect();
        let places = apart(&wanted, 15.0, self.top, self.bottom());
        for ((line, [x, y]), place) in ends.into_iter().zip(places) {
            let start = self.right() + 14.0;
            let pen = Pen::new(line.colour.tint(0.5), 1.0).dashed([2.0, 2.0]);
            if (place - y).abs() > 3.0 || start - x > 24.0 {
                scene.line([[x + 5.0, y], [start - 3.0, place]], pen);
            }
            let label = Text::new([start, place + 4.0], &line.label, LABEL);
            scene.text(label.bold().colour(line.colour));
        }
    }
}

fn soft(at: [f64; 2], words: &str) -> Text {
    Text::new(at, words, TICK).colour(Colour::SOFT)
}

fn cross([x, y]: [f64; 2], colour: Colour, scene: &mut Scene) {
    for [dx, dy] in [[3.5, 3.5], [3.5, -3.5]] {
        scene.line([[x - dx, y - dy], [x + dx, y + dy]], Pen::new(colour, 1.6));
    }
}

/// The medians as stretches: whole ones, and between them those that pass over a missing point.
fn stretches(points: &[Point]) -> Vec<(Vec<[f64; 2]>, bool)> {
    let mut all: Vec<(Vec<[f64; 2]>, bool)> = Vec::new();
    let mut broken = false;
    for point in points {
        let Some(spread) = point.spread else {
            broken = true;
            continue;
        };
        let here = [point.at, spread.median];
        match all.last_mut() {
            Some((stretch, _)) if !broken => stretch.push(here),
            Some((stretch, _)) => {
                let bridge = stretch.last().map(|last| vec![*last, here]);
                all.extend(bridge.map(|bridge| (bridge, false)));
                all.push((vec![here], true));
            }
            None => all.push((vec![here], true)),
        }
        broken = false;
    }
    all.retain(|(stretch, _)| stretch.len() > 1);
    all
}

/// The sorted places nearest to the wanted ones that keep `step` between each other and stay
/// between the ends, if there is room.
pub(crate) fn apart(wanted: &[f64], step: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for _ in 0..100 {
        for index in 1..places.len() {
            if let Some([upper, lower]) = places.get_mut(index - 1..=index) {
                let lacking = step - (*lower - *upper);
                if lacking > 0.0 {
                    *upper -= lacking / 2.0;
                    *lower += lacking / 2.0;
                }
            }
        }
        for place in &mut places {
            *place = place.clamp(top, bottom.max(top));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Spread;

    fn point(at: f64, value: Option<f64>) -> Point {
        let spread = value.map(|v| Spread { median: v, min: v, max: v });
        Point { at, spread, refused: usize::from(value.is_none()) }
    }

    #[test]
    fn a_missing_point_is_passed_by_a_bridge() {
        let points =
            [point(0.0, Some(1.0)), point(1.0, Some(2.0)), point(2.0, None), point(3.0, Some(4.0))];
        let wanted =
            vec![(vec![[0.0, 1.0], [1.0, 2.0]], true), (vec![[1.0, 2.0], [3.0, 4.0]], false)];
        assert_eq!(stretches(&points), wanted);
        assert!(stretches(&[point(0.0, None)]).is_empty());
    }

    #[test]
    fn labels_that_would_meet_are_moved_apart_inside_the_axes() {
        let places = apart(&[99.0, 100.0, 100.0], 15.0, 0.0, 110.0);
        for pair in places.windows(2) {
            assert!(pair[1] - pair[0] > 14.0, "{places:?}");
        }
        assert!(places.iter().all(|place| (0.0..=110.0).contains(place)), "{places:?}");
        assert_eq!(apart(&[10.0, 50.0], 15.0, 0.0, 100.0), [10.0, 50.0]);
    }
}
