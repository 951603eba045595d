//! Font: Inter in two weights, embedded: how wide a text is, and its letters as outlines.

use std::sync::LazyLock;
use ttf_parser::{Face, OutlineBuilder};

/// What SVG viewers are asked for; where none is there, the width is kept by `textLength`.
pub(crate) const FAMILY: &str = "Inter, Helvetica, Arial, sans-serif";

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("../../../fonts/Inter-Regular.otf"), 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("../../../fonts/Inter-SemiBold.otf"), 0).ok());

fn face(bold: bool) -> Option<&'static Face<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

/// Pixels that `words` are wide at `size` pixels per em.
pub(crate) fn width(words: &str, size: f64, bold: bool) -> f64 {
    let Some(face) = face(bold) else { return words.len() as f64 * size * 0.6 };
    words.chars().map(|c| advance(face, c)).sum::<f64>() * scale(face, size)
}

fn scale(face: &Face<'_>, size: f64) -> f64 {
    size / f64::from(face.units_per_em())
}

/// In font units; a letter that is not there is a space's width.
fn advance(face: &Face<'_>, letter: char) -> f64 {
    let glyph = face.glyph_index(letter).or_else(|| face.glyph_index(' '));
    glyph.and_then(|glyph| face.glyph_hor_advance(glyph)).map_or(0.0, f64::from)
}

/// Gives each letter's outline to `outline`, with where it starts and what to multiply by.
pub(crate) fn letters<B: OutlineBuilder>(
    words: &str,
    size: f64,
    bold: bool,
    mut outline: impl FnMut(f64, f64) -> B,
    mut done: impl FnMut(B),
) {
    let Some(face) = face(bold) else { return };
    let scale = scale(face, size);
    let mut x = 0.0;
    for letter in words.chars() {
        if let Some(glyph) = face.glyph_index(letter) {
            let mut builder = outline(x, scale);
            if face.outline_glyph(glyph, &mut builder).is_some() {
                done(builder);
            }
        }
        x += advance(face, letter) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_weights_are_there_and_have_every_sign_that_pictures_use() {
        for bold in [false, true] {
            let face = face(bold).unwrap();
            for letter in "AZaz09 ()[]<>=+-.,:;/%&×·–—µ→≤≥…’".chars() {
                assert!(face.glyph_index(letter).is_some(), "{letter}");
            }
        }
    }

    #[test]
    fn width_grows_with_size_and_letters() {
        assert!(width("Mbit/s", 12.0, false) > 20.0);
        assert_eq!(width("ab", 24.0, true), 2.0 * width("ab", 12.0, true));
        assert_eq!(width("", 12.0, false), 0.0);
    }
}
