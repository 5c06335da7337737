//! Reads from a server with ranges.
//!
//! Announced bytes are asked for in large requests, many at a time, and each is handed out once. All other bytes come from a cache of
//! pages, whose requests do not wait for requests of announced bytes.
//!
//! Readers block on condition variables, and requests run on the thread of the client. Both change the state under its lock, and
//! copy outside of it. A reader always makes progress: if the bytes that it needs were not asked for yet, it asks for them at once,
//! whatever else is in flight. If then too much is in memory, bytes that were announced but not read are given up, those used longest ago
//! first, and asked for again when they are read.

mod flight;
mod pages;
mod state;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use crate::Result;
use crate::source::{Arriving, Source, lock};
use crate::transfer::fetch;
use pages::{HEAD_PAGES, Lookup, PAGE, PageRequest};
use state::{Launch, State};

/// Number of bytes at the start of an object that opening it gets, and that are kept.
pub(crate) const HEAD: u64 = HEAD_PAGES * PAGE;

/// Time in which further announcements may make a request larger.
const LINGER: Duration = Duration::from_millis(1);

/// An object that is read by ranges.
pub(crate) struct Ranged {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<Source>,
    size: u64,
    state: Mutex<State>,
}

/// How a reader continues.
enum Step {
    /// With these bytes.
    Bytes(Bytes),
    /// By looking again.
    Again,
}

impl Ranged {
    /// Begins to read an object whose first bytes arrive.
    pub fn new(source: Arc<Source>, size: u64, first: Option<Arriving>) -> Self {
        let state = Mutex::new(State::new(size, Instant::now()));
        let ranged = Self { shared: Arc::new(Shared { source, size, state }) };
        let head = 0..size.div_ceil(PAGE).min(HEAD_PAGES);
        if !head.is_empty() {
            let mut state = lock(&ranged.shared.state);
            ranged.shared.begin_pages(&mut state, head, first);
        }
        ranged
    }

