//! Page: all pictures of a directory in one HTML file that needs nothing else but them.

use super::draw::svg::Escaped;
use super::figure::FIGURES;
use super::samples::{FILE, Record};
use std::collections::BTreeSet;
use std::fmt::Write;

const STYLE: &str = "body{font:16px/1.5 Inter,Helvetica,Arial,sans-serif;color:#1f2933;\
                     background:#f5f7fa;margin:0 auto;max-width:1040px;padding:24px}\
                     figure{background:#fff;margin:24px 0;padding:8px;border:1px solid #e3e7ec;\
                     border-radius:8px}img{width:100%;height:auto}\
                     figcaption{padding:0 16px 8px;color:#5f6b7a;font-size:14px}a{color:#0072b2}";

/// The page: pictures that can be drawn, links to what they are made of.
pub(crate) fn page(record: &Record) -> String {
    let machines: BTreeSet<_> = record.origins.values().map(|o| o.machine.as_str()).collect();
    let machines: Vec<_> = machines.into_iter().collect();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>longhaul: figures</title><style>{STYLE}</style></head><body>\n\
         <h1>longhaul: figures</h1>\n<p>Measured by <code>lhbench figures</code> on {}. All samples: \
         <a href=\"{FILE}\">{FILE}</a>.</p>\n",
        Escaped(&machines.join("; "))
    );
    for figure in FIGURES {
        let Some(scene) = figure.scene(record) else { continue };
        let (name, title, summary) = (figure.name, Escaped(&scene.title), Escaped(&scene.summary));
        // Writing to a string does not fail.
        _ = writeln!(
            out,
            "<figure id=\"{name}\"><img src=\"{name}.svg\" alt=\"{title}. {summary}\">\
             <figcaption><a href=\"{name}.svg\">SVG</a> · <a href=\"{name}.png\">PNG</a> · \
             <a href=\"{name}.csv\">samples</a></figcaption></figure>"
        );
    }
    out + "</body></html>\n"
}
