//! Preloaded into a program, it makes the wall clock jump by hours ten times a
//! second, forwards and backwards, and never lets it be right. All other clocks are
//! what they are.

use libc::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, SYS_clock_gettime, c_int, c_long,
    clockid_t, syscall, time_t, timespec, timeval,
};
use std::ptr;

const FORWARDS_S: i64 = 5 * 3600;
const BACKWARDS_S: i64 = -7 * 3600;

/// By the kernel: what this file defines is not in its way.
fn read(clock: clockid_t, time: &mut timespec) -> c_int {
    // SAFETY: the kernel writes one timespec, to which the reference points.
    let status = unsafe { syscall(SYS_clock_gettime, c_long::from(clock), ptr::from_mut(time)) };
    c_int::try_from(status).unwrap_or(-1)
}

fn off_by_s() -> i64 {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    read(CLOCK_MONOTONIC, &mut now);
    match now.tv_nsec / 100_000_000 % 2 {
        0 => FORWARDS_S,
        _ => BACKWARDS_S,
    }
}

/// In the place of the C library's.
///
/// # Safety
/// As of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller gives room for a timespec, or nothing.
    let Some(time) = (unsafe { time.as_mut() }) else {
        return -1;
    };
    let status = read(clock, time);
    if status == 0 && [CLOCK_REALTIME, CLOCK_REALTIME_COARSE].contains(&clock) {
        time.tv_sec += off_by_s();
    }
    status
}

/// In the place of the C library's.
///
/// # Safety
/// As of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut libc::c_void) -> c_int {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let status = read(CLOCK_REALTIME, &mut now);
    // SAFETY: the caller gives room for a timeval, or nothing.
    if let Some(time) = unsafe { time.as_mut() } {
        time.tv_sec = now.tv_sec + off_by_s();
        time.tv_usec = now.tv_nsec / 1000;
    }
    status
}

/// In the place of the C library's.
///
/// # Safety
/// As of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(seconds: *mut time_t) -> time_t {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    read(CLOCK_REALTIME, &mut now);
    let off = now.tv_sec + off_by_s();
    // SAFETY: the caller gives room for it, or nothing.
    if let Some(seconds) = unsafe { seconds.as_mut() } {
        *seconds = off;
    }
    off
}
