//! ddprun/plugin/comm_plugin.h and option_spec.h in Rust. Names and order are those of the headers, which say what each
//! thing means. The compiler checks the sizes, and layout_test.rs checks every offset.
#![allow(dead_code, non_camel_case_types)]
use std::mem::size_of;
use std::os::raw::{c_char, c_void};

pub const DDPRUN_COMM_ABI: u32 = 1;

pub type ddprun_status = i32;
pub const DDPRUN_OK: ddprun_status = 0;
pub const DDPRUN_INVALID: ddprun_status = 1;
pub const DDPRUN_UNSUPPORTED: ddprun_status = 2;
pub const DDPRUN_TIMEOUT: ddprun_status = 3;
pub const DDPRUN_PEER_LOST: ddprun_status = 4;
pub const DDPRUN_ABORTED: ddprun_status = 5;
pub const DDPRUN_MISMATCH: ddprun_status = 6;
pub const DDPRUN_NO_MEMORY: ddprun_status = 7;
pub const DDPRUN_INTERNAL: ddprun_status = 8;

pub const DDPRUN_FLOAT16: i32 = 0;
pub const DDPRUN_BFLOAT16: i32 = 1;
pub const DDPRUN_FLOAT32: i32 = 2;
pub const DDPRUN_FLOAT64: i32 = 3;
pub const DDPRUN_INT8: i32 = 4;
pub const DDPRUN_INT16: i32 = 5;
pub const DDPRUN_INT32: i32 = 6;
pub const DDPRUN_INT64: i32 = 7;
pub const DDPRUN_UINT8: i32 = 8;
pub const DDPRUN_DTYPE_COUNT: i32 = 9;

pub const DDPRUN_SUM: i32 = 0;
pub const DDPRUN_MIN: i32 = 1;
pub const DDPRUN_MAX: i32 = 2;
pub const DDPRUN_PRODUCT: i32 = 3;
pub const DDPRUN_AVG: i32 = 4;
pub const DDPRUN_OP_COUNT: i32 = 5;

pub const DDPRUN_HOST: i32 = 0;
pub const DDPRUN_CUDA: i32 = 1;
pub const DDPRUN_FROM_ALLOC: i32 = 2;

pub const DDPRUN_CAP_HOST: u64 = 1 << 0;
pub const DDPRUN_CAP_CUDA: u64 = 1 << 1;
pub const DDPRUN_CAP_BLOCKING: u64 = 1 << 2;
pub const DDPRUN_CAP_STREAM_ORDERED: u64 = 1 << 3;
pub const DDPRUN_CAP_ALLOC: u64 = 1 << 4;
pub const DDPRUN_CAP_REDUCE_SCATTER: u64 = 1 << 5;
pub const DDPRUN_CAP_EXCHANGE: u64 = 1 << 6;

pub const DDPRUN_LOG_DEBUG: i32 = 0;
pub const DDPRUN_LOG_INFO: i32 = 1;
pub const DDPRUN_LOG_WARNING: i32 = 2;
pub const DDPRUN_LOG_ERROR: i32 = 3;

pub const DDPRUN_OPTION_TEXT: i32 = 0;
pub const DDPRUN_OPTION_CHOICE: i32 = 1;
pub const DDPRUN_OPTION_INTEGER: i32 = 2;
pub const DDPRUN_OPTION_REAL: i32 = 3;
pub const DDPRUN_OPTION_FLAG: i32 = 4;
pub const DDPRUN_OPTION_DURATION: i32 = 5;
pub const DDPRUN_OPTION_SIZE: i32 = 6;
pub const DDPRUN_OPTION_NAME: i32 = 7;
pub const DDPRUN_OPTION_PART: i32 = 8;
pub const DDPRUN_OPTION_TYPE_COUNT: i32 = 9;

pub const DDPRUN_OPTION_ABOVE_LEAST: u32 = 1;
pub const DDPRUN_OPTION_BELOW_MOST: u32 = 2;

#[repr(C)]
pub struct ddprun_option_spec {
    pub struct_size: u32,
    pub r#type: i32,
    pub list: i32,
    pub open: u32,
    pub name: *const c_char,
    pub meaning: *const c_char,
    pub default_value: *const c_char,
    pub least: *const c_char,
    pub most: *const c_char,
    pub choices: *const c_char,
}

