//! `wsbench client-process`: the engine, driven by lines of JSON on standard
//! input and answering on standard output (see `wsbench_schema::wire`).

use crate::lines::{lines, shown};
use crate::progress::note;
use anyhow::{Context as _, bail};
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use wsbench_client::Engine;
use wsbench_schema::{ClientCommand, ClientEvent};

/// A client that is driven by lines on its standard input.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    // It is run through /proc/self/exe, which would be called `exe` in `ps` and `top`.
    rustix::thread::set_name(c"wsbench-client").context("cannot name this process")?;
    let stop = Arc::new(AtomicBool::new(false));
    let commands = read_commands(Arc::clone(&stop));
    match drive(&commands, &stop) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            let message = format!("{error:#}");
            // Without a driver to hear it, standard error is what is left.
            say(&ClientEvent::Failed {
                message: message.clone(),
            })
            .unwrap_or_else(|_| note(format_args!("{message}")));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reads on a thread of its own, so that `stop`, or the end of the driver, is
/// noticed in the middle of a phase.
fn read_commands(stop: Arc<AtomicBool>) -> Receiver<anyhow::Result<ClientCommand>> {
    let (send, commands) = channel();
    thread::spawn(move || {
        for line in lines(std::io::stdin().lock()) {
            let command = line.map_err(anyhow::Error::from).and_then(|line| {
                serde_json::from_str(&line)
                    .with_context(|| format!("not a command: {}", shown(&line)))
            });
            let over = matches!(command, Ok(ClientCommand::Stop) | Err(_));
            if over {
                stop.store(true, Ordering::Relaxed);
            }
            if send.send(command).is_err() || over {
                return;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    commands
}

fn drive(
    commands: &Receiver<anyhow::Result<ClientCommand>>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    // The end of input is a stop.
    let next = || commands.recv().unwrap_or(Ok(ClientCommand::Stop));
    let (load, target, seed, part, most) = match next()? {
        ClientCommand::Prepare {
            load,
            target,
            seed,
            part,
            most_connections,
        } => (*load, target, seed, part, most_connections),
        ClientCommand::Stop => return Ok(()),
        other => bail!("the first command is {other:?}; it must be `prepare`"),
    };
    let mut engine = Engine::prepare_part(load, most, &target, seed, part)?;
    say(&ClientEvent::Prepared {
        shards: engine.shards(),
    })?;
    loop {
        if phases(&mut engine, &next, stop)?.is_break() {
            return Ok(());
        }
        say(&ClientEvent::Finished)?;
        // The connections stay open until the driver has read its last edge.
        match next()? {
            ClientCommand::Stop => return Ok(()),
            ClientCommand::Extend { load } => engine.extend(*load)?,
            other => bail!("all phases are done, but the command is {other:?}"),
        }
    }
}

/// The phases of one load; breaks at a stop.
fn phases(
    engine: &mut Engine,
    next: &impl Fn() -> anyhow::Result<ClientCommand>,
    stop: &AtomicBool,
) -> anyhow::Result<ControlFlow<()>> {
    for phase in engine.phases() {
        say(&ClientEvent::Ready { phase })?;
        let at_ns = match next()? {
            ClientCommand::Go {
                phase: asked,
                at_ns,
            } if asked == phase => at_ns,
            ClientCommand::Stop => return Ok(ControlFlow::Break(())),
            other => bail!("ready for {phase}, but the command is {other:?}"),
        };
        let mut lost = None;
        let mut tell =
            |progress| lost = say(&ClientEvent::Progress(progress)).err().or(lost.take());
        let report = engine.run(phase, at_ns, stop, &mut tell)?;
        if let Some(error) = lost {
            return Err(error);
        }
        say(&ClientEvent::Done {
            phase,
            report: Box::new(report),
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn say(event: &ClientEvent) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .context("the driver has gone")
}
