//! A process that does what a test tells it, line by line: the test program
//! itself, started again with an environment variable.

#![allow(
    dead_code,
    reason = "each test file is a program of its own and uses a part of this"
)]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, thread};
use wsbench_sampler::own_cpu_ns;

const ROLE: &str = "WSBENCH_SAMPLER_TEST_SUBJECT";
const ANSWER: &str = "subject answers ";

/// A process under the control of a test. Its children are subjects too. One test has
/// them at a time: the tests of a program measure, and must not disturb each other.
pub struct Subject {
    _alone: Option<MutexGuard<'static, ()>>,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Subject {
    /// The test program must have a test named `subject` that calls [`obey`].
    pub fn start() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::spawn(Some(alone))
    }

    /// Another one in the same test.
    pub fn start_beside(&self) -> Self {
        Self::spawn(None)
    }

    fn spawn(alone: Option<MutexGuard<'static, ()>>) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "subject", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut subject = Self {
            _alone: alone,
            child,
            orders,
            answers,
        };
        subject.wait();
        subject
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order without waiting for the answer.
    pub fn begin(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    /// The answer to an order: a number.
    pub fn wait(&mut self) -> u64 {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.answers.read_line(&mut line).unwrap(),
                0,
                "the subject ended"
            );
            if let Some((_, answer)) = line.split_once(ANSWER) {
                return answer.trim().parse().unwrap();
            }
        }
    }

    pub fn ask(&mut self, order: &str) -> u64 {
        self.begin(order);
        self.wait()
    }

    /// Lets it end and waits for it.
    pub fn end(mut self) {
        self.reap();
    }

    /// Ends the process but leaves a zombie.
    pub fn end_without_waiting(&mut self) {
        self.orders = None;
        let mut rest = String::new();
        while self.answers.read_line(&mut rest).unwrap() > 0 {}
    }

    fn reap(&mut self) {
        self.orders = None;
        self.child.wait().unwrap();
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.reap();
    }
}

/// What the process of a [`Subject`] does: nothing in a usual test run.
pub fn obey() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let answer = |number: u64| {
        let mut out = std::io::stdout();
        writeln!(out, "{ANSWER}{number}").unwrap();
        out.flush().unwrap();
    };
    answer(0);
    let mut held = Vec::new();
    let mut child: Option<Subject> = None;
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let (verb, rest) = order.split_once(' ').unwrap_or((&order, ""));
        answer(match verb {
            "burn" => burn(rest.parse().unwrap()),
            "hold" => {
                held.resize(rest.parse().unwrap(), 7_u8);
                black_box(&held);
                0
            }
            "free" => {
                held = Vec::new();
                0
            }
            "threads" => {
                for _ in 0..rest.parse().unwrap() {
                    thread::Builder::new()
                        .stack_size(16 << 10)
                        .spawn(|| thread::sleep(Duration::from_secs(60)))
                        .unwrap();
                }
                0
            }
            "stacks" => {
                let (count, bytes) = rest.split_once(' ').unwrap();
                let bytes: usize = bytes.parse().unwrap();
                let count: usize = count.parse().unwrap();
                let (ready, told) = std::sync::mpsc::channel();
                for _ in 0..count {
                    let ready = ready.clone();
                    thread::Builder::new()
                        .stack_size(1 << 20)
                        .spawn(move || descend(bytes, &|| ready.send(()).unwrap()))
                        .unwrap();
                }
                (0..count).for_each(|_| told.recv().unwrap());
                0
            }
            "spawn" => u64::from(child.insert(Subject::start()).pid()),
            "tell" => child.as_mut().unwrap().ask(rest),
            "reap" => {
                child.take().unwrap().end();
                0
            }
            _ => panic!("unknown order {order}"),
        });
    }
    // Threads that sleep must not keep the process.
    std::process::exit(0);
}

/// Uses at least so much stack, tells, and sleeps with it.
fn descend(bytes: usize, told: &dyn Fn()) {
    let frame = black_box([1_u8; 4096]);
    match bytes.checked_sub(frame.len()) {
        Some(rest) => descend(rest, told),
        None => {
            told();
            thread::sleep(Duration::from_secs(60));
        }
    }
    black_box(&frame);
}

/// Uses that much CPU time on one thread, and tells how much it was.
fn burn(nanoseconds: u64) -> u64 {
    let start = own_cpu_ns();
    loop {
        let used = own_cpu_ns() - start;
        if used >= nanoseconds {
            return used;
        }
    }
}
