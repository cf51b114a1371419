//! `pv-steal`, module by module.

mod account;
#[cfg(target_has_atomic = "64")]
mod arm;
mod belief;
mod clock;
mod estimate;
mod fault;
mod kvm_x86;
mod loongarch;
mod platform;
#[cfg(target_has_atomic = "64")]
mod power;
mod record;
mod riscv;
#[cfg(target_has_atomic = "64")]
mod s390;
mod xen;

pub fn run() {
    account::run();
    belief::run();
    clock::run();
    estimate::run();
    fault::run();
    kvm_x86::run();
    loongarch::run();
    platform::run();
    record::run();
    riscv::run();
    xen::run();
    #[cfg(target_has_atomic = "64")]
    {
        arm::run();
        power::run();
        s390::run();
    }
}
