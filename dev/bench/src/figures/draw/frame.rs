//! Frame: what surrounds every picture: title and explanation above, origin and notes below.

use super::font;
use super::scene::{Colour, Scene, Text};

/// Pixels from edge to edge: as wide as a README is shown.
pub(crate) const WIDTH: f64 = 960.0;
/// Between the edge and anything.
pub(crate) const MARGIN: f64 = 24.0;

const TITLE: f64 = 19.0;
const LEAD: f64 = 13.0;
const NOTE: f64 = 11.0;

/// The words around a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heading {
    /// What the picture says.
    pub(crate) title: String,
    /// How it was measured.
    pub(crate) lead: String,
    /// Versions, runs, refused turns, date and machine.
    pub(crate) notes: Vec<String>,
}

impl Heading {
    /// An empty picture with the words in place, and how high its body begins.
    pub(crate) fn scene(&self, body: f64) -> (Scene, f64) {
        let (lead, notes) = (self.lead_lines(), self.note_lines());
        let top = MARGIN + TITLE + 8.0 + lead.len() as f64 * 18.0 + 14.0;
        let height = top + body + 20.0 + notes.len() as f64 * 15.0 + MARGIN - 8.0;
        let (title, summary) = (self.title.clone(), self.lead.clone());
        let mut scene = Scene { size: [WIDTH, height], title, summary, shapes: Vec::new() };
        scene.text(Text::new([MARGIN, MARGIN + TITLE - 4.0], &self.title, TITLE).bold());
        write(&mut scene, lead, MARGIN + TITLE + 22.0, LEAD, 18.0);
        write(&mut scene, notes, top + body + 28.0, NOTE, 15.0);
        (scene, top)
    }

    fn lead_lines(&self) -> Vec<String> {
        wrapped(&self.lead, LEAD)
    }

    fn note_lines(&self) -> Vec<String> {
        self.notes.iter().flat_map(|note| wrapped(note, NOTE)).collect()
    }
}

fn write(scene: &mut Scene, lines: Vec<String>, mut y: f64, size: f64, step: f64) {
    for line in lines {
        scene.text(Text::new([MARGIN, y], line, size).colour(Colour::SOFT));
        y += step;
    }
}

/// Lines that fit between the margins.
fn wrapped(text: &str, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| font::width(line, size, false) <= WIDTH - 2.0 * MARGIN) {
            Some(longer) => *lines.last_mut().unwrap_or(&mut String::new()) = longer,
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_wrap_between_words() {
        let text = "how it was measured ".repeat(20);
        let lines = wrapped(&text, 13.0);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| font::width(line, 13.0, false) <= WIDTH - 2.0 * MARGIN));
        assert_eq!(lines.join(" "), text.trim_end());
        assert!(wrapped("", 13.0).is_empty());
    }
}
