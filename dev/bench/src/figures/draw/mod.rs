//! Draw: pictures out of a few shapes, as SVG for the web and PNG for everything else.
//!
//! scene   the shapes, and text of which the width is known
//! font    the letters: widths for both, outlines for the bitmap
//! svg     shapes as text
//! png     shapes as pixels
//! axis    scales, ticks and how numbers are written
//! frame   title above, notes below
//! lines   panels of lines over two axes
//! bars    groups of bars beside each other
//!
//! Both forms come from the same shapes and the same font metrics, and the font comes with this
//! program, so what is looked at in one form is what the other shows on any machine.

pub(crate) mod axis;
pub(crate) mod bars;
mod font;
pub(crate) mod frame;
pub(crate) mod lines;
pub(crate) mod png;
pub(crate) mod scene;
pub(crate) mod svg;
