//! Our constants are those of the registry crates that have them.

use pv_steal::riscv::{self, SbiError};
use pv_steal::{arm, xen};
use sbi_spec::binary::SbiRet;

#[test]
fn riscv_is_sbi_spec() {
    assert_eq!(riscv::EXTENSION as usize, sbi_spec::sta::EID_STA);
    assert_eq!(riscv::SET_SHMEM as usize, sbi_spec::sta::SET_SHMEM);
    assert_eq!(riscv::BASE_EXTENSION as usize, sbi_spec::base::EID_BASE);
    assert_eq!(
        riscv::PROBE_EXTENSION as usize,
        sbi_spec::base::PROBE_EXTENSION
    );
    let codes: [(SbiError, SbiRet); 4] = [
        (SbiError::Failed, SbiRet::failed()),
        (SbiError::NotSupported, SbiRet::not_supported()),
        (SbiError::InvalidParam, SbiRet::invalid_param()),
        (SbiError::InvalidAddress, SbiRet::invalid_address()),
    ];
    for (ours, theirs) in codes {
        assert_eq!(ours.code(), theirs.error.cast_signed() as i64, "{ours}");
    }
}

#[test]
fn xen_is_xen_sys() {
    assert_eq!(xen::ASSIST_MARK, xen_sys::VMASST_TYPE_runstate_update_flag);
}

#[test]
fn arm_is_smccc() {
    assert_eq!(arm::ARCH_FEATURES, smccc::arch::SMCCC_ARCH_FEATURES);
}
