//! The way from those who answer questions to the thread that forwards, which knows.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use super::request::{PATIENCE, Request};
use crate::trouble::Trouble;

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The answer, or why not.
    pub answer: Sender<Result<Value, Trouble>>,
}

/// The way to the thread that forwards.
#[derive(Debug)]
pub(crate) struct Asking {
    requests: Sender<Asked>,
    wake: UnixStream,
}

/// A way to ask, which writes to `wake`, and where what is asked arrives.
pub(crate) fn line(wake: &UnixStream) -> Result<(Asking, Receiver<Asked>), Trouble> {
    let (requests, inbox) = channel();
    let wake = wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
    Ok((Asking { requests, wake }, inbox))
}

impl Asking {
    /// Hands over a request and waits for its answer.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Value, Trouble> {
        let gone = || Trouble::new("the gateway ends", "");
        let (answer, answered) = channel();
        self.requests.send(Asked { request, answer }).map_err(|_| gone())?;
        self.wake.write_all(&[1]).map_err(|_| gone())?;
        answered.recv_timeout(PATIENCE).map_err(|_| gone())?
    }

    /// Another one.
    pub(crate) fn again(&self) -> Result<Self, Trouble> {
        let wake = self.wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
        Ok(Self { requests: self.requests.clone(), wake })
    }
}

/// An answer that is asked for again once it is old, however many want to know.
pub(super) struct Latest<T> {
    asking: Asking,
    request: Request,
    /// What it becomes.
    made: fn(Value) -> T,
    /// When it was asked for, ns.
    at: u64,
    answer: Option<Result<T, Trouble>>,
}

/// The forwarding thread is asked no more often, ns.
const FRESH: u64 = 100_000_000;

impl<T> Latest<T> {
    pub(super) fn new(asking: Asking, request: Request, made: fn(Value) -> T) -> Self {
        Self { asking, request, made, at: 0, answer: None }
    }

    /// Things are different now.
    pub(super) fn forget(&mut self) {
        self.answer = None;
    }

    /// The answer at `now` (ns).
    pub(super) fn fresh(&mut self, now: u64) -> &Result<T, Trouble> {
        if now - self.at >= FRESH {
            self.answer = None;
        }
        let Self { asking, request, made, at, answer } = self;
        answer.get_or_insert_with(|| {
            *at = now;
            asking.ask(request.clone()).map(*made)
        })
    }
}
