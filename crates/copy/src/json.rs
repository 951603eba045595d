//! `--json`: one JSON object per line on standard output, for programs. docs/lhscp.md has the
//! fields; they are added to, never renamed.

use crate::meter::Counts;
use crate::out;
use crate::progress::Now;
use copy::options::{Lanes, Options, Place};
use copy::report::{Failure, Through, What};
use copy::{Event, Report};
use serde_json::{Map, Value, json};

fn line(value: &Value) {
    out::line(&value.to_string());
}

/// The first line: what was asked for.
pub(crate) fn start(options: &Options) {
    let sources: Vec<_> = options.sources.iter().map(place).collect();
    let lanes = match options.lanes {
        Lanes::Auto => json!("auto"),
        Lanes::Fixed(number) => json!(number),
    };
    line(&json!({
        "event": "start",
        "version": conf::flags::VERSION,
        "sources": sources,
        "target": place(&options.target),
        "lanes": lanes,
        "dry_run": options.dry_run,
        "shard": options.shard.map(|shard| shard.to_string()),
    }));
}

fn place(place: &Place) -> Value {
    use std::os::unix::ffi::OsStrExt;
    let (host, path) = match place {
        Place::Local(path) => (None, path.as_os_str().as_bytes()),
        Place::Remote(remote) => (Some(&remote.host.name), remote.path.as_slice()),
    };
    let mut object = Map::new();
    if let Some(host) = host {
        object.insert("host".to_owned(), json!(host));
    }
    with_path(object, path)
}

/// A line per event worth one; movement is in `progress`.
pub(crate) fn tell(event: &Event<'_>) {
    if let Some(value) = value(event) {
        line(&value);
    }
}

fn value(event: &Event<'_>) -> Option<Value> {
    match *event {
        Event::Started { path, size } => Some(object("started", path, json!({ "size": size }))),
        Event::Finished { path, size, outcome, verified } => {
            let outcome = outcome.name();
            let fields = json!({ "size": size, "outcome": outcome, "verified": verified });
            Some(object("file", path, fields))
        }
        Event::Would { act, path, size } => {
            Some(object("would", path, json!({ "act": act.name(), "size": size })))
        }
        Event::Failed(failure) => Some(failed(failure)),
        Event::Warned { path: Some(path), name, text } => {
            let name = String::from_utf8_lossy(name.unwrap_or(path));
            Some(object("warning", path, json!({ "name": name, "why": text })))
        }
        Event::Warned { path: None, text, .. } => Some(json!({ "event": "warning", "why": text })),
        Event::LaneOpened { lane, host, connection, channel } => Some(json!({
            "event": "lane", "lane": lane.0, "state": "opened",
            "host": host, "connection": connection, "channel": channel,
        })),
        Event::LaneClosed { lane } => {
            Some(json!({ "event": "lane", "lane": lane.0, "state": "closed" }))
        }
        Event::LaneFailed { lane, why, retry_in: None, .. } => {
            Some(json!({ "event": "lane", "lane": lane.0, "state": "failed", "why": why }))
        }
        Event::LaneFailed { lane, why, retry_in: Some(wait), .. } => Some(json!({
            "event": "retry", "lane": lane.0, "why": why, "in": wait.as_secs_f64(),
        })),
        Event::Found { .. } | Event::Scanned | Event::Moved { .. } | Event::Spared { .. } => None,
    }
}

fn failed(failure: &Failure) -> Value {
    match &failure.what {
        What::Path(path) => {
            let name = String::from_utf8_lossy(failure.name());
            object("error", path, json!({ "name": name, "why": failure.why }))
        }
        What::Host(host) => json!({ "event": "error", "host": host, "why": failure.why }),
    }
}

/// An event about a path, with more fields.
fn object(event: &str, path: &[u8], fields: Value) -> Value {
    let mut object = Map::from_iter([("event".to_owned(), json!(event))]);
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    with_path(object, path)
}

/// JSON is text and names are bytes: one that is no UTF-8 comes lossy for people, and exact in
/// hexadecimal.
fn with_path(mut object: Map<String, Value>, path: &[u8]) -> Value {
    object.insert("path".to_owned(), json!(String::from_utf8_lossy(path)));
    if std::str::from_utf8(path).is_err() {
        let hex: String = path.iter().map(|byte| format!("{byte:02x}")).collect();
        object.insert("path_hex".to_owned(), json!(hex));
    }
    Value::Object(object)
}

/// A line each second: how it stands.
pub(crate) fn progress(now: &Now<'_>) {
    let Counts { files_found, bytes_found, scanned, files, ref lanes, .. } = *now.counts;
    line(&json!({
        "event": "progress",
        "seconds": now.elapsed.as_secs_f64(),
        "files": files,
        "files_found": files_found,
        "bytes": now.counts.bytes(),
        "bytes_found": bytes_found,
        "scanned": scanned,
        "rate": now.rate,
        "lanes": lanes.len(),
        "remaining": now.remaining.map(|left| left.as_secs_f64()),
    }));
}

/// The last line: what became of it.
pub(crate) fn report(report: &Report, peak: f64) {
    line(&json!({
        "event": "report",
        "complete": report.is_complete(),
        "copied": report.copied,
        "skipped": report.skipped,
        "attributes": report.attributes,
        "verified": report.verified,
        "directories": report.directories,
        "failed": report.failures.len(),
        "bytes": report.bytes,
        "wasted": report.wasted,
        "spared": report.spared,
        "retries": report.retries,
        "lanes": report.lanes,
        "connections": report.connections,
        "seconds": report.elapsed.as_secs_f64(),
        "mean": report.mean(),
        "peak": peak,
        "through": report.through.map(Through::name),
        "limited_by": report.limited_by,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use copy::observe::{LaneId, Outcome};
    use std::time::Duration;

    fn failed_by(what: What, name: Option<&str>, why: &str) -> Failure {
        Failure { what, name: name.map(|name| name.into()), why: why.to_owned() }
    }

    #[test]
    fn events_are_objects_with_a_name() {
        let failure = failed_by(What::Host("h".to_owned()), None, "down");
        let file = failed_by(What::Path(b"a/b".to_vec()), Some("h:/x/a/b"), "no");
        let wait = Some(Duration::from_millis(2500));
        let finished =
            Event::Finished { path: b"a/b", size: 3, outcome: Outcome::Skipped, verified: true };
        let cases = [
            (
                finished,
                r#"{"event":"file","outcome":"skipped","path":"a/b","size":3,"verified":true}"#,
            ),
            (Event::Failed(&failure), r#"{"event":"error","host":"h","why":"down"}"#),
            (
                Event::Failed(&file),
                r#"{"event":"error","name":"h:/x/a/b","path":"a/b","why":"no"}"#,
            ),
            (
                Event::LaneFailed { lane: LaneId(1), host: "h", why: "reset", retry_in: wait },
                r#"{"event":"retry","in":2.5,"lane":1,"why":"reset"}"#,
            ),
        ];
        for (event, want) in cases {
            assert_eq!(value(&event).unwrap().to_string(), want);
        }
        assert!(value(&Event::Scanned).is_none());
    }

    #[test]
    fn a_name_that_is_no_text_comes_in_hexadecimal_too() {
        let event = Event::Started { path: b"\xff\n", size: 1 };
        let value = value(&event).unwrap();
        assert_eq!(value["path_hex"], "ff0a");
        assert!(!value.to_string().contains('\n'));
        let plain = Event::Started { path: b"a", size: 1 };
        assert!(super::value(&plain).unwrap().get("path_hex").is_none());
    }
}
