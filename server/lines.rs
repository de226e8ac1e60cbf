//! NDJSON: lines in, lines out, block by block, in bounded memory however long the body is.

use std::{future::Future, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt;
use serde::Serialize;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, sleep, timeout_at},
};
use utoipa::ToSchema;

use crate::{
    app::{App, Permit, ending},
    body::broken,
    error::Problem,
    json::milliseconds,
    room::{Room, room_of},
};

/// The most lines, and about the most bytes, of a block.
const BLOCK_LINES: usize = 1000;
const BLOCK_BYTES: usize = 4 << 20;
/// Answers that may wait for a caller, in largest bodies.
const WAITING_BODIES: usize = 4;
/// Answers are handed over in parts of at most so many bytes.
const PART: usize = 1 << 20;
/// Lines that have come are answered when no more come for so long.
const PAUSE: Duration = Duration::from_millis(2);

/// A line of a body, and its number, from 1.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) json: Bytes,
}

/// A line that could not be answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BadLine<'a> {
    /// Which; if it is not said, the rest of the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    line: Option<u64>,
    error: &'a Problem,
}

/// What a line is answered by.
#[derive(ToSchema)]
#[allow(dead_code, reason = "says in the OpenAPI document what lines there are")]
#[serde(untagged)]
pub(crate) enum AnswerLine<'a, T> {
    Good(T),
    Bad(BadLine<'a>),
}

/// Adds an answer as a line.
fn push_line(lines: &mut Vec<u8>, answer: &impl Serialize) {
    // Plain data becomes JSON, and a vector takes it.
    let _ = serde_json::to_writer(&mut *lines, answer);
    lines.push(b'\n');
}

/// What became of each line, by its number.
pub(crate) type Lined<T> = Vec<(u64, Result<T, Problem>)>;

/// Takes the good ones out, to be worked on together; the others keep their places.
pub(crate) fn take_good<T>(lined: Lined<T>) -> (Vec<T>, Lined<()>) {
    let mut good = Vec::with_capacity(lined.len());
    let keep = |(line, one): (u64, Result<T, Problem>)| (line, one.map(|one| good.push(one)));
    let places = lined.into_iter().map(keep).collect();
    (good, places)
}

/// Puts what became of the good ones where those were.
pub(crate) fn put_back<T>(
    places: Lined<()>,
    answers: impl IntoIterator<Item = Result<T, Problem>>,
) -> Lined<T> {
    let mut answers = answers.into_iter();
    let put = |(line, place): (u64, Result<(), Problem>)| match place {
        Ok(()) => answers.next().map(|answer| (line, answer)),
        Err(problem) => Some((line, Err(problem))),
    };
    places.into_iter().filter_map(put).collect()
}

/// A line for each, in their order.
pub(crate) fn lines_of(lined: &Lined<impl Serialize>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (line, one) in lined {
        match one {
            Ok(answer) => push_line(&mut lines, answer),
            Err(error) => push_line(&mut lines, &BadLine { line: Some(*line), error }),
        }
    }
    lines
}

