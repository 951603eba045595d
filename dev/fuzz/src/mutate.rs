//! Changes inputs without looking at what they reach: the same every time, for plain tests.

/// Numbers and lengths that readers stumble over.
const EDGES: [u32; 8] = [0, 1, 0x7f, 0xff, 0x8000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// A small generator of numbers (xorshift64*), so that a failure comes back.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % end.max(1)
    }
}

/// `count` inputs made of `seeds`.
pub fn blindly(seeds: &[Vec<u8>], count: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    (0..count).map(move |_| {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            let other = &seeds[random.below(seeds.len())];
            change(&mut input, other, &mut random);
        }
        input
    })
}

/// One change; `other` is an input to take a piece of.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(16)).min(input.len());
    match random.below(7) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => input.truncate(at),
        3 => drop(input.drain(at..end)),
        4 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        5 => {
            let edge = EDGES[random.below(EDGES.len())].to_be_bytes();
            input.splice(at..(at + 4).min(input.len()), edge);
        }
        _ => {
            let from = random.below(other.len() + 1);
            let to = (from + random.below(32)).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
    }
}
