//! Work that is the same for many things and of no order, on all CPUs that there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each item, in their order.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            done.push((index, work(item)));
        }
        done
    };
    let mut all = thread::scope(|scope| {
        let others = cpus.min(items.len()).saturating_sub(1);
        let others: Vec<_> = (0..others).map(|_| scope.spawn(some)).collect();
        let mut all = some();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_made_stands_in_the_order_of_what_it_is_made_of() {
        let items: Vec<u64> = (0..500).collect();
        let made = super::map(&items, |item| item * 2);
        let expected: Vec<u64> = (0..1000).step_by(2).collect();
        assert_eq!(made, expected);
        assert!(super::map(&items[..0], |item| *item).is_empty());
    }
}
