//! A connection that several threads share.
//!
//! Every thread sends its own requests. One of the threads that wait for replies is the leader. It
//! sleeps on the socket, outside of the library's lock, and lets the library receive into the buffers
//! of all threads. The others sleep until their replies are there or until they become the leader. A
//! thread that sends wakes the leader if the socket did not take everything.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::Shutdown;

use super::library::{Cut, ExtentSink, Fault, Handle, ReadFault, State};
use super::pace::{MIN_RATE, Pace};
use super::tracker::Tracker;
use crate::sys::{self, Event};

/// The reason why the connections of an export are unusable. Only the first reason is kept.
pub(super) type Downfall = Arc<OnceLock<(io::ErrorKind, String)>>;

/// A connection with an export chosen.
pub(super) struct Connection {
    handle: Handle,
    /// Duplicate of the library's socket, which stays open when the library closes its own.
    socket: OwnedFd,
    wake: Event,
    timeout: Option<Duration>,
    downfall: Downfall,
    /// Number of content bytes that the server has reported.
    known: Arc<AtomicU64>,
    turn: Mutex<Turn>,
}

/// The waiting threads of a connection.
struct Turn {
    has_leader: bool,
    followers: Vec<Arc<Follower>>,
    /// Number of callers with requests in flight.
    callers: usize,
    /// Time when the server last sent something, or when it began to owe a reply.
    heard: Instant,
    /// Pace of the server. `None` without a timeout.
    pace: Option<Pace>,
}

struct Follower {
    tracker: Arc<Tracker>,
    condvar: Condvar,
}

impl Connection {
    /// Creates a connection from a handle that is ready.
    pub fn new(
        mut handle: Handle,
        timeout: Option<Duration>,
        downfall: Downfall,
    ) -> io::Result<Self> {
        let socket = handle.socket().ok_or(io::ErrorKind::NotConnected)?;
        let wake = Event::new()?;
        let (heard, pace) = (Instant::now(), timeout.map(Pace::new));
        let turn = Turn { has_leader: false, followers: Vec::new(), callers: 0, heard, pace };
        let (known, turn) = (Arc::default(), Mutex::new(turn));
        Ok(Self { handle, socket, wake, timeout, downfall, known, turn })
    }

    /// Fills `buf` from `offset` on.
    pub fn read(&self, buf: &mut [u8], offset: u64, cut: Cut) -> Result<(), ReadFault> {
        let tracker = Arc::new(Tracker::new(&self.known));
        let _call = self.call();
        self.handle.read(buf, offset, cut, &tracker, || self.wait(&tracker))
    }

    /// Writes `bytes` from `offset` on.
    pub fn write(&self, bytes: &[u8], offset: u64, cut: Cut) -> Result<(), ReadFault> {
        let tracker = Arc::new(Tracker::new(&self.known));
        let _call = self.call();
        self.handle.write(bytes, offset, cut, &tracker, || self.wait(&tracker))
    }

    /// Makes a range zero.
    pub fn zero(&self, offset: u64, length: u64) -> Result<(), ReadFault> {
        let tracker = Arc::new(Tracker::new(&self.known));
        let _call = self.call();
        self.handle.zero(offset, length, &tracker, || self.wait(&tracker))
    }

    /// Waits until what was written is on the disk of the server.
    pub fn flush(&self) -> Result<(), ReadFault> {
        let tracker = Arc::new(Tracker::new(&self.known));
        let _call = self.call();
        self.handle.flush(&tracker, || self.wait(&tracker))
    }

