//! How far a phase has come: a bar on a terminal, a line a second elsewhere (of
//! transfers one in two), nothing for what lasts less than a second. Goes to standard error, so that
//! standard output holds results alone. That nobody reads either stops nothing.

use crate::run::id::Utc;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use wsbench_schema::{Phase, Progress};

/// What ends sooner is not shown.
const QUIET: Duration = Duration::from_millis(900);

/// A result, to standard output.
pub fn say(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// What the user should know meanwhile, to standard error.
pub fn note(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// From one line about a transfer to the next, ...
const TRANSFER_LINES: Duration = Duration::from_secs(2);
/// ... which a report of the client may be early by.
const LINE_TOLERANCE: Duration = Duration::from_millis(100);

const TEMPLATE: &str = "{prefix} [{bar:30}] {msg}";

/// Shows one phase. Dropping it takes the bar away.
pub struct Meter {
    began: Instant,
    title: String,
    terminal: bool,
    /// How often each byte of a transfer crosses.
    crossings: u64,
    /// Of a transfer, when the next line is due.
    next_line: Duration,
    bar: Option<ProgressBar>,
    last: Option<Progress>,
}

impl Meter {
    /// Of one phase; `title` stands in front of the bar. Each byte of a transfer crosses
    /// so many times.
    pub fn new(title: String, crossings: u64) -> Self {
        Self {
            began: Instant::now(),
            title,
            terminal: stderr().is_terminal(),
            crossings,
            next_line: TRANSFER_LINES,
            bar: None,
            last: None,
        }
    }

    /// Takes a report of the client.
    pub fn update(&mut self, progress: Progress) {
        // At a phase's begin not every thread has said yet how much it is to do.
        let is_unknown = progress.total == 0 && progress.phase != Phase::Connect;
        if self.began.elapsed() < QUIET || is_unknown {
            return;
        }
        self.last = Some(progress);
        if self.terminal {
            let text = match progress.phase {
                Phase::Bulk => self.transferred(progress, self.began.elapsed()),
                _ => message(progress, self.began.elapsed()),
            };
            let bar = self.bar.get_or_insert_with(|| bar(&self.title));
            bar.update(|state| {
                state.set_len(progress.total);
                state.set_pos(progress.done);
            });
            bar.set_message(text);
        } else if progress.phase == Phase::Bulk {
            let elapsed = self.began.elapsed();
            if elapsed + LINE_TOLERANCE >= self.next_line {
                self.next_line += TRANSFER_LINES;
                let seconds = elapsed.as_secs_f64();
                note(format_args!(
                    "[{seconds:.1}s] {}",
                    self.transferred(progress, elapsed)
                ));
            }
        } else {
            note(format_args!("{} {}", Utc::now(), line(progress)));
        }
    }

    /// `140.9 MB transferred, 70.4 MB/s`: there and back, over all the time until now.
    fn transferred(&self, progress: Progress, elapsed: Duration) -> String {
        let megabytes = (progress.done * self.crossings) as f64 / 1e6;
        let speed = megabytes / elapsed.as_secs_f64();
        format!("{megabytes:.1} MB transferred, {speed:.1} MB/s")
    }

    /// The phase is over. Elsewhere than on a terminal, what was shown on its
    /// way ends with how it ended.
    pub fn finish(mut self, done: Option<u64>, failed: u64) {
        // How a transfer ended is told in bytes, by whoever tells its result.
        let last = self.last.take().filter(|last| last.phase != Phase::Bulk);
        if let (false, Some(last), Some(done)) = (self.terminal, last, done) {
            let end = Progress {
                done,
                failed,
                ..last
            };
            if end != last {
                note(format_args!("{} {}", Utc::now(), line(end)));
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// For work of unknown length: a spinner on a terminal, which dropping it takes
/// away. Elsewhere a line when it begins, one a second where there is news, and
/// one that says how long it took.
pub struct Spinner {
    text: String,
    shown: Instant,
    bar: Option<ProgressBar>,
    /// Ends when dropped.
    _lines: Option<Lines>,
}

/// Tells on the way that something lasts, whether or not it has news.
struct Lines {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// `tell` gets the first line after `quiet`.
    fn new(text: String, quiet: Duration, tell: impl Fn(String) + Send + 'static) -> Self {
        let (done, is_done) = channel();
        let began = Instant::now();
        let thread = thread::spawn(move || {
            if is_done.recv_timeout(quiet) == Err(RecvTimeoutError::Timeout) {
                tell(format!("{text} ..."));
                // Nothing is sent: the other end goes away.
                let _ = is_done.recv();
                tell(format!(
                    "{text} took {:.1} s",
                    began.elapsed().as_secs_f64()
                ));
            }
        });
        Self {
            done: Some(done),
            thread: Some(thread),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.done.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Spinner {
    /// `text` says what is being done.
    pub fn new(text: String) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_message(text.clone());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let lines = bar.is_none().then(|| {
            Lines::new(text.clone(), QUIET, |line| {
                note(format_args!("{} {line}", Utc::now()));
            })
        });
        Self {
            text,
            shown: Instant::now(),
            bar,
            _lines: lines,
        }
    }

    /// How far it has come.
    pub fn update(&mut self, detail: &str) {
        let text = format!("{}: {detail}", self.text);
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        } else if self.shown.elapsed() >= QUIET {
            self.shown = Instant::now();
            note(format_args!("{} {text}", Utc::now()));
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(title: &str) -> ProgressBar {
    // Drawn only when the client reports: no thread wakes up during a measurement.
    let style = ProgressStyle::with_template(TEMPLATE)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_style(style)
        .with_prefix(title.to_owned())
}

fn unit(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "clients connected",
        Phase::Warmup => "warm-up echoes",
        Phase::Echo => "echoes",
        Phase::Rate => "messages",
        Phase::Bulk => "bytes",
        Phase::Release => "connections closed",
    }
}

/// `120000 of 500000 echoes, 30000/s`: what was reached, not what is hoped for,
/// because a phase may end by its time as well as by its count.
fn message(progress: Progress, elapsed: Duration) -> String {
    let speed = progress.done as f64 / elapsed.as_secs_f64();
    format!("{}, {speed:.0}/s", line(progress))
}

/// `25890 clients connected`, `120000 of 500000 echoes, 3 failed`.
fn line(progress: Progress) -> String {
    let (done, total, unit) = (progress.done, progress.total, unit(progress.phase));
    let failed = match progress.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    match progress.phase {
        Phase::Connect => format!("{done} {unit}{failed}"),
        _ => format!("{done} of {total} {unit}{failed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(phase: Phase, done: u64, failed: u64) -> Progress {
        Progress {
            phase,
            done,
            failed,
            total: 500_000,
        }
    }

    #[test]
    fn lines_read_like_the_originals() {
        let connect = progress(Phase::Connect, 25_890, 0);
        assert_eq!(line(connect), "25890 clients connected");
        let echo = progress(Phase::Echo, 120_000, 3);
        assert_eq!(line(echo), "120000 of 500000 echoes, 3 failed");
        let warmup = progress(Phase::Warmup, 1, 0);
        assert_eq!(line(warmup), "1 of 500000 warm-up echoes");
        assert_eq!(
            message(echo, Duration::from_secs(4)),
            "120000 of 500000 echoes, 3 failed, 30000/s"
        );
    }

    #[test]
    fn a_transfer_is_told_in_bytes_that_crossed_and_a_line_is_due_every_two_seconds() {
        let mut meter = Meter::new("a".into(), 2);
        meter.terminal = false;
        let bulk = progress(Phase::Bulk, 70_430_000, 0);
        let text = meter.transferred(bulk, Duration::from_secs(2));
        assert_eq!(text, "140.9 MB transferred, 70.4 MB/s");
        let seconds = |seconds| Instant::now() - Duration::from_secs(seconds);
        for (at, next) in [(1, 2), (2, 4), (3, 4), (4, 6)] {
            meter.began = seconds(at);
            meter.update(bulk);
            assert_eq!(meter.next_line, Duration::from_secs(next), "at {at} s");
        }
    }

    #[test]
    fn what_lasts_less_than_a_second_is_not_shown() {
        let mut meter = Meter::new("a".into(), 1);
        meter.update(progress(Phase::Echo, 1, 0));
        assert!(meter.last.is_none());
        meter.began = Instant::now() - QUIET;
        meter.update(progress(Phase::Echo, 2, 0));
        assert!(meter.last.is_some());
    }

    #[test]
    fn nothing_is_shown_before_the_total_is_known() {
        let mut meter = Meter::new("a".into(), 1);
        meter.began = Instant::now() - QUIET;
        let unknown = Progress {
            total: 0,
            ..progress(Phase::Echo, 0, 0)
        };
        meter.update(unknown);
        assert!(meter.last.is_none());
        meter.update(progress(Phase::Echo, 0, 0));
        assert!(meter.last.is_some());
    }

    #[test]
    fn what_lasts_is_told_when_it_begins_and_when_it_ends_without_any_news() {
        let (tell, told) = channel();
        let tell = move |line| tell.send(line).unwrap();
        let lines = Lines::new("building axum".into(), Duration::ZERO, tell.clone());
        assert_eq!(told.recv().unwrap(), "building axum ...");
        assert!(told.try_recv().is_err(), "it is not over");
        drop(lines);
        let end = told.try_recv().unwrap();
        assert!(end.starts_with("building axum took 0."), "{end}");
        // What is over soon is not worth a line.
        drop(Lines::new(
            "building axum".into(),
            Duration::from_secs(600),
            tell,
        ));
        assert!(told.recv().is_err());
    }

    #[test]
    fn the_template_of_the_bar_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
