//! The place of an object and the credentials for it, which sign its requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::DATE;
use http::request::Parts;

use super::credentials::{self, Credentials, Fetch};
use super::environment::Environment;
use super::place::{self, Place};
use super::problem::Problem;
use super::profile::Profile;
use super::refusal::{Cause, Described};
use super::{sigv4, time};
use crate::answer::Answer;
use crate::sign::{Refusal, Signer, Target};
use crate::{ErrorKind, Result, S3Options, Url};

/// An object of S3.
pub(crate) struct Store {
    url: Url,
    place: Place,
    options: S3Options,
    environment: Environment,
    fetch: Box<dyn Fetch + Send + Sync>,
    state: Mutex<State>,
}

/// What is learned from answers.
struct State {
    region: String,
    is_region_corrected: bool,
    credentials: Loaded,
    /// How far the clock of the server is ahead of the own one, or how far it is late.
    clock: Clock,
}

enum Loaded {
    /// The sources were not asked yet.
    Not,
    /// No source has credentials, so requests are not signed.
    Anonymous,
    /// Credentials, and the time of the next attempt to get new ones.
    Found { credentials: Credentials, not_before: Option<SystemTime>, was_refused: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Own,
    Ahead(Duration),
    Behind(Duration),
}

impl Store {
    /// Finds the place of an object. Connects to nothing: credentials are got before the first request.
    ///
    /// # Errors
    ///
    /// Fails if the URL, an option or a variable is not valid, or a configuration file cannot be read.
    pub fn new(
        url: &Url,
        options: &S3Options,
        environment: Environment,
        fetch: Box<dyn Fetch + Send + Sync>,
    ) -> Result<Arc<Self>> {
        let profile = Profile::read(options.profile.as_deref(), &environment);
        let profile = profile.map_err(|problem| problem.of(url))?;
        let place = Place::new(url, options, &profile, &environment);
        let region = place::region(options, &profile, &environment);
        Ok(Arc::new(Self {
            url: url.clone(),
            place: place.map_err(|problem| problem.of(url))?,
            options: options.clone(),
            environment,
            fetch,
            state: Mutex::new(State {
                region: region.map_err(|problem| problem.of(url))?,
                is_region_corrected: false,
                credentials: Loaded::Not,
                clock: Clock::Own,
            }),
        }))
    }

    /// Returns the URL of the object in the region that is known, with this as its signer.
    ///
    /// # Errors
    ///
    /// Fails if the URL is not valid.
    pub fn target(self: &Arc<Self>) -> Result<Target> {
        let url = self.place.url(&self.state().region).parse()?;
        Ok(Target { url, signer: Some(Arc::clone(self) as Arc<dyn Signer>) })
    }

    /// Returns whether `target` leads elsewhere than `url`, because a server said where the bucket is.
    pub fn has_moved(&self, target: &Target) -> bool {
        let url = self.place.url(&self.state().region);
        url.parse::<Url>().is_ok_and(|url| url != target.url)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of it is a single assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, answer: &Answer, now: SystemTime) -> Refusal {
        let described = Described::read(answer);
        let mut state = self.state();
        let state = &mut *state;
        let problem =
            described.problem(answer.status, matches!(state.credentials, Loaded::Found { .. }));
        match described.cause(answer.status) {
            Cause::Busy => return Refusal::Busy,
            Cause::Region if !state.is_region_corrected => {
                if let Some(region) = described.region().filter(|region| *region != state.region) {
                    (state.region, state.is_region_corrected) = (region.to_owned(), true);
                    // With an endpoint the URL stays, so it is enough to sign again.
                    if !self.place.is_regional() {
                        return Refusal::Renew;
                    }
                }
            }
            Cause::Clock if state.clock == Clock::Own => {
                if let Some(clock) = Clock::of_server(answer, now) {
                    state.clock = clock;
                    return Refusal::Renew;
                }
            }
            Cause::Expired => {
                if let Loaded::Found { was_refused: was_refused @ false, .. } =
                    &mut state.credentials
                {
                    *was_refused = true;
                    return Refusal::Renew;
                }
            }
            Cause::Region | Cause::Clock | Cause::Final => {}
        }
        match problem {
            Some(Problem(kind, reason)) => Refusal::Because(kind, reason),
            None => Refusal::ByStatus,
        }
    }

