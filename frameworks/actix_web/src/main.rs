//! Echo server on actix-web and actix-ws: a single-threaded worker a CPU, a task a connection.

use std::process::ExitCode;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, rt, web};
use actix_ws::{AggregatedMessage, AggregatedMessageStream, Session};
use wsbench_server_kit::{Options, Result, run, subject};

fn main() -> ExitCode {
    run(subject!("actix-web"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let max_message = options.max_message;
    let upgrade = move |request: HttpRequest, body: web::Payload| async move {
        upgrade(&request, body, max_message)
    };
    let mut server = HttpServer::new(move || App::new().route("/ws", web::get().to(upgrade)))
        .workers(options.threads)
        .tcp_nodelay(options.nodelay)
        // The default stops accepting at 25,600 connections a worker.
        .max_connections(usize::MAX)
        // SIGTERM ends the process at once, and not after the last connection.
        .disable_signals();
    for listener in options.listen()? {
        server = server.listen(listener)?;
    }
    rt::System::new().block_on(server.run())?;
    Ok(())
}

fn upgrade(
    request: &HttpRequest,
    body: web::Payload,
    max_message: usize,
) -> actix_web::Result<HttpResponse> {
    let (response, session, stream) = actix_ws::handle(request, body)?;
    let stream = stream
        .max_frame_size(max_message)
        .aggregate_continuations()
        .max_continuation_size(max_message);
    rt::spawn(echo(session, stream));
    Ok(response)
}

/// Echoes until the peer has closed. Answers are queued, and actix-web writes
/// what has queued up with one write.
async fn echo(mut session: Session, mut stream: AggregatedMessageStream) {
    while let Some(Ok(message)) = stream.recv().await {
        let sent = match message {
            AggregatedMessage::Text(text) => session.text(text).await,
            AggregatedMessage::Binary(bytes) => session.binary(bytes).await,
            AggregatedMessage::Ping(bytes) => session.pong(&bytes).await,
            AggregatedMessage::Pong(_) => Ok(()),
            AggregatedMessage::Close(reason) => {
                // It fails when the peer has not waited for the answer.
                let _ = session.close(reason).await;
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}
