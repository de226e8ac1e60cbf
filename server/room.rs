//! Room: what all bodies and answers together may take. Each may be large, but not all at a time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{app::App, error::Problem, options::Limits};

/// Room for so many of the largest bodies.
pub(crate) fn room_of(bodies: usize, limits: &Limits) -> Arc<Semaphore> {
    let bytes = limits.body_bytes.saturating_mul(bodies);
    Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)))
}

/// Some of the room that all bodies share: each may be large, but not all at a time.
#[derive(Debug)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn none_of(all: &Arc<Semaphore>) -> Self {
        Room { all: all.clone(), taken: None }
    }

    /// Takes so many bytes in all, more or fewer than before, if they are there.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if bytes < taken {
            self.taken.as_mut().and_then(|all| all.split(taken - bytes));
            return Ok(());
        }
        let more = u32::try_from(bytes - taken).ok();
        let more = more.and_then(|more| self.all.clone().try_acquire_many_owned(more).ok());
        let Some(more) = more else {
            let problem = "the bodies that are being read are too many and too large at a time";
            return Err(Problem::unavailable(problem).soon_over());
        };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}

/// Answers that are larger take room while they are sent.
const SMALL: u64 = 64 << 10;

/// An answer that takes room until the caller has read it.
struct Sending {
    rest: Bytes,
    _room: Room,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // In parts: the next is asked for when there is a place for it.
        let part = self.rest.len().min(SMALL as usize);
        let frame = (part > 0).then(|| Ok(Frame::data(self.rest.split_to(part))));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Makes a large answer take room until it is sent; one that finds none is not sent.
pub(crate) async fn hold(app: &App, response: Response) -> Response {
    let size = response.body().size_hint().exact().unwrap_or(0);
    if size <= SMALL {
        return response;
    }
    let mut room = app.room();
    if let Err(problem) = room.take(size as usize) {
        return problem.into_response();
    }
    let (head, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => {
            Response::from_parts(head, Body::new(Sending { rest: body.to_bytes(), _room: room }))
        }
        Err(error) => Problem::failed(error.to_string()).into_response(),
    }
}
