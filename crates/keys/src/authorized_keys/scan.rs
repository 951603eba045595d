//! Quotes and commas of the options: where they end, and what their values say.

use super::Refusal;

/// One option: `name` or `name="value"`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// Splits a line at the first white space outside quotes: options, and the rest.
pub(super) fn split_line(line: &str) -> Result<(&str, &str), Refusal> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' if !escaped => quoted = !quoted,
            ' ' | '\t' if !quoted => return Ok(line.split_at(at)),
            _ => {}
        }
        escaped = c == '\\';
    }
    Err(if quoted { Refusal::Quotes } else { Refusal::NoKey })
}

/// Splits options at the commas between them and takes the quotes off their values.
pub(super) fn split_options(text: &str) -> Result<Vec<Item>, Refusal> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        let (item, after) = take_option(rest)?;
        items.push(item);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(items),
            None => return Err(Refusal::Quotes),
        }
    }
}

fn take_option(text: &str) -> Result<(Item, &str), Refusal> {
    let end = text.find([',', '=']).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    let Some(value) = after.strip_prefix('=') else {
        return Ok((Item { name: name.to_owned(), value: None }, after));
    };
    let (value, after) = take_quoted(value)?;
    Ok((Item { name: name.to_owned(), value: Some(value) }, after))
}

/// A value in double quotes, in which `\"` is a quote and any other backslash is itself.
fn take_quoted(text: &str) -> Result<(String, &str), Refusal> {
    let mut rest = text.strip_prefix('"').ok_or(Refusal::Quotes)?;
    let mut value = String::new();
    loop {
        let (before, after) = rest.split_once('"').ok_or(Refusal::Quotes)?;
        rest = after;
        match before.strip_suffix('\\') {
            Some(before) => value.extend([before, "\""]),
            None => {
                value.push_str(before);
                return Ok((value, rest));
            }
        }
    }
}