#[repr(C)]
pub struct ddprun_comm_algorithm {
    pub struct_size: u32,
    pub dtypes: u32,
    pub ops: u32,
    pub memory: u32,
    pub name: *const c_char,
    pub canonical_order: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct ddprun_comm_option {
    pub key: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
pub struct ddprun_comm_host {
    pub struct_size: u32,
    pub rank: i32,
    pub size: i32,
    pub device: i32,
    pub deadline_ms: u32,
    pub deterministic: i32,
    pub algorithm: *const c_char,
    pub options: *const ddprun_comm_option,
    pub option_count: u32,
    pub error_size: u32,
    pub error: *mut c_char,
    pub context: *mut c_void,
    pub abort_flag: *const i32,
    pub log: unsafe extern "C" fn(context: *mut c_void, level: i32, message: *const c_char),
    pub allgather: unsafe extern "C" fn(
        context: *mut c_void,
        send: *const c_void,
        bytes: u64,
        recv: *mut c_void,
    ) -> ddprun_status,
    pub address: *const c_char,
}

#[repr(C)]
pub struct ddprun_collective {
    pub struct_size: u32,
    pub dtype: i32,
    pub op: i32,
    pub root: i32,
    pub memory: i32,
    pub canonical_order: i32,
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub count: u64,
    pub stream: *mut c_void,
}

#[repr(C)]
pub struct ddprun_block {
    pub data: *mut c_void,
    pub bytes: u64,
}

#[repr(C)]
pub struct ddprun_exchange {
    pub struct_size: u32,
    pub memory: i32,
    pub send: *const ddprun_block,
    pub recv: *const ddprun_block,
    pub stream: *mut c_void,
}

#[repr(C)]
pub struct ddprun_comm_execution {
    pub struct_size: u32,
    pub reserved: u32,
    pub algorithm: *const c_char,
    pub transport: *const c_char,
}

/// The plugin's own: only pointers to them cross the boundary.
pub enum ddprun_comm {}
pub enum ddprun_request {}

pub type ddprun_collective_fn = unsafe extern "C" fn(
    *mut ddprun_comm,
    *const ddprun_collective,
    *mut *mut ddprun_request,
) -> ddprun_status;

/// `None` is a null pointer: the functions that may be null are an `Option`.
#[repr(C)]
pub struct ddprun_comm_plugin {
    pub struct_size: u32,
    pub abi: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub library: *const c_char,
    pub capabilities: u64,
    pub algorithms: *const ddprun_comm_algorithm,
    pub algorithm_count: u32,
    pub reserved: u32,
    pub create:
        unsafe extern "C" fn(*const ddprun_comm_host, *mut *mut ddprun_comm) -> ddprun_status,
    pub destroy: unsafe extern "C" fn(*mut ddprun_comm),
    pub allreduce: ddprun_collective_fn,
    pub broadcast: ddprun_collective_fn,
    pub allgather: ddprun_collective_fn,
    pub barrier: ddprun_collective_fn,
    pub wait: unsafe extern "C" fn(
        *mut ddprun_comm,
        *mut ddprun_request,
        timeout_ms: u32,
        *mut ddprun_comm_execution,
    ) -> ddprun_status,
    pub abort: unsafe extern "C" fn(*mut ddprun_comm),
    pub last_error: unsafe extern "C" fn(*mut ddprun_comm) -> *const c_char,
    pub reduce_scatter: Option<ddprun_collective_fn>,
    pub test: Option<
        unsafe extern "C" fn(
            *mut ddprun_comm,
            *mut ddprun_request,
            done: *mut i32,
        ) -> ddprun_status,
    >,
    pub async_error: Option<unsafe extern "C" fn(*mut ddprun_comm) -> ddprun_status>,
    pub alloc: Option<
        unsafe extern "C" fn(*mut ddprun_comm, bytes: u64, *mut *mut c_void) -> ddprun_status,
    >,
    pub free: Option<unsafe extern "C" fn(*mut ddprun_comm, memory: *mut c_void)>,
    pub options: *const ddprun_option_spec,
    pub option_count: u32,
    pub reserved_too: u32,
    pub finish: Option<unsafe extern "C" fn()>,
    pub exchange: Option<
        unsafe extern "C" fn(
            *mut ddprun_comm,
            *const ddprun_exchange,
            *mut *mut ddprun_request,
        ) -> ddprun_status,
    >,
}

// The table is a constant, and its pointers lead to constants only, so threads can share it.
unsafe impl Sync for ddprun_comm_plugin {}

const _: () = assert!(size_of::<ddprun_option_spec>() == 64);
const _: () = assert!(size_of::<ddprun_comm_algorithm>() == 32);
const _: () = assert!(size_of::<ddprun_comm_option>() == 16);
const _: () = assert!(size_of::<ddprun_comm_host>() == 96);
const _: () = assert!(size_of::<ddprun_collective>() == 56);
const _: () = assert!(size_of::<ddprun_block>() == 16);
const _: () = assert!(size_of::<ddprun_exchange>() == 32);
const _: () = assert!(size_of::<ddprun_comm_execution>() == 24);
const _: () = assert!(size_of::<ddprun_comm_plugin>() == 200);
