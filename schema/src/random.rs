//! The one source of numbers that look random: whoever has the seed has them all.

/// Steele, Lea and Flood, 2014. Written here because a recorded seed must mean
/// the same in every later version, which no crate promises.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, evenly enough: the bias is below `bound` in 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 1234567 of the authors' C program.
        let mut random = SplitMix64::new(1_234_567);
        let outputs = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(
            outputs,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn every_number_below_the_bound_comes_up() {
        let mut random = SplitMix64::new(1);
        let mut counts = [0; 7];
        for _ in 0..7000 {
            counts[usize::try_from(random.below(7)).unwrap()] += 1;
        }
        let even = counts.iter().all(|count| (800..1200).contains(count));
        assert!(even, "{counts:?}");
    }
}
