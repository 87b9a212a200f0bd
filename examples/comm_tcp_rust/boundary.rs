//! What crosses the boundary to ddprun: failures, texts and buffers.
use crate::ddprun_abi::*;
use crate::limit::Failure;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// What the panic hook has heard last in this thread. The default hook would print it.
    static PANIC: RefCell<String> = RefCell::new(String::new());
}

/// This hook is that of this library: another one in the process has its own.
pub fn keep_panics_quiet() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            PANIC.with(|text| *text.borrow_mut() = info.to_string());
        }));
    });
}

/// Calls the function. A panic, which is an error in this library, becomes a failure with its text.
pub fn guarded<T>(function: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|_| {
        let text = PANIC.with(|text| text.borrow().clone());
        Err(Failure::new(DDPRUN_INTERNAL, text))
    })
}

/// A text for the host: one line, without control characters.
pub fn line(text: &str) -> CString {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    CString::new(text).unwrap_or_default()
}

/// A constant text for the host.
macro_rules! text {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const c_char
    };
}

/// A text of the host, which may be null.
pub unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// A buffer of the host. Its pointer may be null if there are no bytes, which Rust does not allow.
pub unsafe fn buffer<'a>(start: *mut c_void, bytes: usize) -> &'a mut [u8] {
    if bytes == 0 {
        return &mut [];
    }
    std::slice::from_raw_parts_mut(start.cast(), bytes)
}

/// "64KiB" in bytes. ddprun has checked that it is a size, and within its range.
pub fn size_of_text(text: &str) -> usize {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => 1,
    };
    digits.parse().map_or(1, |number: usize| number * unit)
}