    fn is_stale_at(&self, now: SystemTime) -> bool {
        let state = self.state();
        let now = state.clock.correct(now);
        match &state.credentials {
            Loaded::Not => true,
            Loaded::Anonymous => false,
            Loaded::Found { credentials, not_before, was_refused } => {
                let is_waiting = not_before.is_some_and(|time| now < time);
                *was_refused || (credentials.expire_within(MARGIN, now) && !is_waiting)
            }
        }
    }

    fn renew_at(&self, now: SystemTime) -> Result<()> {
        let now = {
            let state = self.state();
            state.clock.correct(now)
        };
        if !self.is_stale_at(now) {
            return Ok(());
        }
        // Connects to other servers, and is called by one request at a time, so it is not locked.
        let found = credentials::find(&self.options, &self.environment, &*self.fetch);
        let mut state = self.state();
        let new = match (found, &mut state.credentials) {
            (Ok(Some(new)), Loaded::Found { credentials, was_refused: true, .. })
                if new == *credentials =>
            {
                let reason = "the credentials expired: get new ones";
                return Err(Problem(ErrorKind::Denied, reason.into()).of(&self.url));
            }
            (Ok(Some(credentials)), _) => {
                let not_before = now.checked_add(RETRY);
                Loaded::Found { credentials, not_before, was_refused: false }
            }
            (Ok(None), Loaded::Found { .. }) => {
                let reason = "the credentials expired, and there are no new ones";
                return Err(Problem::denied(reason).of(&self.url));
            }
            (Ok(None), _) => Loaded::Anonymous,
            // What is still valid is used until it is not.
            (Err(_), Loaded::Found { credentials, not_before, was_refused: false })
                if !credentials.expire_within(Duration::ZERO, now) =>
            {
                *not_before = now.checked_add(RETRY);
                return Ok(());
            }
            (Err(problem), _) => return Err(problem.of(&self.url)),
        };
        state.credentials = new;
        Ok(())
    }

    fn sign_at(&self, request: &mut Parts, now: SystemTime) -> Result<()> {
        let state = self.state();
        match &state.credentials {
            Loaded::Not | Loaded::Anonymous => Ok(()),
            Loaded::Found { credentials, .. } => {
                let signed =
                    sigv4::sign(request, credentials, &state.region, state.clock.correct(now));
                signed.map_err(|problem| problem.of(&self.url))
            }
        }
    }
}

impl Signer for Store {
    fn sign(&self, request: &mut Parts) -> Result<()> {
        self.sign_at(request, SystemTime::now())
    }

    fn is_stale(&self) -> bool {
        self.is_stale_at(SystemTime::now())
    }

    fn renew(&self) -> Result<()> {
        self.renew_at(SystemTime::now())
    }

    fn refused(&self, answer: &Answer) -> Refusal {
        self.refusal(answer, SystemTime::now())
    }
}

impl Clock {
    /// Returns the clock of a server by the date of its answer.
    fn of_server(answer: &Answer, now: SystemTime) -> Option<Self> {
        let date = time::parse_http(answer.headers.get(DATE)?.to_str().ok()?)?;
        Some(match date.duration_since(now) {
            Ok(ahead) => Self::Ahead(ahead),
            Err(error) => Self::Behind(error.duration()),
        })
    }

    /// Returns the time of this clock at a time of the own one.
    fn correct(self, now: SystemTime) -> SystemTime {
        let corrected = match self {
            Self::Own => Some(now),
            Self::Ahead(ahead) => now.checked_add(ahead),
            Self::Behind(behind) => now.checked_sub(behind),
        };
        corrected.unwrap_or(now)
    }
}

/// Time before their end at which new credentials are got.
const MARGIN: Duration = Duration::from_secs(300);

/// Time between attempts to get new credentials while those that are there are valid.
const RETRY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