/// Answers a body of lines; `answer` gives the lines that answer those of a block, of at most so many together.
pub(crate) fn answer_lines<F>(
    app: Arc<App>,
    permit: Permit,
    body: Body,
    together: usize,
    answer: impl Fn(Arc<App>, Permit, Vec<Line>) -> F + Send + Sync + 'static,
) -> Response
where
    F: Future<Output = Result<Vec<u8>, Problem>> + Send,
{
    // A caller that does not read yet is waited for only when so many bytes wait for it.
    let room = room_of(WAITING_BODIES, &app.limits);
    let (sender, receiver) = mpsc::unbounded_channel();
    let to = Outgoing { sender, room: room.clone(), app: app.clone() };
    tokio::spawn(async move {
        let started = Instant::now();
        let mut lines = Lines::new(body, app.clone(), together);
        let done = async {
            while let Some(block) = lines.next_block().await? {
                let answers = answer(app.clone(), permit.clone(), block).await?;
                to.send(answers).await?;
            }
            Ok::<(), Problem>(())
        };
        let done = done.await;
        let ms = milliseconds(started.into_std());
        tracing::debug!(lines = lines.number, ms, "the lines of a body are answered");
        if let Err(error) = done {
            let detail = &error.detail;
            tracing::warn!(lines = lines.number, ms, detail, "the rest of a body was not answered");
            let mut last = Vec::new();
            push_line(&mut last, &BadLine { line: None, error: &error });
            let _ = to.send(last).await;
        }
    });
    let answers = stream::unfold(receiver, move |mut receiver| {
        let room = room.clone();
        async move {
            let (answers, shared): (Bytes, Room) = receiver.recv().await?;
            room.add_permits(answers.len());
            drop(shared);
            Some((Ok::<_, std::convert::Infallible>(answers), receiver))
        }
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response()
}

/// Answers on their way to the caller.
struct Outgoing {
    sender: mpsc::UnboundedSender<(Bytes, Room)>,
    /// What may wait for this caller.
    room: Arc<Semaphore>,
    app: Arc<App>,
}

impl Outgoing {
    /// Sends when there is room; a problem if the caller has gone or does not read.
    async fn send(&self, answers: Vec<u8>) -> Result<(), Problem> {
        let gone = || Problem::not_json("the caller has gone");
        let mut answers = Bytes::from(answers);
        while !answers.is_empty() {
            let part = answers.split_to(answers.len().min(PART).min(self.app.limits.body_bytes));
            let room = timeout_at(
                Instant::now() + self.app.limits.time,
                self.room.acquire_many(part.len() as u32),
            );
            tokio::select! {
                room = room => match room {
                    Ok(room) => room.map_err(|_| gone())?.forget(),
                    Err(_) => return Err(Problem::too_slow("the answers are not read: read while you write")),
                },
                () = self.sender.closed() => return Err(gone()),
            }
            let mut shared = self.app.room();
            shared.take(part.len())?;
            self.sender.send((part, shared)).map_err(|_| gone())?;
        }
        Ok(())
    }
}

/// The lines of a body, as they come.
struct Lines {
    body: Body,
    app: Arc<App>,
    /// The most lines of a block.
    together: usize,
    /// What has come and is not yet a whole line.
    rest: BytesMut,
    room: Room,
    /// Where in it the end of the line is looked for.
    searched: usize,
    number: u64,
    ended: bool,
    /// What went wrong behind the lines that were given.
    failed: Option<Problem>,
}

impl Lines {
    fn new(body: Body, app: Arc<App>, together: usize) -> Self {
        Lines {
            body,
            room: app.room(),
            app,
            together: together.clamp(1, BLOCK_LINES),
            rest: BytesMut::new(),
            searched: 0,
            number: 0,
            ended: false,
            failed: None,
        }
    }

    /// The next lines: as many as have come, up to a block. None at the end.
    async fn next_block(&mut self) -> Result<Option<Vec<Line>>, Problem> {
        if let Some(problem) = self.failed.take() {
            return Err(problem);
        }
        let mut block = Vec::new();
        if let Err(problem) = self.fill(&mut block).await {
            if block.is_empty() {
                return Err(problem);
            }
            self.failed = Some(problem);
        }
        Ok((!block.is_empty()).then_some(block))
    }

    async fn fill(&mut self, block: &mut Vec<Line>) -> Result<(), Problem> {
        let (mut bytes, time) = (0, self.app.limits.time);
        // For a whole line, not for a part of one: somebody may send a byte now and then.
        let mut deadline = Instant::now() + time;
        loop {
            while let Some(line) = self.next_line()? {
                deadline = Instant::now() + time;
                bytes += line.json.len();
                block.push(line);
                if block.len() >= self.together || bytes >= BLOCK_BYTES {
                    return Ok(());
                }
            }
            if self.ended {
                return Ok(());
            }
            let more = tokio::select! {
                biased;
                more = timeout_at(deadline, self.body.frame()) => more,
                () = sleep(PAUSE), if !block.is_empty() => return Ok(()),
                () = self.app.ends(), if block.is_empty() => return Err(ending()),
            };
            match more {
                Err(_) => return Err(Problem::too_slow("no line came in time")),
                Ok(None) => self.ended = true,
                Ok(Some(frame)) => {
                    if let Ok(data) = frame.map_err(broken)?.into_data() {
                        self.rest.extend_from_slice(&data);
                        self.room.take(self.rest.len())?;
                    }
                }
            }
        }
    }

    /// The next line that is not blank, if all of it has come.
    fn next_line(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            let end =
                memchr::memchr(b'\n', &self.rest[self.searched..]).map(|at| self.searched + at);
            let most = self.app.limits.body_bytes;
            if end.unwrap_or(self.rest.len()) > most {
                let line = self.number + 1;
                return Err(Problem::too_large(format!("line {line} has more than {most} bytes")));
            }
            let json = match end {
                Some(end) => {
                    let line = self.rest.split_to(end + 1).freeze();
                    line.slice(..end)
                }
                None if self.ended && !self.rest.is_empty() => self.rest.split().freeze(),
                None => {
                    self.searched = self.rest.len();
                    return Ok(None);
                }
            };
            self.searched = 0;
            self.number += 1;
            if !json.trim_ascii().is_empty() {
                return Ok(Some(Line { number: self.number, json }));
            }
        }
    }
}
