//! The functions of the header. Each checks its pointers, turns every error into text for `aqm_error`, and
//! catches panics: none of them crosses into C.
#![expect(unsafe_code, reason = "this file is the border to C: pointers come from there")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use aqm::Cause;

use crate::queue::{self, Packet, Queue, Stats, Verdict};

/// The call failed; `aqm_error` says why.
pub const ERROR: c_int = -1;
/// The packet is in the queue.
pub const ADMITTED: c_int = 0;
/// The packet is in the queue, marked CE.
pub const MARKED: c_int = 1;
/// The packet was dropped.
pub const DROPPED: c_int = 2;
/// Dropped or marked because there was no room.
pub const OVERFLOW: c_int = 1 + Cause::Overflow as c_int;
/// Dropped or marked by the algorithm, before the buffer was full.
pub const EARLY: c_int = 1 + Cause::Early as c_int;
/// Dropped or marked because its flow ignores congestion.
pub const PENALTY: c_int = 1 + Cause::Penalty as c_int;
/// Dropped or marked by a rate limit on all that arrives.
pub const POLICED: c_int = 1 + Cause::Policed as c_int;

thread_local! {
    static ERROR_TEXT: RefCell<CString> = RefCell::default();
}

/// What `act` gives; for an error or a panic `otherwise`, with its text kept for `aqm_error`.
pub fn guarded<T>(otherwise: T, act: impl FnOnce() -> Result<T, String>) -> T {
    let defect = |_: Box<dyn Any + Send>| {
        Err("a defect of the library: it panicked; please report it".to_owned())
    };
    let result = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(defect);
    result.unwrap_or_else(|text| {
        let text = CString::new(text).unwrap_or_default();
        // A thread that ends keeps no text any more.
        let _ = ERROR_TEXT.try_with(|kept| kept.replace(text));
        otherwise
    })
}

fn null(what: &str) -> String {
    format!("{what} = NULL: not allowed; allowed: a pointer")
}

/// # Safety
/// `text` is null or a text that ends with 0.
unsafe fn read<'a>(what: &str, text: *const c_char) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| format!("{what}: not allowed; allowed: text in UTF-8"))
}

/// # Safety
/// `queue` is null or from `aqm_new`, was not freed, and no other call uses it.
unsafe fn queue_mut<'a>(queue: *mut Queue) -> Result<&'a mut Queue, String> {
    // SAFETY: the caller promises it.
    unsafe { queue.as_mut() }.ok_or_else(|| null("queue"))
}

/// # Safety
/// `queue` is null or from `aqm_new`, was not freed, and no other call changes it.
unsafe fn queue_ref<'a>(queue: *const Queue) -> Result<&'a Queue, String> {
    // SAFETY: the caller promises it.
    unsafe { queue.as_ref() }.ok_or_else(|| null("queue"))
}

/// # Safety
/// The texts are null or end with 0.
// SAFETY: no other library of the program may have a function of this name; that holds for all below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_new(
    discipline: *const c_char,
    parameters: *const c_char,
    link: *const c_char,
    seed: u64,
    now: u64,
) -> *mut Queue {
    guarded(null_mut(), || {
        // SAFETY: the caller promises it.
        let (discipline, link) = unsafe { (read("discipline", discipline)?, read("link", link)?) };
        let parameters = match parameters.is_null() {
            true => "",
            // SAFETY: as above.
            false => unsafe { read("parameters", parameters)? },
        };
        Queue::new(discipline, parameters, link, seed, now)
            .map(|queue| Box::into_raw(Box::new(queue)))
    })
}

/// # Safety
/// `queue` is null or from `aqm_new`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_free(queue: *mut Queue) {
    guarded((), || {
        if !queue.is_null() {
            // SAFETY: it came from `Box::into_raw` in `aqm_new`, and the caller gives it up.
            drop(unsafe { Box::from_raw(queue) });
        }
        Ok(())
    });
}

