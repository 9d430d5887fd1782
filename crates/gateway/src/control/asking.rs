//! Hands questions from the threads that answer users to the thread that forwards, which knows the answers.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::request::{PATIENCE, Request};
use crate::link::classes::ClassCounts;
use crate::report;
use crate::trouble::Trouble;

/// An answer of the thread that forwards. Counts of classes are as they were; writing them out, which takes time
/// with many, is left to the thread that asks.
#[derive(Default, Debug)]
pub struct Told {
    pub(crate) value: Value,
    /// Of each way, if they are wanted.
    pub(crate) classes: [Option<ClassCounts>; 2],
    /// How many of them.
    pub(crate) most: usize,
}

impl From<Value> for Told {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

impl Told {
    /// All of it.
    pub(crate) fn written(self) -> Value {
        let Self { mut value, classes, most } = self;
        for (i, counts) in classes.into_iter().enumerate() {
            if let Some(mut counts) = counts {
                counts.add_up();
                value["queues"][i]["classes"] = report::classes(&counts, most);
            }
        }
        value
    }
}

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The answer, or why not.
    pub answer: Sender<Result<Told, Trouble>>,
    /// Set once: by the thread that does it, or by the caller that gives up.
    pub taken: Arc<AtomicBool>,
}

impl Asked {
    /// A request, and where its answer will be.
    pub(crate) fn new(request: Request) -> (Self, Receiver<Result<Told, Trouble>>) {
        let (answer, answered) = channel();
        (Self { request, answer, taken: Arc::default() }, answered)
    }

    /// Takes the request unless the other side has: requests whose caller gave up are not carried out.
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::Relaxed)
    }
}

/// The way to the thread that forwards.
#[derive(Debug)]
pub(crate) struct Asking {
    requests: Sender<Asked>,
    wake: UnixStream,
    closed: Closed,
}

/// Whether another process answers at the doors.
#[derive(Clone, Default, Debug)]
pub(crate) struct Closed(Arc<AtomicBool>);

impl Closed {
    pub(crate) fn set(&self, closed: bool) {
        self.0.store(closed, Ordering::Relaxed);
    }

    /// Waits a little if it is so: the door would report a caller at once, again and again.
    pub(super) fn waits(&self) -> bool {
        let closed = self.0.load(Ordering::Relaxed);
        if closed {
            thread::sleep(Duration::from_millis(20));
        }
        closed
    }
}

/// A way to ask, which writes to `wake`, and the inbox where requests arrive.
pub(crate) fn line(wake: &UnixStream) -> Result<(Asking, Receiver<Asked>), Trouble> {
    let (requests, inbox) = channel();
    let wake = wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
    Ok((Asking { requests, wake, closed: Closed::default() }, inbox))
}

impl Asking {
    /// Hands over a request and waits for its answer. A request that has not begun in time is dropped.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Value, Trouble> {
        let gone = || Trouble::new("the gateway ends", "");
        let (asked, answered) = Asked::new(request);
        let taken = asked.taken.clone();
        self.requests.send(asked).map_err(|_| gone())?;
        self.wake.write_all(&[1]).map_err(|_| gone())?;
        let answer = match answered.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) if taken.swap(true, Ordering::Relaxed) => {
                answered.recv_timeout(PATIENCE).map_err(|_| gone())?
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(Trouble::new("the gateway is too busy or was stopped", "nothing was done"))
            }
            answer => answer.map_err(|_| gone())?,
        };
        answer.map(Told::written)
    }

    /// Another one.
    pub(crate) fn again(&self) -> Result<Self, Trouble> {
        let wake = self.wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
        Ok(Self { requests: self.requests.clone(), wake, closed: self.closed() })
    }

    /// Hands over a request and waits for nothing.
    pub(crate) fn tell(&mut self, request: Request) {
        _ = self.requests.send(Asked::new(request).0);
        _ = self.wake.write_all(&[1]);
    }

    /// Whether the doors are another process's.
    pub(crate) fn closed(&self) -> Closed {
        self.closed.clone()
    }
}

/// An answer that all callers share, and that is renewed once it is old.
pub(super) struct Latest<T> {
    asking: Asking,
    request: Request,
    /// What it becomes.
    made: fn(Value) -> T,
    /// Time of the last question, ns.
    at: u64,
    answer: Option<Result<T, Trouble>>,
}

/// The shortest time between two questions to the forwarding thread, ns.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was stopped finds requests of those who have given up.
    #[test]
    fn what_nobody_waits_for_is_not_done() {
        let (_waker, wake) = UnixStream::pair().unwrap();
        let (mut asking, inbox) = line(&wake).unwrap();
        let trouble = asking.ask(Request::Show { classes: false }).unwrap_err();
        assert_eq!(trouble.hint, "nothing was done");
        assert!(!inbox.recv().unwrap().take());
        // A request that has begun is waited for.
        let slow = thread::spawn(move || {
            let asked = inbox.recv().unwrap();
            assert!(asked.take());
            thread::sleep(PATIENCE + PATIENCE / 4);
            asked.answer.send(Ok(Told::default())).unwrap();
        });
        assert_eq!(asking.ask(Request::Show { classes: false }).unwrap(), Value::Null);
        slow.join().unwrap();
    }
}
