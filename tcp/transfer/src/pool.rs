//! A bounded pool of buffers, shared by all connections. Who finds it empty waits in line.
//!
//! A buffer is out from a read until all of that read is written, so a peer that does not read would keep
//! one. Enough such peers would keep them all and stop everybody. Hence `PATIENCE`: whose peer has taken
//! nothing for so long copies the rest aside if the pool is empty, and gives its buffer back.

use std::io;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::counters::{Slot, set};

/// How long a peer may take nothing while others have no buffer.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Buffers of a pool for this many threads.
pub fn bound(threads: usize) -> usize {
    (4 * threads).max(64)
}

pub struct Pool {
    /// As many permits as buffers may be out; tokio's hands them on in the order of asking.
    permits: Semaphore,
    shelf: Mutex<Shelf>,
    buffer_bytes: usize,
}

#[derive(Default)]
struct Shelf {
    /// Last in, first out: what was used last is in the cache.
    buffers: Vec<Box<[u8]>>,
    out: usize,
    most_out: usize,
}

impl Pool {
    /// Buffers are made when they are first needed, and kept.
    pub fn new(bound: usize, buffer_bytes: usize) -> Self {
        Self {
            permits: Semaphore::new(bound),
            shelf: Mutex::default(),
            buffer_bytes,
        }
    }

    /// Waits in line for a buffer.
    pub async fn take(&self) -> io::Result<Lease<'_>> {
        let permit = self.permits.acquire().await.map_err(io::Error::other)?;
        Ok(self.lend(permit))
    }

    /// The same for a thread, in the same line.
    pub fn take_blocking(&self) -> io::Result<Lease<'_>> {
        match self.permits.try_acquire() {
            Ok(permit) => Ok(self.lend(permit)),
            Err(_) => block_on(self.take()),
        }
    }

    /// Whether the next who comes must wait, and others may do already.
    pub fn is_empty(&self) -> bool {
        self.permits.available_permits() == 0
    }

    fn lend<'a>(&'a self, permit: SemaphorePermit<'a>) -> Lease<'a> {
        let mut shelf = self.shelf();
        let buffer = shelf.buffers.pop();
        shelf.out += 1;
        shelf.most_out = shelf.most_out.max(shelf.out);
        set(Slot::PoolInUse, shelf.out as u64);
        set(Slot::PoolPeak, shelf.most_out as u64);
        drop(shelf);
        Lease {
            buffer: buffer.unwrap_or_else(|| vec![0; self.buffer_bytes].into()),
            pool: self,
            _permit: permit,
        }
    }

    /// No one panics while holding it, and if so: a list of buffers is whole at any moment.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps until the future is ready: what a thread needs of a runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}

/// A buffer that is out; dropping it gives it back.
pub struct Lease<'a> {
    buffer: Box<[u8]>,
    pool: &'a Pool,
    /// Goes back after the buffer, being dropped after it.
    _permit: SemaphorePermit<'a>,
}

impl Deref for Lease<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut shelf = self.pool.shelf();
        shelf.out -= 1;
        set(Slot::PoolInUse, shelf.out as u64);
        shelf.buffers.push(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asked_first_gets_the_first_buffer_that_comes_back() {
        let pool = Pool::new(1, 8);
        let out = block_on(pool.take()).unwrap();
        assert!(pool.is_empty());
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(pool.take());
        assert!(first.as_mut().poll(&mut context).is_pending());
        thread::scope(|scope| {
            let second = scope.spawn(|| drop(pool.take_blocking().unwrap()));
            drop(out);
            let Poll::Ready(Ok(lease)) = first.as_mut().poll(&mut context) else {
                panic!("it went to the second");
            };
            assert!(!second.is_finished());
            drop(lease);
            second.join().unwrap();
        });
        assert!(!pool.is_empty());
    }

    #[test]
    fn a_buffer_that_came_back_is_lent_again_and_no_other_is_made() {
        let pool = Pool::new(64, 8);
        let place = pool.take_blocking().unwrap().as_ptr();
        assert_eq!(pool.take_blocking().unwrap().as_ptr(), place);
        assert_eq!(pool.shelf().buffers.len(), 1);
        assert_eq!(pool.shelf().most_out, 1);
    }
}
