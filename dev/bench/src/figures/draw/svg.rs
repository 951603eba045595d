//! Svg: a scene as text, without scripts, styles from outside or fonts. Each text states its
//! width, so that another font than ours neither overlaps nor overflows.

use super::font::FAMILY;
use super::scene::{Anchor, Colour, Pen, Scene, Shape, Text};
use std::fmt::{self, Display, Formatter, Write};

/// The picture.
pub(crate) fn svg(scene: &Scene) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    _ = write(scene, &mut out);
    out
}

fn write(scene: &Scene, out: &mut String) -> fmt::Result {
    let [w, h] = scene.size.map(Short);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{w}\" height=\"{h}\" \
         viewBox=\"0 0 {w} {h}\" font-family=\"{FAMILY}\" stroke-linejoin=\"round\">"
    )?;
    writeln!(out, "<title>{}</title>", Escaped(&scene.title))?;
    writeln!(out, "<desc>{}</desc>", Escaped(&scene.summary))?;
    writeln!(out, "<rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/>", Colour::PAPER)?;
    for shape in &scene.shapes {
        write_shape(shape, out)?;
    }
    out.write_str("</svg>\n")
}

fn write_shape(shape: &Shape, out: &mut String) -> fmt::Result {
    match shape {
        Shape::Area { corners, fill, pen } => {
            write!(out, "<path d=\"{}Z\" fill=\"{fill}\"", Points(corners))?;
            write_pen(pen.as_ref(), out)?;
        }
        Shape::Disc { centre: [x, y], radius, fill, pen } => {
            let [x, y, r] = [*x, *y, *radius].map(Short);
            write!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{fill}\"")?;
            write_pen(pen.as_ref(), out)?;
        }
        Shape::Line { points, pen } => {
            write!(out, "<path d=\"{}\" fill=\"none\"", Points(points))?;
            write_pen(Some(pen), out)?;
        }
        Shape::Text(text) => return write_text(text, out),
    }
    out.write_str("/>\n")
}

fn write_pen(pen: Option<&Pen>, out: &mut String) -> fmt::Result {
    let Some(pen) = pen else { return Ok(()) };
    write!(out, " stroke=\"{}\" stroke-width=\"{}\"", pen.colour, Short(pen.width))?;
    match pen.dash {
        Some([dash, gap]) => {
            write!(out, " stroke-dasharray=\"{} {}\"", Short(dash), Short(gap))
        }
        None => Ok(()),
    }
}

fn write_text(text: &Text, out: &mut String) -> fmt::Result {
    if text.words.is_empty() {
        return Ok(());
    }
    let [x, y] = text.at.map(Short);
    write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"", Short(text.size))?;
    write!(out, " fill=\"{}\" textLength=\"{}\"", text.colour, Short(text.width()))?;
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => out.write_str(" text-anchor=\"middle\"")?,
        Anchor::End => out.write_str(" text-anchor=\"end\"")?,
    }
    if text.bold {
        out.write_str(" font-weight=\"600\"")?;
    }
    if text.upright {
        write!(out, " transform=\"rotate(-90 {x} {y})\"")?;
    }
    writeln!(out, ">{}</text>", Escaped(&text.words))
}

impl Display for Colour {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#{:06x}", self.0)
    }
}

/// A number with at most one digit after the point: a tenth of a pixel is enough.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // No minus before a zero.
        write!(f, "{}", tenths + 0.0)
    }
}

struct Points<'a>(&'a [[f64; 2]]);

impl Display for Points<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, [x, y]) in self.0.iter().enumerate() {
            write!(f, "{}{} {}", if index == 0 { 'M' } else { 'L' }, Short(*x), Short(*y))?;
        }
        Ok(())
    }
}

/// Text between tags: what has a meaning there is written otherwise.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped_and_numbers_are_short() {
        assert_eq!(Escaped("a<b> & \"c\"\n").to_string(), "a&lt;b&gt; &amp; &quot;c&quot; ");
        assert_eq!(Short(12.345).to_string(), "12.3");
        assert_eq!(Short(-0.01).to_string(), "0");
        assert_eq!(Points(&[[1.0, 2.0], [3.5, 4.0]]).to_string(), "M1 2L3.5 4");
    }
}
