//! Where no header can be had, the specification's own table is the source.

use conformance::wrong_by_table;
use pv_arch::{CpuId, GuestAddr, PlatformCall};
use pv_steal::{arm, loongarch, power, riscv, s390};

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// "RISC-V Supervisor Binary Interface Specification" 2.0, chapter 16, table
/// "STA Shared Memory Structure".
#[test]
fn riscv_is_sbi_2_0_chapter_16() {
    assert_none(&wrong_by_table::<riscv::StealTime>(
        &[
            ("sequence", 0, 4),
            ("flags", 4, 4),
            ("steal", 8, 8),
            ("preempted", 16, 1),
            ("pad", 17, 47),
        ],
        64,
    ));
    assert_eq!(riscv::EXTENSION, 0x53_5441);
    assert_eq!(riscv::SET_SHMEM, 0);
    assert_eq!(riscv::DISABLE, u64::MAX);
}

/// Arm DEN0057A, section "Stolen time", by way of the Linux document
/// "Paravirtualized time support for arm64"; 16 bytes are
/// specified, and the padding follows from the alignment of 64 that KVM asks
/// for (Linux document "Generic vcpu interface", `KVM_ARM_VCPU_PVTIME_IPA`).
#[test]
fn arm_is_den0057a_stolen_time() {
    assert_none(&wrong_by_table::<arm::StolenTime>(
        &[
            ("revision", 0, 4),
            ("attributes", 4, 4),
            ("stolen", 8, 8),
            ("pad", 16, 48),
        ],
        64,
    ));
    assert_eq!(arm::PV_TIME_FEATURES, 0xC500_0020);
    assert_eq!(arm::PV_TIME_ST, 0xC500_0021);
    assert_eq!((arm::SUCCESS, arm::NOT_SUPPORTED), (0, -1));
}

/// "Linux on Power Architecture Reference", table "Per Virtual Processor Area",
/// with reserved ranges and those of no interest here joined; 640 bytes are
/// architected, the rest is room.
#[test]
fn power_is_lopar_per_virtual_processor_area() {
    assert_none(&wrong_by_table::<power::VirtualProcessorArea>(
        &[
            ("descriptor", 0x00, 4),
            ("size", 0x04, 2),
            ("reserved", 0x06, 0xf8),
            ("idle", 0xFE, 1),
            ("maintain_vmx", 0xFF, 1),
            ("dispatch_counter", 0x100, 4),
            ("dispatch_dispersion", 0x104, 4),
            ("fault_counter", 0x108, 8),
            ("fault_time", 0x110, 8),
            ("purr_spurr", 0x118, 0x40),
            ("wait_processor", 0x158, 8),
            ("wait_capacity", 0x160, 8),
            ("wait_ready", 0x168, 8),
            ("reserved2", 0x170, 0xa8),
            ("trace_log_index", 0x218, 8),
            ("reserved3", 0x220, 96),
            ("beyond", 640, 384),
        ],
        1024,
    ));
    assert_eq!(power::MIN_SIZE, 640);
    assert_eq!(power::DESCRIPTOR, 0xD397_D781);
}

/// "Linux on Power Architecture Reference", section "`H_REGISTER_VPA`": the
/// sub-function is in bits 16 to 18, counted from the most significant of 64.
#[test]
fn power_flags_are_lopar_h_register_vpa() {
    let sub_function = |number: u64| number << (63 - 18);
    assert_eq!(power::REGISTER_VPA, sub_function(0b001));
    assert_eq!(power::DEREGISTER_VPA, sub_function(0b101));
    assert_eq!(power::H_REGISTER_VPA, 0xDC);
}

/// Linux `arch/loongarch/include/asm/kvm_para.h` and
/// `arch/loongarch/include/uapi/asm/kvm_para.h`, which no Debian package of
/// this release has.
#[test]
fn loongarch_is_its_kvm_para_h() {
    assert_none(&wrong_by_table::<loongarch::StealTime>(
        &[
            ("steal", 0, 8),
            ("version", 8, 4),
            ("flags", 12, 4),
            ("preempted", 16, 1),
            ("pad", 17, 47),
        ],
        64,
    ));
    assert_eq!(loongarch::CPUCFG_SIGNATURE, 0x4000_0000);
    assert_eq!(loongarch::CPUCFG_FEATURES, 0x4000_0000 + 4);
    assert_eq!(loongarch::SIGNATURE.to_le_bytes(), *b"KVM\0");
    assert_eq!(loongarch::Features::IPI.bits(), 1 << 1);
    assert_eq!(loongarch::Features::STEAL_TIME.bits(), 1 << 2);
    assert_eq!(loongarch::Features::PREEMPT.bits(), 1 << 3);
    assert_eq!(loongarch::PreemptedFlags::PREEMPTED.bits(), 1);
    // Vendor 1 (KVM) shifted by 8, code 0 (service); function 2 (notify).
    assert_eq!(
        loongarch::registration(GuestAddr::new(0x40)),
        Ok(PlatformCall::LoongArchHypercall {
            service: 1 << 8,
            function: 2,
            args: [1 << 2, 0x41]
        })
    );
    // Bits 63 to 6 are the address.
    assert_eq!(loongarch::PHYS_MASK, 0xffff_ffff_ffff_ffc0);
    assert_eq!(loongarch::PHYS_VALID, 1);
}

/// Linux `arch/s390/include/asm/sigp.h`, whose names are those of
/// "z/Architecture Principles of Operation"; that book was not at hand.
#[test]
fn s390_is_its_sigp_h() {
    assert_eq!(s390::SENSE_RUNNING, 21);
    assert_eq!((s390::CC_ACCEPTED, s390::CC_STATUS_STORED), (0, 1));
    assert_eq!(s390::SigpStatus::INVALID_ORDER.bits(), 0x0000_0002);
    assert_eq!(s390::SigpStatus::NOT_RUNNING.bits(), 0x0000_0400);
    assert_eq!(
        s390::sense(CpuId::new(3)),
        PlatformCall::Sigp {
            order: 0x15,
            cpu: CpuId::new(3)
        }
    );
}
