use pv_arch::CpuId;
use pv_arch::mock::{Machine, MockArch};

use super::*;

static RECORD: StealTime = StealTime::new();
const ADDR: GuestAddr = GuestAddr::new(0x7f40);

/// A KVM host whose interface comes second, as under Hyper-V emulation.
fn kvm(call: PlatformCall) -> Reply {
    let regs = |values: [u32; 4]| Reply {
        status: 0,
        values: values.map(u64::from),
    };
    match call {
        PlatformCall::Cpuid { leaf: 0x4000_0100 } => {
            regs([0x4000_0101, SIGNATURE[0], SIGNATURE[1], SIGNATURE[2]])
        }
        PlatformCall::Cpuid { leaf: 0x4000_0101 } => regs([Features::STEAL_TIME.bits(), 0, 0, 1]),
        PlatformCall::Cpuid { .. } => regs([0; 4]),
        PlatformCall::WriteMsr {
            index: MSR_STEAL_TIME,
            value,
        } => match decode_msr(value) {
            Ok(_) => Reply::status(0),
            Err(_) => Reply::REFUSED,
        },
        _ => Reply::REFUSED,
    }
}

fn machine() -> std::sync::Arc<Machine> {
    let machine = Machine::new(1);
    machine.on_call(|_, call| kvm(call));
    machine
}

#[test]
fn registration_writes_the_physical_address_and_bit_0() {
    let machine = machine();
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(register::<MockArch>(&RECORD), Ok(()));
    let wrote = pv_arch::mock::What::Called(PlatformCall::WriteMsr {
        index: 0x4b56_4d03,
        value: 0x7f41,
    });
    assert!(machine.log().iter().any(|event| event.what == wrote));
    assert_eq!(unregister::<MockArch>(&RECORD), Ok(()));
}

#[test]
fn a_record_that_is_not_mapped_is_refused_before_the_host_sees_it() {
    let machine = machine();
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&RECORD),
        Err(RegisterError::NotMapped { len: 64 })
    );
}

#[test]
fn a_host_without_the_feature_does_not_offer_it() {
    let machine = Machine::new(1);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&RECORD),
        Err(RegisterError::NotOffered)
    );
}

#[test]
fn a_misaligned_address_is_named() {
    let addr = GuestAddr::new(0x7f20);
    let error = RegisterError::Misaligned { addr, align: 64 };
    assert_eq!(registration(addr), Err(error));
    assert_eq!(decode_msr(0x7f20 | MSR_ENABLE), Err(error));
}

#[test]
fn reserved_bits_are_a_fault_and_a_clear_bit_0_switches_off() {
    for bit in 1..=5 {
        assert!(decode_msr(0x7f40 | MSR_ENABLE | 1 << bit).is_err());
    }
    assert_eq!(decode_msr(0x7f40), Ok(None));
    assert_eq!(decode_msr(0x7f41), Ok(Some(ADDR)));
}

#[test]
fn a_flush_can_be_left_with_a_preempted_vcpu_only() {
    let record = StealTime::new();
    assert_eq!(record.request_flush(), FlushRequest::NotPreempted);
    record.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(record.request_flush(), FlushRequest::Queued);
    assert_eq!(record.request_flush(), FlushRequest::Queued);
    assert_eq!(
        record.take_requests(),
        PreemptedFlags::PREEMPTED | PreemptedFlags::FLUSH_TLB
    );
    assert!(!record.is_preempted());
}

#[test]
fn a_flush_request_alone_is_not_preempted() {
    let record = StealTime::new();
    record
        .preempted
        .store(PreemptedFlags::FLUSH_TLB.bits(), set_preempted());
    assert!(!record.is_preempted());
}

#[test]
fn a_halted_vcpu_is_preempted_on_old_hosts_only() {
    let record = StealTime::new();
    record.leave(Nanos::ZERO, Leave::Halted);
    assert!(!record.is_preempted());
    record.leave(Nanos::ZERO, Leave::HaltedMarkedPreempted);
    assert!(record.is_preempted());
}
