//! How probable it is that a right harness fails its own test.

/// That more than `allowed` of `tries` happen, each with the probability `each`.
pub fn more_than(allowed: u32, tries: u32, each: f64) -> f64 {
    let mut exactly = (1.0 - each).powi(i32::try_from(tries).unwrap_or(i32::MAX));
    let mut at_most = 0.0;
    for happened in 0..=allowed {
        at_most += exactly;
        let (left, next) = (f64::from(tries - happened), f64::from(happened + 1));
        exactly *= left / next * each / (1.0 - each);
    }
    (1.0_f64 - at_most).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_tail_of_the_binomial_distribution() {
        for (allowed, tries, each, expected) in [
            (0, 1, 0.3, 0.3),
            (0, 2, 0.5, 0.75),
            (1, 2, 0.5, 0.25),
            // 1 - 0.9974, from tables of the distribution.
            (4, 20, 0.05, 0.0026),
        ] {
            let found = more_than(allowed, tries, each);
            assert!(
                (found - expected).abs() < 0.00005,
                "{found}, not {expected}"
            );
        }
    }
}
