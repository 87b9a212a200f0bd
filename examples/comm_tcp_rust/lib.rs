//! tcp_rust: collectives over TCP, in Rust with its standard library only. This file is the boundary to ddprun: the
//! table and the functions in it. Nearly all unsafe code is here. A panic must not cross the boundary, so each function
//! that could panic runs in `guarded`. Replace mesh.rs and join.rs by your transport.
use std::ffi::CString;
use std::mem::size_of;
use std::os::raw::c_char;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[macro_use]
mod boundary;
mod ddprun_abi;
mod join;
mod limit;
mod mesh;
mod reduce;

use boundary::*;
use ddprun_abi::*;
use limit::{Failure, Limit, Stop};
use mesh::Mesh;

/// A communicator; `ddprun_comm` of the header. abort() may come from any thread while a call has the state, so it uses
/// only `stop`. One thread at a time makes calls, so nobody ever waits for the lock of the state.
struct Comm {
    stop: Stop,
    deadline: Duration,
    state: Mutex<State>,
}

struct State {
    mesh: Mesh,
    failed: Option<Failure>, // how an earlier call ended; nothing works after it
    error: CString,
}

impl Comm {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner) // after a panic `failed` is set
    }
}

/// The option `piece`.
unsafe fn piece_of(host: &ddprun_comm_host) -> usize {
    for index in 0..host.option_count as usize {
        let option = &*host.options.add(index);
        if text_of(option.key) == "piece" {
            return size_of_text(&text_of(option.value));
        }
    }
    1 << 20 // the default: ddprun passes only what the config has
}

fn new_comm(host: &ddprun_comm_host) -> Result<Comm, Failure> {
    let deadline = Duration::from_millis(host.deadline_ms.into());
    // Safe: the flag lives as long as the communicator, and an i32 is laid out as an atomic one.
    let flag = unsafe { &*host.abort_flag.cast::<AtomicI32>() };
    let stop = Stop {
        aborted: AtomicBool::new(false),
        host: flag,
    };
    let limit = Limit {
        stop: &stop,
        end: Instant::now() + deadline,
    };
    let gather = |send: &[u8], recv: &mut [u8]| {
        let (from, to) = (send.as_ptr().cast(), recv.as_mut_ptr().cast());
        // Safe: `recv` has room for these bytes of all ranks, as join() has made it.
        match unsafe { (host.allgather)(host.context, from, send.len() as u64, to) } {
            DDPRUN_OK => Ok(()),
            status => Err(Failure::new(
                status,
                "the ranks could not exchange their addresses",
            )),
        }
    };
    // Safe: the texts of the host live as long as this call.
    let (address, piece) = unsafe { (text_of(host.address), piece_of(host)) };
    let address = if address.is_empty() {
        "127.0.0.1"
    } else {
        &address
    };
    let peers = join::join(
        host.rank as usize,
        host.size as usize,
        address,
        &limit,
        &gather,
    )?;
    let mesh = Mesh::new(host.rank as usize, peers, piece)?;
    let state = Mutex::new(State {
        mesh,
        failed: None,
        error: line("no call has failed"),
    });
    Ok(Comm {
        stop,
        deadline,
        state,
    })
}

unsafe extern "C" fn create(
    host: *const ddprun_comm_host,
    out: *mut *mut ddprun_comm,
) -> ddprun_status {
    keep_panics_quiet();
    if ((*host).struct_size as usize) < size_of::<ddprun_comm_host>() {
        return DDPRUN_INVALID; // an older ddprun
    }
    let host = &*host;
    match guarded(|| new_comm(host)) {
        Ok(comm) => {
            *out = Box::into_raw(Box::new(comm)).cast();
            DDPRUN_OK
        }
        Err(failure) => {
            let text = line(&failure.text);
            let bytes = text.as_bytes();
            if host.error_size > 0 {
                let count = bytes.len().min(host.error_size as usize - 1);
                std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), host.error, count);
                *host.error.add(count) = 0;
            }
            failure.status
        }
    }
}

unsafe extern "C" fn destroy(comm: *mut ddprun_comm) {
    let comm = Box::from_raw(comm.cast::<Comm>());
    let _ = guarded(|| {
        drop(comm);
        Ok(())
    });
}

type Call = *const ddprun_collective;
type Out = *mut *mut ddprun_request;

/// What the collectives have in common. A collective has ended when its call returns, so a request has no state: any
/// pointer but null does.
unsafe fn carry_out(
    comm: *mut ddprun_comm,
    out: Out,
    collective: impl FnOnce(&mut Mesh, &Limit) -> Result<(), Failure>,
) -> ddprun_status {
    let request = comm.cast();
    let comm = &*comm.cast::<Comm>();
    let mut state = comm.state();
    let state = &mut *state;
    let result = guarded(|| {
        comm.stop.check()?;
        match &state.failed {
            Some(failure) => Err(failure.clone()),
            None => collective(
                &mut state.mesh,
                &Limit {
                    stop: &comm.stop,
                    end: Instant::now() + comm.deadline,
                },
            ),
        }
    });
    match result {
        Ok(()) => {
            *out = request;
            DDPRUN_OK
        }
        Err(failure) => {
            state.mesh.close();
            state.error = line(&failure.text);
            state.failed.insert(failure).status
        }
    }
}

