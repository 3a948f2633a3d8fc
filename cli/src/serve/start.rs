//! Starts the servers of a plan, and what answers for them.

use super::Options;
use super::prepare::{Plan, Seat};
use crate::control::{self, Served, Status};
use crate::observe::LocalObserver;
use crate::process::Identity;
use crate::progress::note;
use crate::root::Root;
use crate::run::interrupt::Interrupt;
use crate::runfile::RunFile;
use crate::server::{Server, ServerSpec};
use crate::{cpus, machine, ports};
use anyhow::Context as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use wsbench_schema::{Machine, SCHEMA_VERSION};

/// A server that runs and is answered for.
#[derive(Debug)]
pub struct Running {
    pub file: RunFile,
    pub server: Server,
    pub served: Arc<Served>,
}

/// Where the servers run.
struct Place {
    machine: Machine,
    harness: String,
}

/// Starts them one after the other. If one fails, those that run are stopped,
/// unless the plan is lenient. Ends early if the user interrupts.
pub fn all(
    root: &Root,
    options: &Options,
    plan: &Plan,
    stop: &Sender<String>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Running>> {
    // Before this thread is pinned: the description counts its CPUs.
    let place = Place {
        machine: machine::describe(),
        harness: machine::harness_revision(root),
    };
    // The sampler and the control API as well: they are threads of this one.
    cpus::pin_self(&plan.own_cpus)?;
    let mut running: Vec<Running> = Vec::new();
    let mut listeners: Vec<(TcpListener, Arc<Served>)> = Vec::new();
    for seat in &plan.seats {
        if interrupt.pressed() {
            break;
        }
        match one(root, options, plan, seat, &place, stop) {
            Ok((started, listener)) => {
                listeners.push((listener, Arc::clone(&started.served)));
                running.push(started);
            }
            Err(error) if plan.lenient => {
                note(format_args!("{}: left out: {error:#}", seat.subject.name));
            }
            Err(error) => {
                for started in running {
                    started.file.remove(root)?;
                }
                return Err(error);
            }
        }
    }
    control::answer(listeners)?;
    Ok(running)
}

fn one(
    root: &Root,
    options: &Options,
    plan: &Plan,
    seat: &Seat,
    place: &Place,
    stop: &Sender<String>,
) -> anyhow::Result<(Running, TcpListener)> {
    let subject = &seat.subject;
    let host = plan.address.to_string();
    let ports = match seat.ports {
        Some(ports) => ports,
        None => ports::free_ports(ports::DEFAULT_PORTS, &host)?,
    };
    let server = Server::start(ServerSpec {
        name: subject.name.clone(),
        argv: subject.command(root)?,
        folder: subject.folder.clone(),
        host: host.clone(),
        ports,
        cpus: plan.server_cpus.clone(),
        nodelay: options.nodelay,
        max_message: options.max_message,
        extra_args: Vec::new(),
        counters: None,
        log: root.output("log").join(format!("{}.log", subject.name)),
        start_timeout: options.start_timeout,
        connections: 0,
    })?;
    let pid = server.pid();
    let observer = LocalObserver::new(vec![pid], plan.server_cpus.clone(), options.interval)?;
    let status = Status {
        name: subject.name.clone(),
        variant: subject.variant.clone(),
        version: subject.program_version(root),
        language: subject.language.clone(),
        pid,
        ports,
        cpus: plan.server_cpus.clone(),
        nodelay: options.nodelay,
        machine: place.machine.clone(),
        harness: place.harness.clone(),
    };
    let listener = seat
        .control
        .try_clone()
        .context("cannot copy a file descriptor")?;
    let file = RunFile {
        schema: SCHEMA_VERSION,
        name: subject.name.clone(),
        server: Identity::of(pid).with_context(|| format!("{} is gone already", subject.name))?,
        supervisor: Identity::of(std::process::id()).context("this process is not in /proc")?,
        host,
        ports,
        control: listener
            .local_addr()
            .context("cannot read the control address")?,
        token_file: None,
    };
    let file = file.write(root, plan.token.as_deref())?;
    let served = Served::new(status, observer, plan.token.clone(), stop.clone());
    let running = Running {
        file,
        server,
        served: Arc::new(served),
    };
    Ok((running, listener))
}
