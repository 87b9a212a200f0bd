//! The arithmetic. float16 and bfloat16 are missing: Rust has neither type. ddprun refuses what is not declared.
use crate::ddprun_abi::*;

/// The bytes of one element.
pub fn width(dtype: i32) -> usize {
    match dtype {
        DDPRUN_INT8 | DDPRUN_UINT8 => 1,
        DDPRUN_FLOAT16 | DDPRUN_BFLOAT16 | DDPRUN_INT16 => 2,
        DDPRUN_FLOAT32 | DDPRUN_INT32 => 4,
        _ => 8,
    }
}

// Buffers come as bytes. The compiler turns these conversions into plain loads and stores, and the loops into vector
// instructions.
macro_rules! number {
    ($type:ty, $bytes:expr) => {
        <$type>::from_ne_bytes((&*$bytes).try_into().expect("the bytes of one element"))
    };
}

macro_rules! each {
    ($type:ty, $into:expr, $from:expr, |$a:ident, $b:ident| $result:expr) => {{
        const WIDTH: usize = std::mem::size_of::<$type>();
        for (into, from) in $into.chunks_exact_mut(WIDTH).zip($from.chunks_exact(WIDTH)) {
            let ($a, $b) = (number!($type, into), number!($type, from));
            into.copy_from_slice(&<$type>::to_ne_bytes($result));
        }
    }};
}

macro_rules! floats {
    ($type:ty, $op:expr, $into:expr, $from:expr) => {
        match $op {
            DDPRUN_MIN => each!($type, $into, $from, |a, b| a.min(b)),
            DDPRUN_MAX => each!($type, $into, $from, |a, b| a.max(b)),
            DDPRUN_PRODUCT => each!($type, $into, $from, |a, b| a * b),
            _ => each!($type, $into, $from, |a, b| a + b), // a sum or an average
        }
    };
}

macro_rules! integers {
    ($type:ty, $op:expr, $into:expr, $from:expr) => {
        match $op {
            DDPRUN_MIN => each!($type, $into, $from, |a, b| a.min(b)),
            DDPRUN_MAX => each!($type, $into, $from, |a, b| a.max(b)),
            DDPRUN_PRODUCT => each!($type, $into, $from, |a, b| a.wrapping_mul(b)),
            _ => each!($type, $into, $from, |a, b| a.wrapping_add(b)),
        }
    };
}

/// `into` becomes the reduction of `into` and `from`.
pub fn combine(dtype: i32, op: i32, into: &mut [u8], from: &[u8]) {
    match dtype {
        DDPRUN_FLOAT64 => floats!(f64, op, into, from),
        DDPRUN_INT32 => integers!(i32, op, into, from),
        DDPRUN_INT64 => integers!(i64, op, into, from),
        _ => floats!(f32, op, into, from),
    }
}

/// Turns a sum into an average, which only floating types have.
pub fn divide(dtype: i32, numbers: &mut [u8], by: usize) {
    if dtype == DDPRUN_FLOAT64 {
        for bytes in numbers.chunks_exact_mut(8) {
            bytes.copy_from_slice(&(number!(f64, bytes) / by as f64).to_ne_bytes());
        }
    } else {
        for bytes in numbers.chunks_exact_mut(4) {
            bytes.copy_from_slice(&(number!(f32, bytes) / by as f32).to_ne_bytes());
        }
    }
}
