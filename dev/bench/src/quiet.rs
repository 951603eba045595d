//! Is the machine quiet enough to measure on? Says so when not; never refuses.

use std::fs;

/// Warnings about what else is running.
pub(crate) fn warnings() -> Vec<String> {
    let mut found = Vec::new();
    let load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| first_number(&text));
    if let Some(load) = load.filter(|load| *load > 0.5) {
        found.push(format!("load average is {load}: figures will be low and noisy"));
    }
    for name in ["cargo", "rustc"] {
        let count = running(name);
        if count > 0 {
            found.push(format!("{count} {name} process(es) running"));
        }
    }
    found
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

fn running(name: &str) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let named = |path: std::path::PathBuf| fs::read_to_string(path.join("comm"));
    entries.flatten().filter(|e| named(e.path()).is_ok_and(|comm| comm.trim() == name)).count()
}
