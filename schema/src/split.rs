//! Splitting a whole over processes and shards, the remainder too.

/// Part `index` of `total` split over `parts`; the remainder goes to the first ones.
#[must_use]
pub fn share(total: u64, parts: usize, index: usize) -> u64 {
    let parts = parts as u64;
    total / parts + u64::from((index as u64) < total % parts)
}

/// Splits `total` in proportion to `weights`, without losing a remainder and
/// without giving to a weight of zero.
#[must_use]
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let (mut seen, mut given) = (0u128, 0u64);
    let part = |weight: &u64| {
        seen += u128::from(*weight);
        let until = (u128::from(total) * seen / sum) as u64;
        let part = until - given;
        given = until;
        part
    };
    weights.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_a_split() {
        for (total, weights) in [
            (10, vec![3, 3, 3]),
            (7, vec![0, 5, 1]),
            (1, vec![9, 9]),
            (0, vec![1]),
        ] {
            let parts = apportion(total, &weights);
            assert_eq!(parts.iter().sum::<u64>(), total);
            assert!(
                parts
                    .iter()
                    .zip(&weights)
                    .all(|(part, weight)| *weight > 0 || *part == 0)
            );
        }
        assert_eq!(apportion(5, &[0, 0]), [0, 0]);
        assert_eq!(
            (0..3).map(|index| share(10, 3, index)).collect::<Vec<_>>(),
            [4, 3, 3]
        );
    }
}
