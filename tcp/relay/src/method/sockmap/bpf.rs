//! What is used of bpf(2), for which there is no safe wrapper: maps, one kind of
//! program, and the ring in which it says something.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const MAP_DELETE_ELEM: u32 = 3;
const PROG_LOAD: u32 = 5;
const PROG_ATTACH: u32 = 8;

const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_SOCKHASH: u32 = 18;
const MAP_TYPE_RINGBUF: u32 = 27;
/// Memory for an entry when it is made, not for all of them at once.
const NO_PREALLOC: u32 = 1;

const PROG_TYPE_SK_SKB: u32 = 14;
const SK_SKB_STREAM_VERDICT: u32 = 5;
/// None of the program's helpers asks for the GPL.
const LICENSE: &[u8] = b"MIT\0";

/// The members of the kernel's `union bpf_attr` that a command reads, from the first on.
/// Fewer than the kernel knows are filled up with zeros.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

#[repr(C)]
struct ProgAttach {
    map: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Calls bpf(2).
///
/// # Safety
/// The attributes are those of the command, and what they point to is as the command wants it.
unsafe fn bpf<A>(command: u32, attributes: &A) -> io::Result<i32> {
    // SAFETY: the caller's promise; the size is that of the attributes.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<A>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as i32)
}

/// The same for commands that make something.
///
/// # Safety
/// As [`bpf`], and the command returns a new file.
unsafe fn bpf_file<A>(command: u32, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let file = unsafe { bpf(command, attributes) }?;
    // SAFETY: the caller's promise: it is new, so nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

fn create(
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let attributes = MapCreate {
        kind,
        key_bytes,
        value_bytes,
        entries,
        flags,
    };
    // SAFETY: it points to nothing, and makes a map.
    unsafe { bpf_file(MAP_CREATE, &attributes) }
}

fn number(file: &OwnedFd) -> u32 {
    file.as_raw_fd().cast_unsigned()
}

fn element<K, V>(map: &OwnedFd, key: &K, value: *const V) -> Element {
    Element {
        map: number(map),
        _padding: 0,
        key: std::ptr::from_ref(key) as u64,
        value: value as u64,
        flags: 0,
    }
}

/// Sockets by the cookie of another.
pub struct Sockets(pub OwnedFd);

impl Sockets {
    pub fn new(entries: u32) -> io::Result<Self> {
        create(MAP_TYPE_SOCKHASH, 8, 4, entries, 0).map(Self)
    }

    pub fn insert(&self, key: u64, socket: BorrowedFd<'_>) -> io::Result<()> {
        let file = socket.as_raw_fd();
        // SAFETY: a key of 8 bytes and a value of 4, as the map has them.
        unsafe { bpf(MAP_UPDATE_ELEM, &element(&self.0, &key, &file)) }.map(drop)
    }

    pub fn remove(&self, key: u64) -> io::Result<()> {
        // SAFETY: a key of 8 bytes, as the map has them.
        unsafe {
            bpf(
                MAP_DELETE_ELEM,
                &element::<_, ()>(&self.0, &key, null_mut()),
            )
        }
        .map(drop)
    }
}

/// What the program keeps of a source.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    /// Bytes it has redirected.
    pub bytes: u64,
    /// Whose they were; it hands this on as it is.
    pub token: u64,
    /// Not 0 once the limit was reached: nothing was redirected since, nor will be.
    pub passes: u64,
}

/// Something by the cookie of the source.
pub struct Table<V> {
    pub file: OwnedFd,
    value: PhantomData<V>,
}

impl<V: Copy + Default> Table<V> {
    pub fn new(entries: u32) -> io::Result<Self> {
        let value_bytes = size_of::<V>() as u32;
        Ok(Self {
            file: create(MAP_TYPE_HASH, 8, value_bytes, entries, NO_PREALLOC)?,
            value: PhantomData,
        })
    }

    pub fn insert(&self, key: u64, value: V) -> io::Result<()> {
        let element = element(&self.file, &key, &raw const value);
        // SAFETY: a key of 8 bytes and a value of the size that the map has.
        unsafe { bpf(MAP_UPDATE_ELEM, &element) }.map(drop)
    }

