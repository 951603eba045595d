//! Every picture from recorded samples: what a reader needs is written in it, once and apart.

use super::*;
use crate::figures::draw::scene::{Anchor, Text};
use crate::figures::draw::{png, svg};
use crate::figures::page;
use crate::figures::samples::Place;

/// A record with every experiment, a refused point and a program that cannot.
fn record() -> Record {
    let mut origin = Origin {
        machine: "Testing Processor, 2 cores, Linux 6.18".to_owned(),
        remarks: vec!["a remark".to_owned()],
        ..Origin::default()
    };
    for (name, label) in [
        ("longhaul", "longhaul 0.1.0"),
        ("OpenSSH", "OpenSSH 9.2p1"),
        ("netcat", "netcat 1.219-1"),
        ("lhscp → lhsshd", "lhscp → lhsshd 0.1.0"),
        ("scp", "scp 9.2p1"),
    ] {
        origin.programs.insert(name.to_owned(), label.to_owned());
    }
    let mut record = Record::default();
    for figure in FIGURES {
        record.origins.insert(figure.experiment.to_owned(), origin.clone());
    }
    let streams = [("longhaul", "aes128-gcm", 2.0), ("OpenSSH", "aes128-gcm", 1.0)];
    let streams = [streams.as_slice(), &[("netcat", "no encryption", 1.5)]].concat();
    let copies = [("lhscp → lhsshd", "aes128-gcm", 2.0), ("scp", "aes128-gcm", 1.0)];
    let memory = streams.get(..2).unwrap();
    use Metric::{CpuReceive, CpuSend, Memory, Rate};
    for (experiment, panel, who, at, metrics, unit) in [
        ("ciphers", "send", streams.as_slice(), [0.0, 0.0], &[Rate][..], 1e9),
        ("ciphers", "receive", &streams, [0.0, 0.0], &[Rate], 1e9),
        ("ciphers", "send", &streams, [0.0, 0.0], &[CpuSend, CpuReceive], 1.0),
        ("ciphers", "receive", &streams, [0.0, 0.0], &[CpuSend, CpuReceive], 1.0),
        ("cpu-share", "send", &streams, [20.0, 100.0], &[Rate], 1e9),
        ("buffers", "25 ms", &streams, [65536.0, 1e7], &[Rate], 4e7),
        ("buffers", "100 ms", &streams, [65536.0, 1e7], &[Rate], 1e7),
        ("rtt", "streams", &streams, [0.0, 250.0], &[Rate], 3e7),
        ("rtt", "copies", &copies, [0.0, 250.0], &[Rate], 3e7),
        ("startup", "receive", &streams, [0.05, 5.95], &[Rate], 3e7),
        ("startup", "send", &streams, [0.05, 5.95], &[Rate], 3e7),
        ("memory", "fast", memory, [262144.0, 1e8], &[Memory], 3.0),
        ("memory", "slow", memory, [262144.0, 1e8], &[Memory], 1.0),
    ] {
        for &(program, mode, factor) in who {
            for at in at {
                for (run, metric) in (1..=3).flat_map(|run| metrics.iter().map(move |m| (run, *m)))
                {
                    let value = factor * unit * (0.9 + run as f64 / 20.0);
                    push(
                        &mut record,
                        [experiment, panel, program, mode],
                        at,
                        run,
                        metric,
                        Ok(value),
                    );
                }
            }
        }
    }
    let late = Err(Missing::Refused("p99 late, \"very\"".to_owned()));
    push(&mut record, ["rtt", "streams", "longhaul", "aes128-gcm"], 100.0, 1, Rate, late);
    let cannot = Err(Missing::Absent("no such option".to_owned()));
    push(
        &mut record,
        ["ciphers", "send", "OpenSSH", "NONE + NONE MAC"],
        0.0,
        1,
        Rate,
        cannot.clone(),
    );
    push(&mut record, ["startup", "send", "longhaul", "RemoteRcvBuf=64M"], 0.0, 1, Rate, cannot);
    record
}

fn push(
    record: &mut Record,
    place: [&str; 4],
    at: f64,
    run: usize,
    metric: Metric,
    value: Result<f64, Missing>,
) {
    let [experiment, panel, program, mode] = place.map(str::to_owned);
    let place = Place { experiment, panel, program, mode, at };
    record.samples.push(Sample { place, run, metric, value, when: "2026-11-22 04:20".to_owned() });
}

fn scenes() -> Vec<(&'static Figure, Scene)> {
    let record = record();
    FIGURES.iter().map(|figure| (figure, figure.scene(&record).unwrap())).collect()
}

#[test]
fn samples_are_read_as_they_were_written() {
    let record = record();
    assert_eq!(Record::parse(&record.text()).unwrap(), record);
}

#[test]
fn a_file_of_one_run_alone_is_read_too() {
    let text = "# machine,Old Processor\n# remark,busy\n# program,scp,scp 8.0p1\n\
                rtt,copies,scp,aes128-gcm,0,1,bytes/s,5,,2026-11-20 04:20\n";
    let record = Record::parse(text).unwrap();
    let origin = &record.origins["rtt"];
    assert_eq!((origin.machine.as_str(), origin.label("scp")), ("Old Processor", "scp 8.0p1"));
    assert_eq!((origin.remarks.as_slice(), record.origins.len()), (&["busy".to_owned()][..], 1));
}