/// # Safety
/// As [`aqm_free`]; `packet` is null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_enqueue(queue: *mut Queue, packet: *const Packet, now: u64) -> c_int {
    guarded(ERROR, || {
        // SAFETY: the caller promises it.
        let (queue, packet) = unsafe { (queue_mut(queue)?, packet.as_ref()) };
        Ok(match queue.enqueue(packet.ok_or_else(|| null("packet"))?, now)? {
            Verdict::Admitted => ADMITTED,
            Verdict::Marked => MARKED,
            Verdict::Dropped => DROPPED,
        })
    })
}

/// # Safety
/// As [`aqm_free`]; `packet` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_dequeue(queue: *mut Queue, now: u64, packet: *mut Packet) -> c_int {
    guarded(ERROR, || {
        if packet.is_null() {
            return Err(null("packet"));
        }
        // SAFETY: the caller promises it.
        let queue = unsafe { queue_mut(queue)? };
        let Some(sent) = queue.dequeue(now)? else { return Ok(0) };
        // SAFETY: it is not null, and the caller promises the rest.
        unsafe { packet.write(sent) };
        Ok(1)
    })
}

/// # Safety
/// As [`aqm_free`]; `packet` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_next_dropped(queue: *mut Queue, packet: *mut Packet) -> c_int {
    guarded(ERROR, || {
        if packet.is_null() {
            return Err(null("packet"));
        }
        // SAFETY: the caller promises it.
        let queue = unsafe { queue_mut(queue)? };
        let Some((dropped, cause)) = queue.next_dropped() else { return Ok(0) };
        // SAFETY: it is not null, and the caller promises the rest.
        unsafe { packet.write(dropped) };
        Ok(1 + cause as c_int)
    })
}

/// # Safety
/// As [`aqm_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_wake_at(queue: *const Queue) -> u64 {
    // SAFETY: the caller promises it.
    guarded(u64::MAX, || Ok(unsafe { queue_ref(queue)? }.wake_at()))
}

/// # Safety
/// As [`aqm_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_wake(queue: *mut Queue, now: u64) -> c_int {
    // SAFETY: the caller promises it.
    guarded(ERROR, || unsafe { queue_mut(queue)? }.wake(now).map(|()| 0))
}

/// # Safety
/// As [`aqm_free`]; `rate` is null or a text that ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_set_rate(queue: *mut Queue, rate: *const c_char, now: u64) -> c_int {
    guarded(ERROR, || {
        // SAFETY: the caller promises it.
        let (queue, rate) = unsafe { (queue_mut(queue)?, read("rate", rate)?) };
        queue.set_rate(rate, now).map(|()| 0)
    })
}

/// # Safety
/// As [`aqm_free`]; `stats` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_read_stats(queue: *const Queue, stats: *mut Stats) -> c_int {
    guarded(ERROR, || {
        if stats.is_null() {
            return Err(null("stats"));
        }
        // SAFETY: it is not null, and the caller promises the rest.
        unsafe { stats.write(queue_ref(queue)?.stats()) };
        Ok(0)
    })
}

/// # Safety
/// As [`aqm_free`]; `len` bytes can be read at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aqm_flow_hash(
    queue: *const Queue,
    bytes: *const c_void,
    len: usize,
) -> u32 {
    guarded(0, || {
        if bytes.is_null() {
            return Err(null("bytes"));
        }
        // SAFETY: it is not null, and the caller promises the rest.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) };
        // SAFETY: the caller promises it.
        Ok(unsafe { queue_ref(queue)? }.flow_hash(bytes))
    })
}

/// The key of a flow with a codepoint and hosts.
// SAFETY: see `aqm_new`.
#[unsafe(no_mangle)]
pub extern "C" fn aqm_flow_key(flow: u32, dscp: u8, host: u16, peer: u16) -> u64 {
    queue::flow_key(flow, dscp, host, peer)
}

/// The text of the last error in this thread.
// SAFETY: see `aqm_new`.
#[unsafe(no_mangle)]
pub extern "C" fn aqm_error() -> *const c_char {
    ERROR_TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