    pub fn get(&self, key: u64) -> io::Result<V> {
        let mut value = V::default();
        let element = element(&self.file, &key, &raw mut value);
        // SAFETY: a key of 8 bytes and room for a value of the size that the map has.
        unsafe { bpf(MAP_LOOKUP_ELEM, &element) }?;
        Ok(value)
    }

    pub fn remove(&self, key: u64) -> io::Result<()> {
        let element = element::<_, V>(&self.file, &key, null_mut());
        // SAFETY: a key of 8 bytes, as the map has them.
        unsafe { bpf(MAP_DELETE_ELEM, &element) }.map(drop)
    }
}

/// Loads a verdict on what sockets receive, for the sockets in a map.
pub fn attach_verdict(instructions: &[u64], sockets: &Sockets) -> io::Result<OwnedFd> {
    let attributes = ProgLoad {
        kind: PROG_TYPE_SK_SKB,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
    };
    // SAFETY: it points to as many instructions and to a string, and makes a program.
    let program = unsafe { bpf_file(PROG_LOAD, &attributes) }?;
    let attributes = ProgAttach {
        map: number(&sockets.0),
        program: number(&program),
        kind: SK_SKB_STREAM_VERDICT,
        flags: 0,
    };
    // SAFETY: it points to nothing.
    unsafe { bpf(PROG_ATTACH, &attributes) }?;
    Ok(program)
}

/// A ring that the program writes tokens into; readable while there are some.
pub struct Ring {
    pub file: OwnedFd,
    /// Where reading has come to. Of this page only the first word is used.
    consumed: &'static AtomicU64,
    /// Where writing has come to.
    produced: &'static AtomicU64,
    data: &'static [AtomicU64],
}

impl Ring {
    const BYTES: usize = 64 << 10;
    const PAGE: usize = 4096;
    /// A header of eight bytes, a number of bytes and a token.
    const RECORD: u64 = 24;
    /// In the header: still being written.
    const BUSY: u64 = 1 << 31;

    pub fn new() -> io::Result<Self> {
        let file = create(MAP_TYPE_RINGBUF, 0, 0, Self::BYTES as u32, 0)?;
        let (read, both) = (ProtFlags::READ, ProtFlags::READ | ProtFlags::WRITE);
        let map = |length, protection, offset| {
            // SAFETY: the kernel chooses a place where nothing else is; it is never unmapped.
            unsafe {
                mmap(
                    null_mut(),
                    length,
                    protection,
                    MapFlags::SHARED,
                    &file,
                    offset,
                )
            }
        };
        let consumer = map(Self::PAGE, both, 0)?;
        // The data are there twice in a row, so that no record is in two pieces.
        let producer = map(Self::PAGE + 2 * Self::BYTES, read, Self::PAGE as u64)?;
        // SAFETY: a page that stays mapped begins with this word.
        let consumed = unsafe { AtomicU64::from_ptr(consumer.cast()) };
        // SAFETY: a page that stays mapped begins with this word.
        let produced = unsafe { AtomicU64::from_ptr(producer.cast()) };
        let data = producer.wrapping_byte_add(Self::PAGE).cast();
        // SAFETY: so many words stay mapped there.
        let data = unsafe { std::slice::from_raw_parts(data, 2 * Self::BYTES / 8) };
        Ok(Self {
            file,
            consumed,
            produced,
            data,
        })
    }

    /// Takes the oldest record: its token.
    pub fn pop(&mut self) -> Option<u64> {
        let at = self.consumed.load(Ordering::Relaxed);
        if at == self.produced.load(Ordering::Acquire) {
            return None;
        }
        let record = &self.data[at as usize % Self::BYTES / 8..];
        if u64::from_le(record[0].load(Ordering::Acquire)) & Self::BUSY != 0 {
            return None;
        }
        let token = record[2].load(Ordering::Relaxed);
        self.consumed.store(at + Self::RECORD, Ordering::Release);
        Some(token)
    }
}
