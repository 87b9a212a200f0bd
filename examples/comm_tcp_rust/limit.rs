//! How long a call may wait: until its deadline, until it is aborted, or until a connection has something to say.
use crate::ddprun_abi::*;
use std::io::ErrorKind;
use std::os::raw::{c_int, c_short, c_ulong};
use std::os::unix::io::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Why a call did not succeed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: ddprun_status,
    pub text: String,
}

impl Failure {
    pub fn new(status: ddprun_status, text: impl Into<String>) -> Failure {
        Failure {
            status,
            text: text.into(),
        }
    }

    pub fn lost(rank: usize) -> Failure {
        Failure::new(
            DDPRUN_PEER_LOST,
            format!("rank {rank} closed its connection"),
        )
    }
}

/// Whether somebody has aborted the communicator: by abort(), from any thread, or by the flag of the host.
pub struct Stop {
    pub aborted: AtomicBool,
    pub host: &'static AtomicI32,
}

impl Stop {
    pub fn check(&self) -> Result<(), Failure> {
        if self.aborted.load(Ordering::Acquire) || self.host.load(Ordering::Acquire) != 0 {
            return Err(Failure::new(DDPRUN_ABORTED, "the communicator was aborted"));
        }
        Ok(())
    }
}

/// What ends one call.
pub struct Limit<'a> {
    pub stop: &'a Stop,
    pub end: Instant,
}

impl Limit<'_> {
    /// Fails if the call must not wait any longer.
    pub fn check(&self, waiting_for: impl FnOnce() -> String) -> Result<(), Failure> {
        self.stop.check()?;
        if Instant::now() > self.end {
            return Err(Failure::new(
                DDPRUN_TIMEOUT,
                format!("the deadline passed while waiting for {}", waiting_for()),
            ));
        }
        Ok(())
    }
}

/// struct pollfd of <poll.h>. The standard library has no wait for several connections, but it links libc.
#[repr(C)]
pub struct Waiting {
    descriptor: RawFd,
    events: c_short,
    happened: c_short,
}

const POLLIN: c_short = 1;
const POLLOUT: c_short = 4;

extern "C" {
    fn poll(descriptors: *mut Waiting, count: c_ulong, milliseconds: c_int) -> c_int;
}

impl Waiting {
    pub fn new(descriptor: RawFd, to_read: bool, to_write: bool) -> Waiting {
        let events = if to_read { POLLIN } else { 0 } | if to_write { POLLOUT } else { 0 };
        Waiting {
            descriptor,
            events,
            happened: 0,
        }
    }
}

/// Nothing is wrong with the connection: try it again.
pub fn is_for_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// An abort is noticed after this time.
pub const A_MOMENT: Duration = Duration::from_millis(10);

/// Waits a moment, or less if one of the connections is ready. That it was interrupted is no error.
pub fn wait_a_moment(connections: &mut [Waiting]) {
    let count = connections.len() as c_ulong;
    // Safe: poll() writes only `happened` of these `count` structs, and returns before they are gone.
    unsafe {
        poll(
            connections.as_mut_ptr(),
            count,
            A_MOMENT.as_millis() as c_int,
        )
    };
}
