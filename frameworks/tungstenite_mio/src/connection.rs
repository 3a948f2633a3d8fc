//! One connection: its handshake, then its echoes, as far as it goes without blocking.

use std::io;
use std::mem;

use mio::event::Event;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::{ErrorResponse, Request, Response, ServerHandshake};
use tungstenite::http::StatusCode;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, HandshakeError, Message, WebSocket, accept_hdr_with_config};

use crate::socket::Socket;

/// After so many the others have their turn, however fast this peer sends.
const MESSAGES_A_TURN: usize = 256;

type OnlyWs = fn(&Request, Response) -> Result<Response, ErrorResponse>;
type Handshake = ServerHandshake<Socket, OnlyWs>;

pub struct Connection {
    stage: Stage,
    /// Answers are not sent yet. While the peer does not take them nothing more is read.
    unsent: bool,
    /// On the loop's list of connections to serve.
    pub listed: bool,
}

enum Stage {
    Handshake(MidHandshake<Handshake>),
    Open(WebSocket<Socket>),
    Closed,
}

/// What a turn has left of a connection.
pub enum Turn {
    /// Nothing to do until its next event.
    Wait,
    /// More to read at once.
    More,
    Closed,
}

impl Connection {
    /// Begins the handshake, which goes on with the first event.
    pub fn new(socket: Socket, config: WebSocketConfig) -> Self {
        let only_ws: OnlyWs = only_ws;
        Self {
            stage: stage(accept_hdr_with_config(socket, only_ws, Some(config))),
            unsent: false,
            listed: false,
        }
    }

    /// Takes in what poll said of it.
    pub fn note(&mut self, event: &Event) {
        match &mut self.stage {
            Stage::Handshake(handshake) => handshake.get_mut().get_mut().note(event),
            Stage::Open(socket) => socket.get_mut().note(event),
            Stage::Closed => {}
        }
    }

    /// Does what there is to do.
    pub fn turn(&mut self) -> Turn {
        if matches!(self.stage, Stage::Handshake(_))
            && let Stage::Handshake(handshake) = mem::replace(&mut self.stage, Stage::Closed)
        {
            self.stage = stage(handshake.handshake());
        }
        let socket = match &mut self.stage {
            Stage::Handshake(_) => return Turn::Wait,
            Stage::Open(socket) => socket,
            Stage::Closed => return Turn::Closed,
        };
        match echo(socket, &mut self.unsent) {
            Ok(()) => Turn::More,
            Err(error) if would_block(&error) => Turn::Wait,
            Err(_) => Turn::Closed,
        }
    }
}

/// Reads what has arrived and answers it with one write. The usual error is "would block".
fn echo(socket: &mut WebSocket<Socket>, unsent: &mut bool) -> Result<(), Error> {
    let flush = |socket: &mut WebSocket<Socket>, unsent: &mut bool| {
        if *unsent {
            socket.flush()?;
            *unsent = false;
        }
        Ok(())
    };
    flush(socket, unsent)?;
    for _ in 0..MESSAGES_A_TURN {
        match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                *unsent = true;
                socket.write(message)?;
            }
            // Pings and the close handshake are answered by tungstenite while it reads.
            Ok(_) => {}
            Err(error) => {
                flush(socket, unsent)?;
                return Err(error);
            }
        }
    }
    flush(socket, unsent)
}

fn would_block(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn stage(handshake: Result<WebSocket<Socket>, HandshakeError<Handshake>>) -> Stage {
    match handshake {
        Ok(socket) => Stage::Open(socket),
        Err(HandshakeError::Interrupted(handshake)) => Stage::Handshake(handshake),
        Err(HandshakeError::Failure(_)) => Stage::Closed,
    }
}

// The callback's type is tungstenite's, and it has its error by value.
#[allow(clippy::result_large_err)]
fn only_ws(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == "/ws" {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}
