//! CSV as RFC 4180 has it: what the samples are kept in, and what a spreadsheet reads.

/// One line, quoted where it must be.
pub(crate) fn line(fields: &[&str]) -> String {
    let fields: Vec<_> = fields.iter().map(|field| quoted(field)).collect();
    fields.join(",") + "\n"
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

/// The records of a text: fields may hold quotes and line ends.
pub(crate) fn records(text: &str) -> Vec<Vec<String>> {
    let mut rest = text;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let mut record = Vec::new();
        loop {
            let (field, end, after) = field(rest);
            record.push(field);
            rest = after;
            if end != Some(',') {
                break;
            }
        }
        all.push(record);
    }
    all
}

/// A field, the character that ended it, and what follows.
fn field(text: &str) -> (String, Option<char>, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    let mut inside = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if inside && chars.next_if(|(_, next)| *next == '"').is_some() => out.push('"'),
            '"' => inside = !inside,
            ',' | '\n' if !inside => return (out, Some(c), text.get(at + 1..).unwrap_or_default()),
            '\r' if !inside => {}
            c => out.push(c),
        }
    }
    (out, None, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let rows = [vec!["a", "b,c", "say \"yes\"", ""], vec!["two\nlines", "", "π", "1.5"]];
        let text: String = rows.iter().map(|row| line(row)).collect();
        assert_eq!(records(&text), rows);
    }

    #[test]
    fn a_last_line_without_its_end_counts_and_carriage_returns_do_not() {
        assert_eq!(records("a,b\r\nc,"), [["a", "b"], ["c", ""]]);
        assert!(records("").is_empty());
    }
}
