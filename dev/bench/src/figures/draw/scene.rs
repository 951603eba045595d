//! Scene: shapes in the order they are painted. Units are CSS pixels, y grows downwards.

use super::font;

/// A colour as in CSS: 0xRRGGBB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u32);

impl Colour {
    pub(crate) const INK: Self = Self(0x1f_29_33);
    pub(crate) const SOFT: Self = Self(0x5f_6b_7a);
    pub(crate) const RULE: Self = Self(0xe3_e7_ec);
    pub(crate) const AXIS: Self = Self(0x9a_a5_b1);
    pub(crate) const PAPER: Self = Self(0xff_ff_ff);

    /// Mixed with white: 1 is the colour itself.
    pub(crate) fn tint(self, share: f64) -> Self {
        let mixed = [16, 8, 0].map(|shift| {
            let part = f64::from(self.0 >> shift & 0xff);
            ((255.0 + (part - 255.0) * share).round() as u32) << shift
        });
        Self(mixed.into_iter().sum())
    }
}

/// Where a text's position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A piece of text on its baseline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) at: [f64; 2],
    pub(crate) words: String,
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
    /// Whether it reads upwards.
    pub(crate) upright: bool,
}

impl Text {
    pub(crate) fn new(at: [f64; 2], words: impl Into<String>, size: f64) -> Self {
        let (words, colour, anchor) = (words.into(), Colour::INK, Anchor::Start);
        Self { at, words, size, bold: false, colour, anchor, upright: false }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    pub(crate) fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) fn upright(self) -> Self {
        Self { upright: true, ..self }
    }

    pub(crate) fn width(&self) -> f64 {
        font::width(&self.words, self.size, self.bold)
    }

    /// From its anchor to its left end.
    pub(crate) fn shift(&self) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -self.width() / 2.0,
            Anchor::End => -self.width(),
        }
    }
}

/// How a line looks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pen {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    /// Lengths of dash and gap.
    pub(crate) dash: Option<[f64; 2]>,
}

impl Pen {
    pub(crate) fn new(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: None }
    }

    pub(crate) fn dashed(self, dash: [f64; 2]) -> Self {
        Self { dash: Some(dash), ..self }
    }
}

/// One thing to paint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A polygon, filled, with an outline if a pen is given.
    Area {
        corners: Vec<[f64; 2]>,
        fill: Colour,
        pen: Option<Pen>,
    },
    /// A circle, filled, with an outline if a pen is given.
    Disc {
        centre: [f64; 2],
        radius: f64,
        fill: Colour,
        pen: Option<Pen>,
    },
    Line {
        points: Vec<[f64; 2]>,
        pen: Pen,
    },
    Text(Text),
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scene {
    pub(crate) size: [f64; 2],
    /// What it is called, and one sentence for who cannot see it.
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    pub(crate) fn rect(&mut self, [x, y]: [f64; 2], [w, h]: [f64; 2], fill: Colour) {
        let corners = vec![[x, y], [x + w, y], [x + w, y + h], [x, y + h]];
        self.shapes.push(Shape::Area { corners, fill, pen: None });
    }

    pub(crate) fn line(&mut self, points: impl Into<Vec<[f64; 2]>>, pen: Pen) {
        self.shapes.push(Shape::Line { points: points.into(), pen });
    }

    pub(crate) fn text(&mut self, text: Text) {
        self.shapes.push(Shape::Text(text));
    }

    /// What is written in it.
    #[cfg(test)]
    pub(crate) fn words(&self) -> Vec<&Text> {
        let mut words = Vec::new();
        for shape in &self.shapes {
            if let Shape::Text(text) = shape {
                words.push(text);
            }
        }
        words
    }
}

/// The sign at a line's points: who cannot tell colours apart tells these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Ring,
    Box,
    Down,
}

impl Marker {
    /// The sign at `centre`.
    pub(crate) fn shape(self, [x, y]: [f64; 2], colour: Colour) -> Shape {
        let r = 3.6;
        let area = |corners: &[[f64; 2]], fill| Shape::Area {
            corners: corners.iter().map(|[dx, dy]| [x + dx * r, y + dy * r]).collect(),
            fill,
            pen: Some(Pen::new(colour, 1.4)),
        };
        let disc = |fill| Shape::Disc {
            centre: [x, y],
            radius: r,
            fill,
            pen: Some(Pen::new(colour, 1.4)),
        };
        let square = [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]];
        match self {
            Self::Circle => disc(colour),
            Self::Ring => disc(Colour::PAPER),
            Self::Square => area(&square, colour),
            Self::Box => area(&square, Colour::PAPER),
            Self::Triangle => area(&[[0.0, -1.15], [1.05, 0.8], [-1.05, 0.8]], colour),
            Self::Down => area(&[[0.0, 1.15], [1.05, -0.8], [-1.05, -0.8]], Colour::PAPER),
            Self::Diamond => area(&[[0.0, -1.2], [1.2, 0.0], [0.0, 1.2], [-1.2, 0.0]], colour),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_lies_between_white_and_the_colour() {
        assert_eq!(Colour(0x00_72_b2).tint(1.0), Colour(0x00_72_b2));
        assert_eq!(Colour(0x00_72_b2).tint(0.0), Colour::PAPER);
        assert_eq!(Colour(0x00_00_ff).tint(0.5), Colour(0x80_80_ff));
    }

    #[test]
    fn anchors_move_a_text_by_its_width() {
        let text = Text::new([0.0, 0.0], "bandwidth", 12.0);
        assert_eq!(text.shift(), 0.0);
        assert_eq!(text.clone().anchor(Anchor::End).shift(), -text.width());
        assert!(text.clone().bold().width() > text.width());
    }
}
