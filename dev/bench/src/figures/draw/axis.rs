//! Axis: from values to places, which values get a mark, and how numbers are written.

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// An axis from its least to its greatest value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What is shown, with its unit.
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Values with a mark, and what is written there.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to a round number at or above `max`.
    pub(crate) fn linear(title: &str, max: f64) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let step = round_step(max / 4.5);
        let count = (max / step - 1e-9).ceil() as u32;
        let ticks: Vec<_> = (0..=count).map(|n| f64::from(n) * step).collect();
        let digits = digits_of(step);
        let label = |value| decimal(value, if value == 0.0 { 0 } else { digits });
        let ticks = ticks.into_iter().map(|value| (value, label(value)));
        let max = f64::from(count) * step;
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            min: 0.0,
            max,
            ticks: ticks.collect(),
        }
    }

    /// Powers of ten from at most `min` to at least `max`.
    pub(crate) fn log(title: &str, min: f64, max: f64) -> Self {
        let (from, to) = (min.log10().floor() as i32, max.log10().ceil() as i32);
        let ticks: Vec<_> = (from..=to.max(from + 1)).map(|power| 10_f64.powi(power)).collect();
        let label = |value: f64| decimal(value, if value < 1.0 { digits_of(value) } else { 0 });
        let ticks: Vec<_> = ticks.into_iter().map(|value| (value, label(value))).collect();
        let (min, max) = (10_f64.powi(from), 10_f64.powi(to.max(from + 1)));
        Self { title: title.to_owned(), scale: Scale::Log, min, max, ticks }
    }

    /// Exactly these marks, the first and last of which end the axis.
    pub(crate) fn marked(title: &str, scale: Scale, ticks: Vec<(f64, String)>) -> Self {
        let ends = |f: fn(f64, f64) -> f64| ticks.iter().map(|(value, _)| *value).reduce(f);
        let (min, max) = (ends(f64::min).unwrap_or(0.0), ends(f64::max).unwrap_or(1.0));
        Self { title: title.to_owned(), scale, min, max, ticks }
    }

    /// Sizes in bytes between two powers of two; every second or fourth power is marked.
    pub(crate) fn sizes(title: &str, scale: Scale, min: f64, max: f64) -> Self {
        let ticks: Vec<f64> = match scale {
            Scale::Linear => (0..=4).map(|n| max / 4.0 * f64::from(n)).collect(),
            Scale::Log => std::iter::successors(Some(min), |v| Some(v * 4.0))
                .take_while(|v| *v <= max)
                .collect(),
        };
        let ticks = ticks.into_iter().map(|value| (value, size(value))).collect();
        let axis = Self::marked(title, scale, ticks);
        Self { max, ..axis }
    }

    /// Where `value` is between the ends: 0 to 1. What lies outside is moved to the end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|n| n * power >= least * 0.999);
    step.unwrap_or(10.0) * power
}

/// Digits after the point that a multiple of `step` needs.
fn digits_of(step: f64) -> usize {
    (0..6)
        .find(|n| {
            let scaled = step * 10_f64.powi(*n);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-9)
        })
        .map_or(6, |n| n as usize)
}

/// With thousands apart: `12,500`.
pub(crate) fn decimal(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// Three digits that mean something: `0.42`, `1.69`, `12.3`, `850`.
pub(crate) fn brief(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.0995 => 2,
        v if v >= 0.00995 || v == 0.0 => 3,
        _ => 4,
    };
    decimal(value, digits)
}

/// `64 KiB`, `1 MiB`, `0`.
pub(crate) fn size(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b <= 0.0 => return "0".to_owned(),
        b if b < 1048576.0 => (b / 1024.0, "KiB"),
        b if b < 1073741824.0 => (b / 1048576.0, "MiB"),
        b => (b / 1073741824.0, "GiB"),
    };
    let digits = usize::from(value.fract() > 0.0);
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_axes_end_at_round_numbers() {
        assert_eq!(labels(&Axis::linear("", 940.0)), ["0", "250", "500", "750", "1,000"]);
        assert_eq!(labels(&Axis::linear("", 1.06)), ["0", "0.25", "0.50", "0.75", "1.00", "1.25"]);
        assert_eq!(labels(&Axis::linear("", 0.0)).len(), 5);
        assert_eq!(Axis::linear("", 940.0).share(500.0), 0.5);
    }

    #[test]
    fn log_axes_end_at_powers() {
        let axis = Axis::log("", 3.0, 940.0);
        assert_eq!(labels(&axis), ["1", "10", "100", "1,000"]);
        assert!((axis.share(10.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(labels(&Axis::log("", 0.5, 0.7)), ["0.1", "1"]);
    }

    #[test]
    fn sizes_have_binary_units() {
        let axis = Axis::sizes("", Scale::Log, 65536.0, 67108864.0);
        assert_eq!(labels(&axis), ["64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB"]);
        let axis = Axis::sizes("", Scale::Linear, 0.0, 67108864.0);
        assert_eq!(labels(&axis), ["0", "16 MiB", "32 MiB", "48 MiB", "64 MiB"]);
    }

    #[test]
    fn numbers_have_three_digits_that_mean_something() {
        let all = [0.0123, 0.42, 1.694, 12.34, 850.4, 1234567.0].map(brief);
        assert_eq!(all, ["0.012", "0.42", "1.69", "12.3", "850", "1,234,567"]);
    }

    #[test]
    fn what_lies_outside_stays_at_the_edge() {
        let axis = Axis::linear("", 10.0);
        assert_eq!((axis.share(-5.0), axis.share(1e9)), (0.0, 1.0));
        assert_eq!(Axis::log("", 1.0, 10.0).share(0.0), 0.0);
    }
}
