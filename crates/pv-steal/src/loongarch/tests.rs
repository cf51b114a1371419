use pv_arch::CpuId;
use pv_arch::mock::{Machine, MockArch, What};
use pv_arch::sync::atomic::Ordering::Relaxed;

use super::*;

const ADDR: GuestAddr = GuestAddr::new(0x9000_0fc0);

/// A KVM host with `features`, which knows records only by `feature`.
fn kvm(call: PlatformCall, features: Features, known: u64) -> Reply {
    match call {
        PlatformCall::Cpucfg { word: 0x4000_0000 } => Reply::value(0x004d_564b),
        PlatformCall::Cpucfg { word: 0x4000_0004 } => Reply::value(features.bits().into()),
        PlatformCall::LoongArchHypercall {
            service: 0x100,
            function: 2,
            args,
        } if args[0] == known => match decode(args) {
            Ok(_) => Reply::status(0),
            Err(error) => Reply::status(error.code()),
        },
        _ => Reply::status(HypercallError::InvalidCode.code()),
    }
}

fn notified(machine: &Machine) -> Vec<[u64; 2]> {
    let log = machine.take_log();
    log.iter()
        .filter_map(|event| match event.what {
            What::Called(PlatformCall::LoongArchHypercall { args, .. }) => Some(args),
            _ => None,
        })
        .collect()
}

#[test]
fn registration_passes_the_feature_as_a_bit_and_unregistration_0() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 4));
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    RECORD.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(register::<MockArch>(&RECORD), Ok(Features::STEAL_TIME));
    assert_eq!(notified(&machine), [[4, 0x9000_0fc1]]);
    assert!(!RECORD.is_preempted(), "a stale hint is cleared");
    RECORD.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(unregister::<MockArch>(&RECORD), Ok(()));
    assert_eq!(notified(&machine), [[4, 0]]);
    assert!(!RECORD.is_preempted(), "a stale hint is cleared");
}

#[test]
fn a_host_that_knows_only_the_number_is_told_by_number() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 2));
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    assert!(register::<MockArch>(&RECORD).is_ok());
    assert_eq!(notified(&machine), [[4, 0x9000_0fc1], [2, 0x9000_0fc1]]);
}

#[test]
fn a_host_without_the_feature_does_not_offer_it() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| kvm(call, Features::IPI, 4));
    let _cpu = machine.bind(CpuId::BOOT);
    let refused = Err(RegisterError::NotOffered);
    assert_eq!(register::<MockArch>(&RECORD), refused);
}

#[test]
fn a_refusal_carries_address_and_status() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 99));
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&RECORD),
        Err(RegisterError::Refused {
            addr: ADDR,
            status: -1
        })
    );
}

#[test]
fn a_misaligned_address_is_named() {
    let addr = GuestAddr::new(0x9000_0fe0);
    assert_eq!(
        registration(addr),
        Err(RegisterError::Misaligned { addr, align: 64 })
    );
}

#[test]
fn the_host_takes_bit_and_number_and_refuses_other_bits() {
    assert_eq!(decode([4, 0x9000_0fc1]), Ok(Some(ADDR)));
    assert_eq!(decode([2, 0x9000_0fc1]), Ok(Some(ADDR)));
    assert_eq!(decode([4, 0x9000_0fc0]), Ok(None));
    assert_eq!(decode([8, 0x9000_0fc1]), Err(HypercallError::InvalidCode));
    for bit in 1..6 {
        let data = 0x9000_0fc1 | 1 << bit;
        assert_eq!(decode([4, data]), Err(HypercallError::InvalidParameter));
    }
}

#[test]
fn a_clear_bit_means_running_only_where_the_bit_is_published() {
    let record = StealTime::new();
    let with = Features::STEAL_TIME | Features::PREEMPT;
    assert_eq!(record.preemption_under(with), Preemption::Running);
    let without = Features::STEAL_TIME;
    assert_eq!(record.preemption_under(without), Preemption::Unknown);
    assert_eq!(record.preemption(), Preemption::Unknown);
    record.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(record.preemption(), Preemption::Preempted);
    assert_eq!(record.preemption_under(with), Preemption::Preempted);
}

#[test]
fn only_bit_0_means_preempted() {
    let record = StealTime::new();
    record.preempted.leave(Leave::Preempted, 0xfe);
    assert!(!record.is_preempted());
}

#[test]
fn entering_publishes_steal_and_clears_the_hint() {
    let record = StealTime::new();
    record.leave(Nanos::ZERO, Leave::Preempted);
    record.enter(Nanos::new(9), Nanos::new(8));
    assert_eq!(record.steal(), Ok(Nanos::new(8)));
    assert!(!record.is_preempted());
}

#[test]
fn a_version_that_stays_odd_ends_the_read() {
    let record = StealTime::new();
    record.version.store(3_u32.to_le(), Relaxed);
    assert_eq!(
        record.steal(),
        Err(ReadError::StuckInUpdate {
            version: 3,
            tries: crate::READ_TRIES
        })
    );
}
