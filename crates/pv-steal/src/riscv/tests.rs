use pv_arch::CpuId;
use pv_arch::mock::{Machine, MockArch, What};
use pv_arch::sync::atomic::Ordering::Relaxed;

use super::*;

const ADDR: GuestAddr = GuestAddr::new(0x8020_0fc0);

fn sbi(call: PlatformCall) -> Reply {
    match call {
        PlatformCall::Sbi {
            extension: 0x10,
            function: 3,
            args: [0x53_5441, ..],
        } => Reply::value(1),
        PlatformCall::Sbi {
            extension: EXTENSION,
            function: SET_SHMEM,
            args,
        } => match decode(args, Xlen::NATIVE) {
            Ok(_) => Reply::status(0),
            Err(error) => Reply::status(error.code()),
        },
        _ => Reply::status(SbiError::NotSupported.code()),
    }
}

#[test]
fn registration_passes_the_address_and_unregistration_all_ones() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| sbi(call));
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    let wrote = |low, high| {
        What::Called(PlatformCall::Sbi {
            extension: 0x53_5441,
            function: 0,
            args: [low, high, 0],
        })
    };
    let last = || machine.log().last().unwrap().what;

    RECORD.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(register::<MockArch>(&RECORD), Ok(()));
    assert_eq!(last(), wrote(0x8020_0fc0, 0));
    assert!(!RECORD.is_preempted(), "a stale hint is cleared");

    RECORD.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(unregister::<MockArch>(&RECORD), Ok(()));
    assert_eq!(last(), wrote(u64::MAX, u64::MAX));
    assert!(!RECORD.is_preempted(), "a stale hint is cleared");
}

#[test]
fn an_sbi_without_the_extension_does_not_offer_it() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&RECORD),
        Err(RegisterError::NotOffered)
    );
}

#[test]
fn a_refusal_carries_address_and_status() {
    static RECORD: StealTime = StealTime::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| match call {
        PlatformCall::Sbi {
            extension: EXTENSION,
            ..
        } => Reply::status(SbiError::InvalidAddress.code()),
        other => sbi(other),
    });
    machine.map((&raw const RECORD).cast(), 64, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&RECORD),
        Err(RegisterError::Refused {
            addr: ADDR,
            status: -5
        })
    );
}

#[test]
fn a_misaligned_address_is_named() {
    let addr = GuestAddr::new(0x8020_0fe0);
    assert_eq!(
        registration(addr),
        Err(RegisterError::Misaligned { addr, align: 64 })
    );
}

#[test]
fn an_address_is_split_by_the_width_of_the_registers() {
    let addr = GuestAddr::new(0x3_4000_0040);
    for (xlen, low, high) in [(Xlen::Rv32, 0x4000_0040, 3), (Xlen::Rv64, 0x3_4000_0040, 0)] {
        assert_eq!(registration_for(addr, xlen), Ok(set_shmem(low, high)));
        assert_eq!(decode([low, high, 0], xlen), Ok(Some(addr)));
    }
}

#[test]
fn the_sbi_answers_with_the_specified_errors() {
    let ones = u64::MAX;
    let rv64 = |args| decode(args, Xlen::Rv64);
    assert_eq!(rv64([ones, ones, 0]), Ok(None));
    assert_eq!(rv64([0x40, 0, 1]), Err(SbiError::InvalidParam));
    assert_eq!(rv64([ones, ones, 1]), Err(SbiError::InvalidParam));
    assert_eq!(rv64([0x41, 0, 0]), Err(SbiError::InvalidParam));
    assert_eq!(rv64([0x40, 1, 0]), Err(SbiError::InvalidAddress));
    // One half of all ones is an address, and a misaligned one.
    assert_eq!(rv64([ones, 0, 0]), Err(SbiError::InvalidParam));
    assert_eq!(
        decode([0xffff_ffff; 3].map(|x| x), Xlen::Rv32),
        Err(SbiError::InvalidParam)
    );
    assert_eq!(decode([0xffff_ffff, 0xffff_ffff, 0], Xlen::Rv32), Ok(None));
}

#[test]
fn any_value_but_zero_means_preempted() {
    let record = StealTime::new();
    record.preempted.leave(Leave::Preempted, 0x80);
    assert!(record.is_preempted());
    record.enter(Nanos::ZERO, Nanos::new(5));
    assert_eq!(record.preemption(), Preemption::Running);
    assert_eq!(record.steal(), Ok(Nanos::new(5)));
}

#[test]
fn a_halted_hart_is_not_preempted() {
    let record = StealTime::new();
    record.leave(Nanos::ZERO, Leave::Halted);
    assert!(!record.is_preempted());
}

#[test]
fn a_sequence_that_stays_odd_ends_the_read() {
    let record = StealTime::new();
    record.sequence.store(7_u32.to_le(), Relaxed);
    assert_eq!(
        record.steal(),
        Err(ReadError::StuckInUpdate {
            version: 7,
            tries: crate::READ_TRIES
        })
    );
}
