//! What a transfer server counts about itself: the file of its `--counters` flag, whose
//! layout is in `tcp/transfer/README.md`.

use anyhow::{Context as _, ensure};
use std::fs;
use std::path::Path;

/// Written last: a file without it is not ready.
const MAGIC: u64 = u64::from_le_bytes(*b"WSBCNTR1");
/// Numbers of the header: the magic, lanes, slots of each, whether allocations are counted.
const HEADER: usize = 16;
/// Slots that are read here.
const SLOTS: usize = 5;
/// Threads write to lanes of their own, of which there are few.
const LANES_MAX: u64 = 1 << 10;

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What the allocator counted; `None` if it does not.
    pub heap: Option<Heap>,
    /// Connections that are served now.
    pub tasks: u64,
}

/// What a counting allocator counted since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Calls that asked for memory.
    pub calls: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Bytes that were not given back.
    pub in_use_bytes: u64,
    /// The most that were in use.
    pub peak_bytes: u64,
}

impl Counters {
    /// Of several processes together.
    ///
    /// # Errors
    /// If a file cannot be read or is not what it should be.
    pub fn of_all(paths: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let path = path.as_ref();
            let name = || format!("counters of the server, {}", path.display());
            let bytes = fs::read(path).with_context(name)?;
            let one = Self::parse(&bytes).with_context(name)?;
            all.tasks += one.tasks;
            if let Some(one) = one.heap {
                let heap = all.heap.get_or_insert_default();
                heap.calls += one.calls;
                heap.bytes += one.bytes;
                heap.in_use_bytes += one.in_use_bytes;
                heap.peak_bytes += one.peak_bytes;
            }
        }
        Ok(all)
    }

    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
        let [magic, lanes, slots, is_counted, ..] = numbers[..] else {
            anyhow::bail!("shorter than its header");
        };
        ensure!(magic == MAGIC, "it is not ready, or not a counters file");
        ensure!(
            (1..=LANES_MAX).contains(&lanes) && (SLOTS as u64..=LANES_MAX).contains(&slots),
            "{lanes} lanes of {slots} slots are not what a server has"
        );
        let lanes = numbers
            .get(HEADER..)
            .unwrap_or_default()
            .chunks_exact(slots as usize)
            .take(lanes as usize);
        ensure!(lanes.len() as u64 == numbers[1], "it is cut off");
        let mut sums = [0_u64; SLOTS];
        for lane in lanes {
            for (sum, value) in sums.iter_mut().zip(lane) {
                // What one thread adds another may take away.
                *sum = sum.wrapping_add(*value);
            }
        }
        let [calls, bytes, in_use_bytes, peak_bytes, tasks] = sums;
        let heap = Heap {
            calls,
            bytes,
            in_use_bytes,
            peak_bytes,
        };
        Ok(Self {
            heap: (is_counted == 1).then_some(heap),
            tasks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(is_counted: u64, lanes: &[[u64; SLOTS]]) -> Vec<u8> {
        let mut numbers = vec![MAGIC, lanes.len() as u64, SLOTS as u64, is_counted];
        numbers.resize(HEADER, 0);
        numbers.extend(lanes.iter().flatten());
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn lanes_are_summed_and_one_may_have_taken_what_another_gave() {
        let minus = |less: u64| 0_u64.wrapping_sub(less);
        let bytes = file(
            1,
            &[
                [0, 0, 0, 90, 0],
                [5, 100, 100, 0, 3],
                [1, 9, minus(60), 0, minus(1)],
            ],
        );
        let heap = Heap {
            calls: 6,
            bytes: 109,
            in_use_bytes: 40,
            peak_bytes: 90,
        };
        let expected = Counters {
            heap: Some(heap),
            tasks: 2,
        };
        assert_eq!(Counters::parse(&bytes).unwrap(), expected);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counters");
        fs::write(&path, &bytes).unwrap();
        let both = Counters::of_all(&[&path, &path]).unwrap();
        assert_eq!((both.tasks, both.heap.unwrap().calls), (4, 12));
    }

    #[test]
    fn what_is_not_counted_is_no_zero_and_what_is_broken_is_told() {
        let uncounted = Counters::parse(&file(0, &[[0, 0, 0, 0, 7]])).unwrap();
        assert_eq!((uncounted.heap, uncounted.tasks), (None, 7));
        let error = |bytes: &[u8]| Counters::parse(bytes).unwrap_err().to_string();
        assert_eq!(error(b""), "shorter than its header");
        let mut unready = file(1, &[[0; SLOTS]]);
        unready[0] = 0;
        assert!(error(&unready).starts_with("it is not ready"));
        let whole = file(1, &[[0; SLOTS]; 2]);
        assert_eq!(error(&whole[..whole.len() - 8]), "it is cut off");
        let path = Path::new("/nowhere/counters");
        let error = Counters::of_all(&[path]).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/counters"));
    }
}
