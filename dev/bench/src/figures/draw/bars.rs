//! Bars: groups of horizontal bars, the same rows in each column. A bar is a median; the line
//! over its end reaches from the least to the greatest of its turns.

use super::axis::{Axis, brief};
use super::frame::{Heading, MARGIN, WIDTH};
use super::scene::{Anchor, Colour, Pen, Scene, Text};
use crate::stats::Spread;

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// What it is made of, from the left: each part's length.
    pub(crate) parts: Vec<f64>,
    /// Of the whole.
    pub(crate) spread: Option<Spread>,
}

/// One row: a bar in each column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) colour: Colour,
    pub(crate) cells: Vec<Cell>,
}

/// Rows under a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
    /// Who is not among the rows, and why.
    pub(crate) absent: String,
}

/// What all bars of a column are seen against.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) label: String,
    pub(crate) spread: Spread,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) axis: Axis,
    pub(crate) reference: Option<Reference>,
}

/// A picture of bars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars {
    pub(crate) heading: Heading,
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Vec<Group>,
}

const LABEL: f64 = 11.5;
const BAR: f64 = 12.0;
const ROW: f64 = 17.0;
const TITLE: f64 = 24.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 44.0;
const GAP: f64 = 34.0;
/// Right of a column, for the value of its longest bar.
const VALUE: f64 = 34.0;

impl Bars {
    pub(crate) fn draw(&self) -> Scene {
        let rows: f64 = self.groups.iter().map(Group::height).sum();
        let (mut scene, top) = self.heading.scene(ABOVE + rows + BELOW);
        let left = MARGIN + self.label_room();
        let count = self.columns.len().max(1) as f64;
        let width = (WIDTH - MARGIN - left - (count - 1.0) * GAP) / count - VALUE;
        let mut places = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            let left = left + index as f64 * (width + VALUE + GAP);
            let place = Place { column, left, top: top + ABOVE, width, height: rows };
            place.axes(&mut scene);
            places.push(place);
        }
        self.rows(&places, top + ABOVE, &mut scene);
        scene
    }

    fn label_room(&self) -> f64 {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let width = |row: &Row| Text::new([0.0; 2], &row.label, LABEL).width();
        rows.map(width).fold(60.0, f64::max) + 14.0
    }

    fn rows(&self, places: &[Place<'_>], mut y: f64, scene: &mut Scene) {
        for group in &self.groups {
            over(Text::new([MARGIN, y + 16.0], &group.title, 12.5).bold(), scene);
            y += TITLE;
            for row in &group.rows {
                let label = Text::new([MARGIN + 4.0, y + 10.0], &row.label, LABEL);
                scene.text(label.colour(Colour::SOFT));
                for (place, cell) in places.iter().zip(&row.cells) {
                    place.bar(cell, row.colour, y, scene);
                }
                y += ROW;
            }
            if !group.absent.is_empty() {
                let absent = Text::new([MARGIN + 4.0, y + 10.0], &group.absent, 10.5);
                over(absent.colour(Colour::SOFT), scene);
                y += ROW;
            }
        }
    }
}

/// A text that lines would cross out.
fn over(text: Text, scene: &mut Scene) {
    let [x, y] = text.at;
    let height = text.size;
    scene.rect([x - 2.0, y - height * 0.85], [text.width() + 4.0, height * 1.1], Colour::PAPER);
    scene.text(text);
}

impl Group {
    fn height(&self) -> f64 {
        TITLE + ROW * (self.rows.len() + usize::from(!self.absent.is_empty())) as f64
    }
}

/// A column in its place.
struct Place<'a> {
    column: &'a Column,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Place<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.column.axis.share(value) * self.width
    }

    fn axes(&self, scene: &mut Scene) {
        let column = self.column;
        let bottom = self.top + self.height + 6.0;
        scene.text(Text::new([self.left, self.top - 26.0], &column.title, 13.0).bold());
        for (value, label) in &column.axis.ticks {
            let x = self.x(*value);
            scene.line([[x, self.top], [x, bottom]], Pen::new(Colour::RULE, 1.0));
            let label = Text::new([x, bottom + 15.0], label, 11.0).anchor(Anchor::Middle);
            scene.text(label.colour(Colour::SOFT));
        }
        let name = [self.left + self.width / 2.0, bottom + 34.0];
        scene.text(Text::new(name, &column.axis.title, 11.5).anchor(Anchor::Middle));
        if let Some(reference) = &column.reference {
            self.reference(reference, bottom, scene);
        }
    }

    fn reference(&self, reference: &Reference, bottom: f64, scene: &mut Scene) {
        let Spread { median, min, max } = reference.spread;
        let [from, to] = [min, max].map(|value| self.x(value));
        let size = [(to - from).max(0.5), bottom - self.top];
        scene.rect([from, self.top], size, Colour::AXIS.tint(0.25));
        let x = self.x(median);
        let pen = Pen::new(Colour::SOFT, 1.2).dashed([5.0, 4.0]);
        scene.line([[x, self.top - 4.0], [x, bottom]], pen);
        let label = format!("{}: {}", reference.label, brief(median));
        let label = Text::new([x, self.top - 8.0], label, 11.0).colour(Colour::SOFT);
        let half = label.width() / 2.0;
        let edge = WIDTH - MARGIN - half;
        let label = Text { at: [x.max(self.left + half).min(edge), self.top - 8.0], ..label };
        scene.text(label.anchor(Anchor::Middle));
    }

    fn bar(&self, cell: &Cell, colour: Colour, y: f64, scene: &mut Scene) {
        let Some(spread) = cell.spread else {
            let none = Text::new([self.left + 4.0, y + 10.0], "no figure", 10.5);
            return scene.text(none.colour(Colour::AXIS));
        };
        let mut from = 0.0;
        for (index, part) in cell.parts.iter().enumerate() {
            let x = self.x(from);
            let fill = if index == 0 { colour } else { colour.tint(0.45) };
            scene.rect([x, y], [(self.x(from + part) - x).max(0.5), BAR], fill);
            from += part;
        }
        let [low, high] = [spread.min, spread.max].map(|value| self.x(value));
        let middle = y + BAR / 2.0;
        if high - low > 1.5 {
            let cap = |x: f64| [[x, middle - 3.0], [x, middle + 3.0], [x, middle]];
            let ends: Vec<_> = cap(low).into_iter().chain(cap(high).into_iter().rev()).collect();
            scene.line(ends, Pen::new(Colour::INK, 1.1));
        }
        let value = [high.max(self.x(from)) + 5.0, y + 10.0];
        let value = Text::new(value, brief(spread.median), 11.0).colour(Colour::INK);
        over(value, scene);
    }
}
