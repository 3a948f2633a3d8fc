//! Many comparisons at once: Benjamini and Hochberg, "Controlling the false
//! discovery rate", Journal of the Royal Statistical Society B 57, 1995. Of the
//! differences that are shown, at most the level's share is false in the long run;
//! if nothing differs at all, any is shown at most that often.

/// Adjusted probabilities: comparison `i` is shown at a level if its own is at
/// most that level. In the order of `p`.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|x, y| p[*x].total_cmp(&p[*y]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (place, index) in order.iter().enumerate().rev() {
        #[expect(clippy::cast_precision_loss, reason = "numbers of comparisons")]
        let factor = p.len() as f64 / (place + 1) as f64;
        least = least.min(p[*index] * factor);
        adjusted[*index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_example_rejects_four() {
        // Section 4.1 of the paper.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.000,
        ];
        let adjusted = benjamini_hochberg(&p);
        let shown = adjusted.iter().filter(|p| **p <= 0.05).count();
        assert_eq!(shown, 4);
        assert!((adjusted[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_order_of_the_comparisons_does_not_matter() {
        let adjusted = benjamini_hochberg(&[0.04, 0.01, 0.03]);
        assert_eq!(adjusted, [0.04, 0.03, 0.04]);
        assert_eq!(benjamini_hochberg(&[0.2]), [0.2]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn a_small_probability_is_never_adjusted_above_a_larger_one() {
        assert_eq!(
            benjamini_hochberg(&[0.03, 0.031, 1.0]),
            [0.0465, 0.0465, 1.0]
        );
    }
}
