//! `pv-arch`, module by module.

mod addr;
mod arch;
mod call;
mod cpu;
mod sync;
mod time;

pub fn run() {
    addr::run();
    arch::run();
    call::run();
    cpu::run();
    sync::run();
    time::run();
}
