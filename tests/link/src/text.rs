//! Links the formatting of every type that an error message is made of.
//!
//! A binary of its own: `core::fmt` contains panics, and the other one must
//! not. This one is checked for undefined symbols, `std` and `alloc` only.

#![cfg_attr(pv_freestanding, no_std, no_main)]

#[cfg(pv_freestanding)]
mod runtime;

use core::fmt::{self, Write};
use core::hint::black_box;

use pv_arch::{CpuCount, CpuId, CpuOutOfRange, GuestAddr, Nanos};
use pv_steal::loongarch::HypercallError;
use pv_steal::riscv::SbiError;
use pv_steal::{ClockFault, Platform, ReadError, RegisterError, UnknownPlatform};

/// A kernel's console.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        black_box(text);
        Ok(())
    }
}

fn show(what: &(impl fmt::Display + fmt::Debug)) {
    // A console that cannot fail.
    let _ = writeln!(Console, "{} {:?}", black_box(what), what);
}

fn report(what: &(impl core::error::Error + 'static)) {
    black_box(what.source().is_some());
    show(what);
}

fn every_text() {
    show(&CpuId::new(black_box(3)));
    show(&Nanos::new(black_box(5)));
    show(&GuestAddr::new(black_box(0x40)));
    black_box(write!(Console, "{:?}", black_box(CpuCount::ONE)).is_ok());
    report(&CpuOutOfRange {
        number: black_box(9),
        count: black_box(2),
    });
    for error in black_box([
        ReadError::StuckInUpdate {
            version: 1,
            tries: 2,
        },
        ReadError::KeepsChanging {
            version: 2,
            tries: 2,
        },
    ]) {
        report(&error);
    }
    for error in black_box([
        RegisterError::NotOffered,
        RegisterError::NotMapped { len: 64 },
    ]) {
        report(&error);
    }
    report(&black_box(ClockFault::Overran {
        dropped: Nanos::new(7),
    }));
    report(&black_box(SbiError::Failed));
    report(&black_box(HypercallError::InvalidCode));
    show(&black_box(Platform::Xen));
    report(&UnknownPlatform { len: black_box(3) });
}

#[cfg(pv_freestanding)]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    every_text();
    runtime::stop()
}

#[cfg(not(pv_freestanding))]
fn main() {
    every_text();
    println!(
        "every text was written on the host; `cargo xtask link` checks the freestanding build"
    );
}
