//! One connection: the upgrade, then echoes until either side ends it.

use crate::faults::{Answer, Faults};
use crate::frame::{self, Frame};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

/// RFC 6455, section 1.3.
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MAX_HEAD_BYTES: u64 = 16 << 10;

pub fn serve(stream: &TcpStream, faults: &Faults) -> io::Result<()> {
    stream.set_nodelay(faults.switches.nodelay)?;
    let mut input = BufReader::with_capacity(64 << 10, stream);
    let mut output = stream;
    if !upgrade(&mut input, &mut output, faults)? {
        return Ok(());
    }
    let mut message = Vec::new();
    let mut message_opcode = None;
    let max = faults.switches.max_message;
    loop {
        let frame = match frame::read(&mut input, max - message.len()) {
            Ok(frame) => frame,
            Err(error) if error.kind() == ErrorKind::InvalidData => return close(stream, 1002),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => return close(stream, 1009),
            Err(error) => return Err(error),
        };
        let Frame {
            last,
            opcode,
            payload,
        } = frame;
        match opcode {
            frame::PING => output.write_all(&frame::build(frame::PONG, &payload))?,
            frame::PONG => {}
            frame::CLOSE => return output.write_all(&frame::build(frame::CLOSE, &payload)),
            frame::TEXT | frame::BINARY if message_opcode.is_none() => {
                message_opcode = Some(opcode);
                message = payload;
            }
            frame::CONTINUATION if message_opcode.is_some() => message.extend(payload),
            _ => return close(stream, 1002),
        }
        let is_data = opcode <= frame::BINARY;
        if is_data
            && last
            && let Some(opcode) = message_opcode.take()
        {
            let read_at = Instant::now();
            let message = std::mem::take(&mut message);
            if !faults.concern(&message) {
                output.write_all(&frame::build(opcode, &message))?;
                continue;
            }
            let number = faults.number();
            match faults.answer(number, opcode, message) {
                Answer::Nothing => {}
                Answer::Close => return close(stream, 1001),
                Answer::Frame(answer) => {
                    faults.waited(read_at.elapsed());
                    output.write_all(&answer)?;
                    faults.served(number);
                    if faults.switches.leak {
                        // There may be no more to get.
                        let _ = stream.try_clone().map(std::mem::forget);
                    }
                }
            }
        }
    }
}

/// Says why, then waits until the peer has closed, so that no reset overtakes it.
fn close(mut stream: &TcpStream, code: u16) -> io::Result<()> {
    stream.write_all(&frame::build(frame::CLOSE, &code.to_be_bytes()))?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// True if the connection is a WebSocket now.
fn upgrade(
    input: &mut BufReader<&TcpStream>,
    output: &mut &TcpStream,
    faults: &Faults,
) -> io::Result<bool> {
    let mut request = None;
    let mut key = None;
    let mut head = input.by_ref().take(MAX_HEAD_BYTES);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() && request.is_some() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("sec-websocket-key")
        {
            key = Some(value.trim().to_owned());
        }
        request.get_or_insert_with(|| line.to_owned());
    }
    let right_path = request.is_some_and(|line| line.starts_with("GET /ws "));
    let status = match (faults.switches.status, right_path, &key) {
        (Some(told), ..) => told,
        (None, false, _) => 404,
        (None, true, None) => 400,
        (None, true, Some(_)) => 101,
    };
    let mut key = key.unwrap_or_default();
    if faults.switches.bad_accept {
        key.push('x');
    }
    let answer = if status == 101 {
        let accept = STANDARD.encode(Sha1::digest(key + ACCEPT_SUFFIX));
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        )
    } else {
        format!("HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    };
    output.write_all(answer.as_bytes())?;
    Ok(status == 101)
}