    /// Reads as many bytes as the buffer has room for, up to the end.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.shared.size.saturating_sub(offset);
        let most = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let end = offset.saturating_add(most as u64);
        let mut done = 0;
        while done < most {
            if let Some(error) = self.shared.source.changed() {
                return Err(error.into());
            }
            match self.step(offset + done as u64, end) {
                Ok(Step::Again) => {}
                Ok(Step::Bytes(bytes)) => {
                    buf[done..done + bytes.len()].copy_from_slice(&bytes);
                    done += bytes.len();
                }
                // The next read gets the error.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Announces a range.
    pub fn will_need(&self, range: Range<u64>) {
        let range = range.start.max(HEAD)..range.end.min(self.shared.size);
        if range.start < range.end {
            let mut state = lock(&self.shared.state);
            state.announce(range);
            self.shared.start_all(&mut state, false);
            self.shared.linger(&mut state);
        }
    }

    /// Returns the number of bytes to announce.
    pub fn read_ahead(&self) -> u64 {
        lock(&self.shared.state).window.limit()
    }

    /// Gets the next bytes for a reader that needs those from `at` to `end`.
    fn step(&self, at: u64, end: u64) -> Result<Step> {
        let shared = &self.shared;
        let mut state = lock(&shared.state);
        let most = usize::try_from(end - at).unwrap_or(usize::MAX);
        if let Some(id) = state.flight_of(at) {
            if let Some(bytes) = state.take(id, at, most) {
                shared.start_all(&mut state, true);
                return Ok(Step::Bytes(bytes));
            }
            wait_for_flight(state, id, at, end)?;
            return Ok(Step::Again);
        }
        if let Some(launch) = state.urgent(at) {
            shared.launch(&mut state, launch);
            return Ok(Step::Again);
        }
        let page = at / PAGE;
        match state.pages.get(page) {
            Lookup::Present(bytes) => {
                let from = usize::try_from(at % PAGE).unwrap_or(usize::MAX);
                let until = bytes.len().min(from.saturating_add(most));
                Ok(Step::Bytes(bytes.slice(from.min(until)..until)))
            }
            Lookup::Arriving(request) => {
                wait_for_page(state, &request, page)?;
                Ok(Step::Again)
            }
            Lookup::Missing => {
                let pages = state.plan_pages(page, end.div_ceil(PAGE));
                shared.begin_pages(&mut state, pages, None);
                Ok(Step::Again)
            }
        }
    }
}

impl Drop for Ranged {
    /// Ends all requests.
    fn drop(&mut self) {
        lock(&self.shared.state).close();
    }
}

/// Waits until bytes of a flight arrived.
fn wait_for_flight(mut state: MutexGuard<'_, State>, id: u64, at: u64, end: u64) -> Result<()> {
    state.window.starve();
    let Some(flight) = state.flights.get_mut(&id) else { return Ok(()) };
    if let Some(Err(error)) = &flight.outcome {
        return Err(error.clone());
    }
    flight.wait_for(at, end);
    let arrived = flight.arrived.clone();
    // Woken without need, the reader looks again.
    let mut state = arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
    if let Some(flight) = state.flights.get_mut(&id) {
        flight.waiting -= 1;
    }
    Ok(())
}

/// Waits until a page arrived.
fn wait_for_page(
    mut state: MutexGuard<'_, State>,
    request: &Arc<PageRequest>,
    page: u64,
) -> Result<()> {
    state.pages.wait(page);
    while request.error.get().is_none() && !state.pages.is_present(page) {
        state = request.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let error = request.error.get().filter(|_| !state.pages.is_present(page));
    state.pages.waited(page);
    error.map_or(Ok(()), |error| Err(error.clone()))
}

impl Shared {
    /// Starts as many requests for announced bytes as the window allows.
    fn start_all(self: &Arc<Self>, state: &mut State, short: bool) {
        while let Some(launch) = state.next(short) {
            self.launch(state, launch);
        }
    }

    /// Starts short requests soon, if no announcements follow that make them larger.
    fn linger(self: &Arc<Self>, state: &mut State) {
        if state.is_lingering || !state.has_queue() {
            return;
        }
        state.is_lingering = true;
        let shared = self.clone();
        self.source.client.handle().spawn(async move {
            tokio::time::sleep(LINGER).await;
            let mut state = lock(&shared.state);
            state.is_lingering = false;
            shared.start_all(&mut state, true);
        });
    }

    /// Starts a request for announced bytes.
    fn launch(self: &Arc<Self>, state: &mut State, launch: Launch) {
        let Launch { id, range } = launch;
        let shared = self.clone();
        let task = self.source.client.handle().spawn(async move {
            let start = Instant::now();
            let mut first = None;
            let bytes = range.end - range.start;
            let result = fetch(&shared.source, range, None, |at, bytes| {
                first.get_or_insert_with(|| start.elapsed());
                lock(&shared.state).push(id, at, bytes, Instant::now());
            })
            .await;
            let mut state = lock(&shared.state);
            if result.is_ok() {
                state.window.finished(bytes, first.unwrap_or_default(), start.elapsed());
            }
            if shared.source.take_busy() > 0 {
                state.window.relent(Instant::now());
            }
            state.finish(id, result);
            shared.start_all(&mut state, true);
        });
        state.set_abort(id, task.abort_handle());
    }

    /// Starts a request for pages, whose first answer may be there already.
    fn begin_pages(
        self: &Arc<Self>,
        state: &mut State,
        pages: Range<u64>,
        first: Option<Arriving>,
    ) {
        let request = Arc::new(PageRequest::default());
        state.pages.begin(pages.clone(), &request);
        let shared = self.clone();
        let task = self.source.client.handle().spawn(async move {
            let range = pages.start * PAGE..(pages.end * PAGE).min(shared.size);
            let mut filling = BytesMut::new();
            let end = range.end;
            let result = fetch(&shared.source, range, first, |at, bytes| {
                shared.fill_pages(&request, &mut filling, at, bytes, end);
            })
            .await;
            let mut state = lock(&shared.state);
            if let Err(error) = result {
                let _ = request.error.set(error);
                state.pages.abandon(pages);
            }
            request.arrived.notify_all();
            state.forget_ended();
        });
        state.aborts.push(task.abort_handle());
    }

    /// Adds bytes to the page that is being filled, and hands out those that are complete.
    fn fill_pages(
        &self,
        request: &PageRequest,
        filling: &mut BytesMut,
        mut at: u64,
        mut bytes: &[u8],
        end: u64,
    ) {
        while !bytes.is_empty() {
            let page = at / PAGE;
            let page_end = ((page + 1) * PAGE).min(end);
            if filling.capacity() == 0 {
                filling.reserve(usize::try_from(page_end - at).unwrap_or_default());
            }
            let n = bytes.len().min(usize::try_from(page_end - at).unwrap_or(usize::MAX));
            filling.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            at += n as u64;
            if at == page_end {
                let page_bytes = std::mem::take(filling).freeze();
                lock(&self.state).pages.fill(page, page_bytes);
                request.arrived.notify_all();
            }
        }
    }
}
