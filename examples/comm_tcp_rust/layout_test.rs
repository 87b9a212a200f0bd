//! ddprun_abi.rs is written by hand. A field of the wrong size, or one that is missing, would move all later ones, and
//! a call would read or write the wrong memory. This test compares every field with version 1 of the ABI.
mod ddprun_abi;

use ddprun_abi::*;
use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

fn bytes_at<T>(_: *const T) -> usize {
    size_of::<T>()
}

/// field(type, name, offset, bytes): the numbers of version 1 of the ABI.
macro_rules! field {
    ($type:ty, $name:ident, $offset:expr, $bytes:expr) => {
        let place = MaybeUninit::<$type>::uninit();
        // No value is read: only the addresses count.
        let field = unsafe { addr_of!((*place.as_ptr()).$name) };
        assert_eq!(
            field as usize - place.as_ptr() as usize,
            $offset,
            stringify!($name)
        );
        assert_eq!(bytes_at(field), $bytes, stringify!($name));
    };
}

#[test]
fn ddprun_option_spec_is_as_in_c() {
    field!(ddprun_option_spec, struct_size, 0, 4);
    field!(ddprun_option_spec, r#type, 4, 4);
    field!(ddprun_option_spec, list, 8, 4);
    field!(ddprun_option_spec, open, 12, 4);
    field!(ddprun_option_spec, name, 16, 8);
    field!(ddprun_option_spec, meaning, 24, 8);
    field!(ddprun_option_spec, default_value, 32, 8);
    field!(ddprun_option_spec, least, 40, 8);
    field!(ddprun_option_spec, most, 48, 8);
    field!(ddprun_option_spec, choices, 56, 8);
}

#[test]
fn ddprun_comm_algorithm_is_as_in_c() {
    field!(ddprun_comm_algorithm, struct_size, 0, 4);
    field!(ddprun_comm_algorithm, dtypes, 4, 4);
    field!(ddprun_comm_algorithm, ops, 8, 4);
    field!(ddprun_comm_algorithm, memory, 12, 4);
    field!(ddprun_comm_algorithm, name, 16, 8);
    field!(ddprun_comm_algorithm, canonical_order, 24, 4);
    field!(ddprun_comm_algorithm, reserved, 28, 4);
}

#[test]
fn ddprun_comm_option_is_as_in_c() {
    field!(ddprun_comm_option, key, 0, 8);
    field!(ddprun_comm_option, value, 8, 8);
}

#[test]
fn ddprun_comm_host_is_as_in_c() {
    field!(ddprun_comm_host, struct_size, 0, 4);
    field!(ddprun_comm_host, rank, 4, 4);
    field!(ddprun_comm_host, size, 8, 4);
    field!(ddprun_comm_host, device, 12, 4);
    field!(ddprun_comm_host, deadline_ms, 16, 4);
    field!(ddprun_comm_host, deterministic, 20, 4);
    field!(ddprun_comm_host, algorithm, 24, 8);
    field!(ddprun_comm_host, options, 32, 8);
    field!(ddprun_comm_host, option_count, 40, 4);
    field!(ddprun_comm_host, error_size, 44, 4);
    field!(ddprun_comm_host, error, 48, 8);
    field!(ddprun_comm_host, context, 56, 8);
    field!(ddprun_comm_host, abort_flag, 64, 8);
    field!(ddprun_comm_host, log, 72, 8);
    field!(ddprun_comm_host, allgather, 80, 8);
    field!(ddprun_comm_host, address, 88, 8);
}

#[test]
fn ddprun_collective_is_as_in_c() {
    field!(ddprun_collective, struct_size, 0, 4);
    field!(ddprun_collective, dtype, 4, 4);
    field!(ddprun_collective, op, 8, 4);
    field!(ddprun_collective, root, 12, 4);
    field!(ddprun_collective, memory, 16, 4);
    field!(ddprun_collective, canonical_order, 20, 4);
    field!(ddprun_collective, send, 24, 8);
    field!(ddprun_collective, recv, 32, 8);
    field!(ddprun_collective, count, 40, 8);
    field!(ddprun_collective, stream, 48, 8);
}

#[test]
fn ddprun_block_is_as_in_c() {
    field!(ddprun_block, data, 0, 8);
    field!(ddprun_block, bytes, 8, 8);
}

#[test]
fn ddprun_exchange_is_as_in_c() {
    field!(ddprun_exchange, struct_size, 0, 4);
    field!(ddprun_exchange, memory, 4, 4);
    field!(ddprun_exchange, send, 8, 8);
    field!(ddprun_exchange, recv, 16, 8);
    field!(ddprun_exchange, stream, 24, 8);
}

#[test]
fn ddprun_comm_execution_is_as_in_c() {
    field!(ddprun_comm_execution, struct_size, 0, 4);
    field!(ddprun_comm_execution, reserved, 4, 4);
    field!(ddprun_comm_execution, algorithm, 8, 8);
    field!(ddprun_comm_execution, transport, 16, 8);
}

#[test]
fn ddprun_comm_plugin_is_as_in_c() {
    field!(ddprun_comm_plugin, struct_size, 0, 4);
    field!(ddprun_comm_plugin, abi, 4, 4);
    field!(ddprun_comm_plugin, name, 8, 8);
    field!(ddprun_comm_plugin, version, 16, 8);
    field!(ddprun_comm_plugin, library, 24, 8);
    field!(ddprun_comm_plugin, capabilities, 32, 8);
    field!(ddprun_comm_plugin, algorithms, 40, 8);
    field!(ddprun_comm_plugin, algorithm_count, 48, 4);
    field!(ddprun_comm_plugin, reserved, 52, 4);
    field!(ddprun_comm_plugin, create, 56, 8);
    field!(ddprun_comm_plugin, destroy, 64, 8);
    field!(ddprun_comm_plugin, allreduce, 72, 8);
    field!(ddprun_comm_plugin, broadcast, 80, 8);
    field!(ddprun_comm_plugin, allgather, 88, 8);
    field!(ddprun_comm_plugin, barrier, 96, 8);
    field!(ddprun_comm_plugin, wait, 104, 8);
    field!(ddprun_comm_plugin, abort, 112, 8);
    field!(ddprun_comm_plugin, last_error, 120, 8);
    field!(ddprun_comm_plugin, reduce_scatter, 128, 8);
    field!(ddprun_comm_plugin, test, 136, 8);
    field!(ddprun_comm_plugin, async_error, 144, 8);
    field!(ddprun_comm_plugin, alloc, 152, 8);
    field!(ddprun_comm_plugin, free, 160, 8);
    field!(ddprun_comm_plugin, options, 168, 8);
    field!(ddprun_comm_plugin, option_count, 176, 4);
    field!(ddprun_comm_plugin, reserved_too, 180, 4);
    field!(ddprun_comm_plugin, finish, 184, 8);
    field!(ddprun_comm_plugin, exchange, 192, 8);
}