unsafe extern "C" fn allreduce(comm: *mut ddprun_comm, call: Call, out: Out) -> ddprun_status {
    let call = &*call;
    let bytes = call.count as usize * reduce::width(call.dtype);
    if bytes > 0 && !std::ptr::eq(call.send, call.recv) {
        std::ptr::copy_nonoverlapping(call.send.cast::<u8>(), call.recv.cast(), bytes);
    }
    let data = buffer(call.recv, bytes);
    carry_out(comm, out, |mesh, limit| {
        mesh.allreduce(call.dtype, call.op, data, limit)
    })
}

unsafe extern "C" fn broadcast(comm: *mut ddprun_comm, call: Call, out: Out) -> ddprun_status {
    let call = &*call;
    let data = buffer(call.recv, call.count as usize * reduce::width(call.dtype));
    carry_out(comm, out, |mesh, limit| {
        mesh.broadcast(call.root as usize, data, limit)
    })
}

unsafe extern "C" fn allgather(comm: *mut ddprun_comm, call: Call, out: Out) -> ddprun_status {
    let call = &*call;
    let bytes = call.count as usize * reduce::width(call.dtype);
    carry_out(comm, out, |mesh, limit| {
        if bytes > 0 {
            let own = call.recv.cast::<u8>().add(mesh.rank() * bytes);
            std::ptr::copy(call.send.cast(), own, bytes); // in place, both are the same
        }
        let data = buffer(call.recv, bytes * mesh.size());
        mesh.allgather(data, limit)
    })
}

unsafe extern "C" fn barrier(comm: *mut ddprun_comm, _: Call, out: Out) -> ddprun_status {
    carry_out(comm, out, |mesh, limit| mesh.barrier(limit))
}

unsafe extern "C" fn wait(
    _: *mut ddprun_comm,
    _: *mut ddprun_request,
    _: u32,
    execution: *mut ddprun_comm_execution,
) -> ddprun_status {
    if let Some(execution) = execution.as_mut() {
        execution.algorithm = text!("direct");
        execution.transport = text!("tcp");
    }
    DDPRUN_OK
}

unsafe extern "C" fn abort(comm: *mut ddprun_comm) {
    (*comm.cast::<Comm>())
        .stop
        .aborted
        .store(true, Ordering::Release); // a blocked call looks at it every 10 ms
}

unsafe extern "C" fn last_error(comm: *mut ddprun_comm) -> *const c_char {
    (*comm.cast::<Comm>()).state().error.as_ptr()
}

const ALGORITHMS: &[ddprun_comm_algorithm] = &[ddprun_comm_algorithm {
    struct_size: size_of::<ddprun_comm_algorithm>() as u32,
    dtypes: 1 << DDPRUN_FLOAT32 | 1 << DDPRUN_FLOAT64 | 1 << DDPRUN_INT32 | 1 << DDPRUN_INT64,
    ops: (1 << DDPRUN_OP_COUNT) - 1,
    memory: 0,
    name: text!("direct"),
    canonical_order: 0,
    reserved: 0,
}];

const OPTIONS: &[ddprun_option_spec] = &[ddprun_option_spec {
    struct_size: size_of::<ddprun_option_spec>() as u32,
    r#type: DDPRUN_OPTION_SIZE,
    list: 0,
    open: 0,
    name: text!("piece"),
    meaning: text!("bytes that an allreduce handles at once"),
    default_value: text!("1MiB"),
    least: text!("4KiB"),
    most: text!("64MiB"),
    choices: std::ptr::null(),
}];

/// The one symbol that the library exports.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static ddprun_comm_plugin_v1: ddprun_comm_plugin = ddprun_comm_plugin {
    struct_size: size_of::<ddprun_comm_plugin>() as u32,
    abi: DDPRUN_COMM_ABI,
    name: text!("tcp_rust"),
    version: text!("0.1.0"),
    library: text!(""),
    capabilities: DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING,
    algorithms: ALGORITHMS.as_ptr(),
    algorithm_count: ALGORITHMS.len() as u32,
    reserved: 0,
    create,
    destroy,
    allreduce,
    broadcast,
    allgather,
    barrier,
    wait,
    abort,
    last_error,
    reduce_scatter: None,
    test: None,
    async_error: None,
    alloc: None,
    free: None,
    options: OPTIONS.as_ptr(),
    option_count: OPTIONS.len() as u32,
    reserved_too: 0,
    finish: None,
    exchange: None,
};