    /// Requests extents and passes them to `sink`. Returns the sink with the errno value or 0.
    pub fn block_status<S: ExtentSink + 'static>(
        &self,
        length: u64,
        offset: u64,
        sink: S,
    ) -> Result<(S, i32), Fault> {
        let tracker = Arc::new(Tracker::new(&self.known));
        let _call = self.call();
        let status = self.handle.block_status(length, offset, &tracker, sink)?;
        while tracker.pending() > 0 {
            self.wait(&tracker);
        }
        let (sink, errno) = status.take();
        let sink = sink.ok_or_else(|| Fault { errno, text: "the answer is lost".into() })?;
        Ok((sink, errno))
    }

    /// Makes the connection unusable. Records `reason`, unless there is an earlier one.
    pub fn fail(&self, reason: &str) {
        self.fail_as(io::ErrorKind::ConnectionAborted, reason);
    }

    fn fail_as(&self, kind: io::ErrorKind, reason: &str) {
        let _ = self.downfall.set((kind, reason.to_owned()));
        // The leader and the library see the end of the stream.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// Waits until `tracker` is reached.
    fn wait(&self, tracker: &Arc<Tracker>) {
        self.wake_leader_to_send();
        let mut turn = self.lock();
        while turn.has_leader && !tracker.is_reached() {
            let follower = Arc::new(Follower { tracker: tracker.clone(), condvar: Condvar::new() });
            turn.followers.push(follower.clone());
            turn = follower.condvar.wait(turn).unwrap_or_else(PoisonError::into_inner);
            turn.followers.retain(|other| !Arc::ptr_eq(other, &follower));
        }
        while !tracker.is_reached() {
            turn.has_leader = true;
            let known = self.known.load(Ordering::Relaxed);
            if turn.pace.as_mut().is_some_and(|pace| pace.is_too_slow(Instant::now(), known)) {
                self.fail(&format!("the server sends less than {MIN_RATE} bytes in a second"));
            }
            let heard = turn.heard;
            drop(turn);
            let is_heard = self.step(heard);
            turn = self.lock();
            turn.has_leader = false;
            if is_heard {
                turn.heard = Instant::now();
            }
            for follower in turn.followers.iter().filter(|f| f.tracker.is_reached()) {
                follower.condvar.notify_one();
            }
        }
        // Hands leadership over. The followers must not wait without a leader.
        if !turn.has_leader
            && let Some(next) = turn.followers.first()
        {
            next.condvar.notify_one();
        }
    }

    /// Waits for the socket once and lets the library work. Returns whether the server sent something.
    fn step(&self, heard: Instant) -> bool {
        let direction = self.handle.direction();
        if !direction.read && !direction.write {
            self.fail("the connection is lost");
            return false;
        }
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, direction.read);
        events.set(PollFlags::OUT, direction.write);
        let mut descriptors =
            [PollFd::new(&self.socket, events), PollFd::new(&self.wake, PollFlags::IN)];
        let timeout = self.timeout.filter(|_| self.downfall.get().is_none());
        let deadline = timeout.map(|timeout| heard + timeout);
        match sys::poll(&mut descriptors, deadline) {
            Ok(true) => {}
            Ok(false) => {
                let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                let reason = format!("the server did not answer for {seconds} seconds");
                self.fail_as(io::ErrorKind::TimedOut, &reason);
                return false;
            }
            Err(error) => {
                self.fail(&format!("cannot wait for the server: {error}"));
                return false;
            }
        }
        let [ready, woken] = descriptors.map(|descriptor| descriptor.revents());
        if !woken.is_empty() {
            self.wake.clear();
        }
        if ready.is_empty() {
            return false;
        }
        let result = if direction.read && ready != PollFlags::OUT {
            self.handle.notify_read()
        } else {
            self.handle.notify_write()
        };
        match result {
            Err(fault) => self.fail(&fault.text),
            Ok(()) if self.handle.state() == State::Dead => {
                self.fail("the server closed the connection");
            }
            Ok(()) => {}
        }
        true
    }

    /// Wakes the leader if there is more to send. It may sleep until the socket is readable.
    fn wake_leader_to_send(&self) {
        let direction = self.handle.direction();
        if direction.write || !direction.read {
            self.wake.set();
        }
    }

    /// Counts a caller. A server without callers owes no reply.
    fn call(&self) -> Call<'_> {
        let mut turn = self.lock();
        if turn.callers == 0 {
            let now = Instant::now();
            turn.heard = now;
            turn.pace.iter_mut().for_each(|pace| pace.start(now));
        }
        turn.callers += 1;
        Call(self)
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.downfall.get().is_none() {
            self.handle.disconnect();
        }
    }
}

struct Call<'a>(&'a Connection);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut turn = self.0.lock();
        turn.callers -= 1;
        if turn.callers == 0 {
            let now = Instant::now();
            turn.pace.iter_mut().for_each(|pace| pace.pause(now));
        }
    }
}
