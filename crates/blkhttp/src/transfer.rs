//! One range from a server: asked for, checked, and asked for again from where it broke off.

use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;

use crate::error::{Cause, Fault};
use crate::rate::Rate;
use crate::retry::{Backoff, is_too_long};
use crate::source::{Arriving, Source};
use crate::version::Content;
use crate::{Error, ErrorKind, Result};

/// Asks for a range until an answer with valid headers arrives.
pub(crate) async fn start(
    source: &Source,
    range: &Range<u64>,
    backoff: &mut Backoff,
    rate: &mut Rate,
) -> Result<Arriving, Error> {
    loop {
        match source.ask(range).await {
            Ok(arriving) => return Ok(arriving),
            Err(fault) => again(source, fault, backoff, rate).await?,
        }
    }
}

/// Gets a range, which is not empty, and passes the bytes on as they arrive, in order and each once.
///
/// The answer to a request for its start may be there already.
pub(crate) async fn fetch(
    source: &Source,
    range: Range<u64>,
    mut first: Option<Arriving>,
    mut push: impl FnMut(u64, &[u8]),
) -> Result<(), Error> {
    let mut backoff = Backoff::new(source.retries);
    let mut rate = Rate::new(source.timeout, Instant::now());
    let mut at = range.start;
    while at < range.end {
        let arriving = match first.take() {
            Some(arriving) => arriving,
            None => start(source, &(at..range.end), &mut backoff, &mut rate).await?,
        };
        let before = at;
        let received = receive(source, arriving, &mut at, range.end, &mut rate, &mut push).await;
        if at > before {
            backoff.progress();
        }
        if let Err(fault) = received {
            again(source, fault, &mut backoff, &mut rate).await?;
        }
    }
    Ok(())
}

/// Passes the bytes of one answer on. The last ones wait for its end, so that no reader has the range before the answer
/// turned out to be as long as it states.
async fn receive(
    source: &Source,
    arriving: Arriving,
    at: &mut u64,
    end: u64,
    rate: &mut Rate,
    push: &mut impl FnMut(u64, &[u8]),
) -> Result<(), Fault> {
    let Arriving { mut reply, content, .. } = arriving;
    let Content::Range(sent) = content else {
        return Err(Fault::protocol("the server sent no range"));
    };
    let sent_end = sent.end.min(end);
    let mut last = Bytes::new();
    while let Some(bytes) = reply.next().await? {
        if bytes.len() as u64 > sent_end - *at || !last.is_empty() {
            return Err(Fault::protocol("the server sent more bytes than it stated"));
        }
        source.count_bytes(bytes.len());
        rate.count(bytes.len());
        if bytes.len() as u64 == sent_end - *at {
            last = bytes;
        } else {
            push(*at, &bytes);
            *at += bytes.len() as u64;
        }
        if rate.is_too_slow(Instant::now()) {
            return Err(too_slow());
        }
    }
    if last.is_empty() {
        return Err(Fault::temporary("the server sent fewer bytes than it stated"));
    }
    push(*at, &last);
    *at = sent_end;
    Ok(())
}

/// Waits until the next attempt, unless there is none.
async fn again(
    source: &Source,
    fault: Fault,
    backoff: &mut Backoff,
    rate: &mut Rate,
) -> Result<(), Error> {
    let (reason, asked, cause) = match fault {
        Fault::Temporary { reason, wait, cause } => (reason, wait, cause),
        fault => return Err(source.fail(fault)),
    };
    if rate.is_too_slow(Instant::now()) {
        return Err(source.fail(too_slow()));
    }
    // A server that was never reached is more likely to have another name than to come back.
    let is_hopeless = source.pinned().is_none()
        && cause == Cause::Unreachable
        && backoff.failed() >= OPEN_RETRIES;
    match backoff.next(asked).filter(|_| !is_hopeless) {
        Some(wait) => {
            source.count_retry(cause);
            tokio::time::sleep(wait).await;
            rate.pause(wait);
            Ok(())
        }
        None => {
            let reason = match asked.filter(|seconds| is_too_long(*seconds)) {
                Some(seconds) => format!("{reason}, and asks to wait {seconds} seconds"),
                None => reason,
            };
            let attempts = backoff.failed();
            let reason = match attempts {
                1 => reason,
                _ => format!("{reason}, after {attempts} attempts"),
            };
            // What was reached before is unavailable.
            let cause = if source.pinned().is_none() { cause } else { Cause::Broken };
            Err(source.fail(Fault::Temporary { reason, wait: None, cause }))
        }
    }
}

/// Returns the fault of a server below the minimum rate.
pub(crate) fn too_slow() -> Fault {
    let reason = "the server sent less than 1 KiB a second for ten times the timeout";
    Fault::Final(ErrorKind::Unavailable, reason.to_owned())
}

/// Maximum number of further attempts to connect to a server that was never reached.
const OPEN_RETRIES: u32 = 2;
