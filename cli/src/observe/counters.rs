//! What a transfer server counts about itself: the file of its `--counters` flag, whose
//! layout is in `tcp/transfer/README.md`.

use anyhow::{Context as _, ensure};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Written last: a file without it is not ready.
const MAGIC: u64 = u64::from_le_bytes(*b"WSBCNTR1");
/// Numbers of the header: the magic, lanes, slots of each, whether allocations are counted.
const HEADER: usize = 16;
/// Slots that are read here.
const SLOTS: usize = 5;
/// Threads write to lanes of their own, of which there are few.
const LANES_MAX: u64 = 1 << 10;

/// A file at most.
const FILE_MOST_BYTES: usize = 64 << 10;

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

/// Where a server can count without ever waiting for a disk: in memory, if the system
/// has a place for that, and beside its log if not.
pub fn place(log: &Path) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let name = log.file_stem().unwrap_or_default().to_string_lossy();
    match shared.is_dir() {
        true => shared.join(format!("wsbench-{}-{name}.counters", std::process::id())),
        false => log.with_extension("counters"),
    }
}

/// The files of a server's processes, open and without a name any more: nothing is left
/// of them, however this process ends.
#[derive(Debug, Default)]
pub struct CounterFiles(Vec<File>);

impl CounterFiles {
    /// Takes the files that the processes made when they started.
    ///
    /// # Errors
    /// If one is not there.
    pub fn take(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let take = |path: &PathBuf| {
            let opened = File::open(path).and_then(|file| fs::remove_file(path).map(|()| file));
            opened.with_context(|| format!("counters of the server, {}", path.display()))
        };
        paths.iter().map(take).collect::<Result<_, _>>().map(Self)
    }

    /// What they say now, together; `None` if there are none.
    ///
    /// # Errors
    /// If one cannot be read or is not what it should be.
    pub fn read(&self) -> anyhow::Result<Option<Counters>> {
        match self.0.is_empty() {
            true => Ok(None),
            false => Counters::of_all(&self.0).map(Some),
        }
    }
}

impl Counters {
    fn of_all(files: &[File]) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for file in files {
            let name = "counters of the server";
            let mut bytes = vec![0; FILE_MOST_BYTES];
            let length = file.read_at(&mut bytes, 0).context(name)?;
            let one = Self::parse(&bytes[..length]).context(name)?;
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
        let other = folder.path().join("other");
        fs::write(&other, &bytes).unwrap();
        let files = CounterFiles::take(&[path.clone(), other]).unwrap();
        let both = files.read().unwrap().unwrap();
        assert_eq!((both.tasks, both.heap.unwrap().calls), (4, 12));
        assert!(!path.exists());
        assert_eq!(CounterFiles::default().read().unwrap(), None);
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
        let error = CounterFiles::take(&["/nowhere/counters".into()]).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/counters"));
    }
}
