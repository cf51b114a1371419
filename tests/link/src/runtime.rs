//! What a kernel brings to the link: a panic handler and the memory functions
//! that compilers call without being asked.
//!
//! Accesses are volatile so that none of these becomes a call to itself.

use core::hint::black_box;
use core::panic::PanicInfo;

#[cfg(pv_seed_missing)]
unsafe extern "C" {
    safe fn pv_seeded_missing_symbol();
}

/// The end of the program.
pub fn stop() -> ! {
    #[cfg(pv_seed_missing)]
    pv_seeded_missing_symbol();
    loop {
        black_box(());
    }
}

/// In the binary that must not panic, the linker drops this: nothing calls it.
#[panic_handler]
#[inline(never)]
fn panic(info: &PanicInfo<'_>) -> ! {
    black_box(info);
    stop()
}

/// Named by the unwind tables of the prebuilt core library; never called, since
/// this profile aborts.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// # Safety
/// `to` and `from` are valid for `len` bytes and do not overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: `at` is below `len`, for which the caller vouches.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
    to
}

/// # Safety
/// `to` and `from` are valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    let backwards = from.addr() < to.addr();
    for step in 0..len {
        let at = if backwards { len - 1 - step } else { step };
        // SAFETY: `at` is below `len`, for which the caller vouches; the
        // direction reads each byte before it is overwritten.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
    to
}

/// # Safety
/// `to` is valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: `at` is below `len`, for which the caller vouches.
        unsafe { to.add(at).write_volatile(value.to_le_bytes()[0]) };
    }
    to
}

/// # Safety
/// `a` and `b` are valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: `at` is below `len`, for which the caller vouches.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// # Safety
/// `a` and `b` are valid for `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the same obligation.
    unsafe { memcmp(a, b, len) }
}

/// # Safety
/// `text` points to bytes that end with a 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the bytes up to the 0 are readable, as the caller says.
    while unsafe { text.add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