#[test]
fn a_damaged_record_is_named() {
    let text = record().text() + "rtt,streams,longhaul\n";
    let said = format!("{:#}", Record::parse(&text).unwrap_err());
    assert!(said.contains("3 fields instead of 10"), "{said}");
}

#[test]
fn a_later_run_of_one_experiment_leaves_the_others() {
    let mut all = record();
    let mut later = record().only("rtt");
    later.samples.truncate(5);
    let origin = later.origins.get_mut("rtt").unwrap();
    origin.machine = "Another Processor".to_owned();
    origin.remarks.clear();
    origin.programs.insert("scp".to_owned(), "scp 10.0p1".to_owned());
    all.take(later);
    let all = Record::parse(&all.text()).unwrap();
    let count = |name: &str| all.samples.iter().filter(|s| s.place.experiment == name).count();
    assert_eq!(count("rtt"), 5);
    assert!(count("ciphers") > 5);
    let (later, old) = (&all.origins["rtt"], &all.origins["ciphers"]);
    assert_eq!((later.machine.as_str(), later.label("scp")), ("Another Processor", "scp 10.0p1"));
    assert!(later.remarks.is_empty());
    assert_eq!(*old, record().origins["ciphers"], "measured elsewhere, with other versions");
}

#[test]
fn each_picture_says_what_a_reader_needs() {
    for (figure, scene) in scenes() {
        let words: Vec<_> = scene.words().into_iter().map(|text| text.words.as_str()).collect();
        let has = |part: &str| words.iter().any(|words| words.contains(part));
        let axes: &[&str] = match figure.name {
            "ciphers" => &["GB/s", "aes128-gcm", "not with OpenSSH", "netcat 1.219-1: 1.5"],
            "cpu" => &["CPU-seconds per GB, both ends", "Sending", "Receiving"],
            "cpu-share" => &["GB/s", "share of the cores, %", "aes128-gcm"],
            "buffers" => {
                &["Mbit/s", "largest socket buffer", "64 KiB", "64 MiB", "buffer / 100 ms"]
            }
            "rtt" => &["Mbit/s", "round trip, ms", "scp 9.2p1", "1 of 31 turns are left out"],
            "startup" => &["Mbit/s", "seconds since the command was started", "Not measured"],
            "memory" => {
                &["MiB over an idle session", "largest window of the channel", "a whole window"]
            }
            other => panic!("{other}: what is it to say?"),
        };
        let everywhere =
            ["longhaul", "9.2p1", "Testing Processor", "2026-11-22", "Median of 3", "a remark"];
        for part in axes.iter().chain(&everywhere) {
            assert!(has(part), "{}: '{part}' is not in {words:?}", figure.name);
        }
    }
}

/// Left, top, right and bottom of a text.
fn extent(text: &Text) -> [f64; 4] {
    let [x, y] = text.at;
    let (width, height) = (text.width(), text.size * 0.75);
    if text.upright {
        let half = width / 2.0;
        assert_eq!(text.anchor, Anchor::Middle);
        return [x - height, y - half, x, y + half];
    }
    [x + text.shift(), y - height, x + text.shift() + width, y]
}

#[test]
fn no_text_covers_another_or_leaves_the_picture() {
    for (figure, scene) in scenes() {
        let [width, height] = scene.size;
        let words = scene.words();
        for (index, text) in words.iter().enumerate() {
            let [left, top, right, bottom] = extent(text);
            let inside = left >= 0.0 && top >= 0.0 && right <= width && bottom <= height;
            assert!(inside, "{}: '{}' leaves the picture", figure.name, text.words);
            for other in words.iter().skip(index + 1) {
                let [l, t, r, b] = extent(other);
                let apart = right <= l || r <= left || bottom <= t || b <= top;
                assert!(apart, "{}: '{}' on '{}'", figure.name, text.words, other.words);
            }
        }
    }
}

#[test]
fn each_picture_is_a_whole_svg_that_fits_into_a_repository() {
    for (figure, scene) in scenes() {
        let text = svg::svg(&scene);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{}", figure.name);
        assert!(text.contains("<title>") && text.contains("viewBox=\"0 0 960 "), "{}", figure.name);
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
        assert!(!text.contains("NaN") && !text.contains("inf"), "{}", figure.name);
        assert!(text.len() < 60_000, "{}: {} bytes", figure.name, text.len());
    }
}

#[test]
fn each_picture_is_a_png_with_something_in_it() {
    for (figure, scene) in scenes() {
        let file = png::png(&scene).unwrap();
        let pixels = tiny_skia::Pixmap::decode_png(&file).unwrap();
        let [width, height] = scene.size.map(|side| (side * 2.0).round() as u32);
        assert_eq!((pixels.width(), pixels.height()), (width, height), "{}", figure.name);
        let white = tiny_skia::PremultipliedColorU8::from_rgba(255, 255, 255, 255).unwrap();
        let inked = pixels.pixels().iter().filter(|pixel| **pixel != white).count();
        assert!(inked * 100 > pixels.pixels().len(), "{}: {inked} pixels", figure.name);
    }
}

#[test]
fn a_record_without_samples_of_a_picture_draws_the_others() {
    let mut record = record();
    record.samples.retain(|sample| sample.place.experiment == "rtt");
    let drawn = FIGURES.iter().filter(|figure| figure.scene(&record).is_some());
    assert_eq!(drawn.map(|figure| figure.name).collect::<Vec<_>>(), ["rtt"]);
    let page = page::page(&record);
    assert!(page.contains("rtt.svg") && !page.contains("memory.svg"));
}
