//! `pv-steal`, module by module.

mod kvm_x86;
mod record;

pub fn run() {
    kvm_x86::run();
    record::run();
}
