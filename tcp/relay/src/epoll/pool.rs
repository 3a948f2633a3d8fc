//! Pipes or files of a thread that are used again, and how many of them there may be.

/// Kept unused beside as many as are in use: what a burst has opened is closed after it.
const SPARE: usize = 8;

pub struct Pool<T> {
    spare: Vec<T>,
    in_use: usize,
    most: usize,
}

impl<T> Pool<T> {
    /// Of `most` at a time, used and unused.
    pub fn new(most: usize) -> Self {
        Self {
            spare: Vec::new(),
            in_use: 0,
            most,
        }
    }

    /// One that was used before or is made now; `None` when there are as many as there
    /// may be, or none can be made.
    pub fn take(&mut self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        let taken = match self.spare.pop() {
            None if self.in_use == self.most => None,
            None => make(),
            spare => spare,
        };
        self.in_use += usize::from(taken.is_some());
        taken
    }

    /// Takes one back, to be used again.
    pub fn give(&mut self, item: T) {
        self.spare.push(item);
        self.lose();
    }

    /// Learns that one was closed.
    pub fn lose(&mut self) {
        self.in_use -= 1;
        self.spare.truncate(SPARE + self.in_use);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_most_are_open_and_few_stay_so() {
        const MOST: usize = 100;
        let mut pool = Pool::new(MOST);
        let mut made = 0;
        let mut make = || {
            made += 1;
            Some(made)
        };
        let mut taken: Vec<_> = (0..MOST).filter_map(|_| pool.take(&mut make)).collect();
        assert_eq!((taken.len(), pool.take(&mut make)), (MOST, None));
        // Those that come and go are the same ones.
        for _ in 0..MOST / 2 {
            pool.give(taken.remove(0));
        }
        taken.extend((0..MOST / 2).filter_map(|_| pool.take(&mut make)));
        assert_eq!(taken.len(), MOST);
        taken.drain(1..).for_each(|item| pool.give(item));
        pool.lose();
        assert_eq!((pool.spare.len(), pool.in_use), (SPARE, 0));
        assert!(pool.take(|| None).is_some());
        assert_eq!(made, MOST);
    }

    #[test]
    fn one_that_cannot_be_made_is_not_counted() {
        let mut pool: Pool<()> = Pool::new(1);
        assert_eq!(pool.take(|| None), None);
        assert_eq!(pool.take(|| Some(())), Some(()));
    }
}
