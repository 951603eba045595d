//! Png: a scene as pixels, two per CSS pixel, with the embedded font's own outlines.

use super::font;
use super::scene::{Colour, Pen, Scene, Shape, Text};
use anyhow::{Context, Result};
use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

/// Pixels per CSS pixel: screens have that many nowadays.
const SCALE: f32 = 2.0;

/// The picture as a PNG file.
pub(crate) fn png(scene: &Scene) -> Result<Vec<u8>> {
    let [width, height] = scene.size.map(|side| (side as f32 * SCALE).round() as u32);
    let mut canvas = Canvas(Pixmap::new(width, height).context("a picture without pixels")?);
    canvas.0.fill(colour(Colour::PAPER));
    for shape in &scene.shapes {
        canvas.shape(shape);
    }
    Ok(canvas.0.encode_png()?)
}

struct Canvas(Pixmap);

impl Canvas {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Area { corners, fill, pen } => {
                self.area(polygon(corners, true), *fill, pen.as_ref());
            }
            Shape::Disc { centre: [x, y], radius, fill, pen } => {
                let path = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32);
                self.area(path, *fill, pen.as_ref());
            }
            Shape::Line { points, pen } => self.stroke(polygon(points, false).as_ref(), pen),
            Shape::Text(text) => self.text(text),
        }
    }

    fn area(&mut self, path: Option<Path>, fill: Colour, pen: Option<&Pen>) {
        let Some(path) = path else { return };
        self.fill(&path, fill, Transform::identity());
        if let Some(pen) = pen {
            self.stroke(Some(&path), pen);
        }
    }

    fn fill(&mut self, path: &Path, fill: Colour, transform: Transform) {
        let transform = transform.post_scale(SCALE, SCALE);
        self.0.fill_path(path, &paint(fill), FillRule::Winding, transform, None);
    }

    fn stroke(&mut self, path: Option<&Path>, pen: &Pen) {
        let Some(path) = path else { return };
        let dash = pen.dash.map(|lengths| lengths.map(|length| length as f32).to_vec());
        let stroke = Stroke {
            width: pen.width as f32,
            line_join: LineJoin::Round,
            dash: dash.and_then(|lengths| StrokeDash::new(lengths, 0.0)),
            ..Stroke::default()
        };
        let transform = Transform::from_scale(SCALE, SCALE);
        self.0.stroke_path(path, &paint(pen.colour), &stroke, transform, None);
    }

    fn text(&mut self, text: &Text) {
        let [x, y] = text.at.map(|at| at as f32);
        let turn = if text.upright { -90.0 } else { 0.0 };
        let place = Transform::from_translate(text.shift() as f32, 0.0)
            .post_concat(Transform::from_rotate(turn))
            .post_translate(x, y);
        let start = |x, scale| Letter { path: PathBuilder::new(), x, scale };
        font::letters(&text.words, text.size, text.bold, start, |letter| {
            if let Some(path) = letter.path.finish() {
                self.fill(&path, text.colour, place);
            }
        });
    }
}

fn colour(colour: Colour) -> tiny_skia::Color {
    let [_, red, green, blue] = colour.0.to_be_bytes();
    tiny_skia::Color::from_rgba8(red, green, blue, 255)
}

fn paint(fill: Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(colour(fill));
    paint
}

fn polygon(points: &[[f64; 2]], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, [x, y]) in points.iter().enumerate() {
        match index {
            0 => path.move_to(*x as f32, *y as f32),
            _ => path.line_to(*x as f32, *y as f32),
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}

/// A letter's outline: fonts count upwards, pictures downwards.
struct Letter {
    path: PathBuilder,
    x: f64,
    scale: f64,
}

impl Letter {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        ((self.x + f64::from(x) * self.scale) as f32, (-f64::from(y) * self.scale) as f32)
    }
}

impl OutlineBuilder for Letter {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
