//! What is announced, in flight and in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use rangemap::RangeMap;
use tokio::task::AbortHandle;

use super::flight::Flight;
use super::pages::{PAGE, Pages};
use crate::Error;
use crate::queue::{Plan, Queue, Shape};
use crate::window::Window;

/// The state of an object that is read by ranges.
pub(super) struct State {
    size: u64,
    queue: Queue,
    pub flights: HashMap<u64, Flight>,
    /// The flight of each announced byte that was asked for and not read.
    owners: RangeMap<u64, u64>,
    /// Number of bytes in `owners`.
    held: u64,
    in_flight: usize,
    pub window: Window,
    pub pages: Pages,
    /// The requests for pages.
    pub aborts: Vec<AbortHandle>,
    clock: u64,
    is_closed: bool,
    /// Whether short requests will be started soon.
    pub is_lingering: bool,
}

/// A request for announced bytes to start.
pub(super) struct Launch {
    pub id: u64,
    pub range: Range<u64>,
}

impl State {
    pub fn new(size: u64, now: Instant) -> Self {
        Self {
            size,
            queue: Queue::default(),
            flights: HashMap::new(),
            owners: RangeMap::new(),
            held: 0,
            in_flight: 0,
            window: Window::new(now),
            pages: Pages::default(),
            aborts: Vec::new(),
            clock: 0,
            is_closed: false,
            is_lingering: false,
        }
    }

    /// Adds a range to the queue, without bytes that wait to be read.
    pub fn announce(&mut self, range: Range<u64>) {
        let new: Vec<_> = self.owners.gaps(&range).collect();
        for range in new {
            self.queue.add(range);
        }
    }

    /// Returns the flight that has or will have an announced byte.
    pub fn flight_of(&self, offset: u64) -> Option<u64> {
        self.owners.get(&offset).copied()
    }

    /// Returns whether announced bytes wait to be asked for.
    pub fn has_queue(&self) -> bool {
        !self.is_closed && !self.queue.is_empty()
    }

    /// Takes bytes of a flight that arrived.
    pub fn take(&mut self, id: u64, at: u64, most: usize) -> Option<Bytes> {
        self.clock += 1;
        let flight = self.flights.get_mut(&id).filter(|flight| flight.has(at))?;
        let bytes = flight.take(at, most)?;
        flight.used = self.clock;
        self.owners.remove(at..at + bytes.len() as u64);
        self.held -= bytes.len() as u64;
        if flight.unread() == 0 && flight.outcome.is_some() {
            self.flights.remove(&id);
        }
        Some(bytes)
    }

    /// Returns the next request for announced bytes, if there is room for it. One that further announcements could make larger waits for
    /// them, or until `short` ones are allowed and little is on its way.
    pub fn next(&mut self, short: bool) -> Option<Launch> {
        let (size, limit) = (self.window.size(), self.window.limit());
        let has_room = self.held + size <= limit && self.in_flight < self.window.requests();
        if self.is_closed || !has_room {
            return None;
        }
        let shape = self.shape(short && self.held < limit / 2);
        let plan = self.queue.next(shape, self.size)?;
        Some(self.begin(plan))
    }

    /// Returns the request for a byte that was announced but not asked for, which a reader needs now.
    pub fn urgent(&mut self, at: u64) -> Option<Launch> {
        let plan = if self.queue.contains(at) { self.queue.at(at, self.shape(true)) } else { None };
        let launch = self.begin(plan?);
        self.make_room(launch.id);
        Some(launch)
    }

    /// Returns the pages to ask for if one is missing.
    pub fn plan_pages(&mut self, page: u64, needed: u64) -> Range<u64> {
        let Self { pages, owners, queue, .. } = self;
        pages.plan(page, needed, self.size.div_ceil(PAGE), |page| {
            let range = page * PAGE..(page + 1) * PAGE;
            owners.overlaps(&range) || queue.overlaps(&range)
        })
    }

    /// Adds bytes to a flight.
    pub fn push(&mut self, id: u64, at: u64, bytes: &[u8], now: Instant) {
        self.window.received(bytes.len() as u64, now);
        if let Some(flight) = self.flights.get_mut(&id)
            && flight.push(at, bytes)
        {
            flight.wake();
        }
    }

    /// Ends a flight. What a failed one has not got fails to be read.
    pub fn finish(&mut self, id: u64, result: Result<(), Error>) {
        self.in_flight -= 1;
        self.clock += 1;
        let Some(flight) = self.flights.get_mut(&id) else { return };
        flight.outcome = Some(result);
        flight.abort = None;
        flight.used = self.clock;
        flight.wake();
        if flight.unread() == 0 {
            self.flights.remove(&id);
        }
    }

    /// Keeps what ends the request of a flight.
    pub fn set_abort(&mut self, id: u64, abort: AbortHandle) {
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.abort = Some(abort);
        }
    }

    /// Forgets requests for pages that ended.
    pub fn forget_ended(&mut self) {
        self.aborts.retain(|abort| !abort.is_finished());
    }

    /// Ends all requests.
    pub fn close(&mut self) {
        self.is_closed = true;
        let flights = self.flights.values_mut().filter_map(|flight| flight.abort.take());
        for abort in flights.chain(self.aborts.drain(..)) {
            abort.abort();
        }
    }

    fn shape(&self, short: bool) -> Shape {
        Shape { most: self.window.size(), gap: self.window.gap(), short }
    }

    fn begin(&mut self, plan: Plan) -> Launch {
        self.clock += 1;
        let (id, range) = (self.clock, plan.range.clone());
        for wanted in plan.wanted.iter() {
            self.owners.insert(wanted.clone(), id);
        }
        let flight = Flight::new(plan);
        self.held += flight.unread();
        self.in_flight += 1;
        self.flights.insert(id, flight);
        Launch { id, range }
    }

    /// Gives up bytes that were not read, until there is no more than the limit allows. They go back to the queue.
    fn make_room(&mut self, kept: u64) {
        while self.held > self.window.limit() {
            let idle = self.flights.iter().filter(|(id, flight)| {
                **id != kept && flight.waiting == 0 && matches!(flight.outcome, Some(Ok(())))
            });
            let Some(id) = idle.min_by_key(|(_, flight)| flight.used).map(|(id, _)| *id) else {
                return;
            };
            if let Some(flight) = self.flights.remove(&id) {
                self.held -= flight.unread();
                for range in flight.wanted() {
                    self.owners.remove(range.clone());
                    self.queue.put_back(range);
                }
            }
        }
    }
}
