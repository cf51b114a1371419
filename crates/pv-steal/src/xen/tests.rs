use pv_arch::mock::{Machine, MockArch, What};
use pv_arch::sync::atomic::Ordering::Relaxed;

use super::*;

const ADDR: GuestAddr = GuestAddr::new(0x5fd0);

/// A Xen that knows registration by physical address, or does not.
fn xen(call: PlatformCall, is_new: bool) -> Reply {
    match call {
        PlatformCall::XenVcpuOp { op: 14, .. } if !is_new => Reply::status(ENOSYS),
        PlatformCall::XenVcpuOp { op, area, .. } => match decode::<RunState64>(op, area) {
            Ok(_) => Reply::status(0),
            Err(status) => Reply::status(status),
        },
        _ => Reply::REFUSED,
    }
}

fn calls(machine: &Machine) -> Vec<(u32, u64)> {
    let log = machine.take_log();
    log.iter()
        .filter_map(|event| match event.what {
            What::Called(PlatformCall::XenVcpuOp { op, area, .. }) => Some((op, area.get())),
            _ => None,
        })
        .collect()
}

#[test]
fn registration_is_by_physical_address() {
    static RECORD: RunState64 = RunState64::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| xen(call, true));
    machine.map((&raw const RECORD).cast(), 48, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    RECORD.leave(Nanos::new(5), Leave::Preempted);
    assert_eq!(register::<MockArch, _>(&RECORD), Ok(()));
    assert_eq!(calls(&machine), [(14, 0x5fd0)]);
    assert!(!RECORD.is_preempted(), "a stale state is cleared");
    RECORD.leave(Nanos::new(6), Leave::Preempted);
    assert_eq!(unregister::<MockArch, _>(&RECORD), Ok(()));
    assert_eq!(calls(&machine), [(14, u64::MAX)]);
    assert!(!RECORD.is_preempted(), "a stale state is cleared");
}

#[test]
fn an_old_xen_is_told_the_virtual_address() {
    static RECORD: RunState32 = RunState32::new();
    let machine = Machine::new(1);
    machine.on_call(|_, call| xen(call, false));
    machine.map((&raw const RECORD).cast(), 44, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    let pointer = (&raw const RECORD).addr() as u64;
    assert_eq!(register::<MockArch, _>(&RECORD), Ok(()));
    assert_eq!(calls(&machine), [(14, 0x5fd0), (5, pointer)]);
    assert_eq!(unregister::<MockArch, _>(&RECORD), Ok(()));
    assert_eq!(calls(&machine), [(14, u64::MAX), (5, 0)]);
}

#[test]
fn a_refusal_carries_address_and_status() {
    static RECORD: RunState64 = RunState64::new();
    let machine = Machine::new(1);
    machine.on_call(|_, _| Reply::status(EINVAL));
    machine.map((&raw const RECORD).cast(), 48, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    let refused = RegisterError::Refused {
        addr: ADDR,
        status: -22,
    };
    assert_eq!(register::<MockArch, _>(&RECORD), Err(refused));
}

#[test]
fn misaligned_and_crossing_addresses_are_named() {
    let check = |addr| registration::<RunState64>(CpuId::BOOT, GuestAddr::new(addr));
    let addr = GuestAddr::new(0x5fd4);
    let misaligned = RegisterError::Misaligned { addr, align: 8 };
    assert_eq!(check(0x5fd4), Err(misaligned));
    // 44 bytes need only 4-alignment, and end at the boundary.
    assert!(registration::<RunState32>(CpuId::BOOT, addr).is_ok());
    let crosses = RegisterError::CrossesPage {
        addr: GuestAddr::new(0x5fd8),
        len: 48,
        page: 4096,
    };
    assert_eq!(check(0x5fd8), Err(crosses));
}

#[test]
fn xen_refuses_what_it_cannot_use() {
    let decode = |op, area| decode::<RunState64>(op, GuestAddr::new(area));
    assert_eq!(decode(14, 0x5fd0), Ok(Some(ADDR)));
    assert_eq!(decode(14, NO_AREA), Ok(None));
    assert_eq!(decode(14, 0x5fd8), Err(EINVAL));
    assert_eq!(decode(5, 0), Ok(None));
    assert_eq!(decode(5, 0x5fd7), Ok(Some(GuestAddr::new(0x5fd7))));
    assert_eq!(decode(4, 0x5fd0), Err(ENOSYS));
}

fn accounts<W: Word>(record: &RunState<W>) {
    let at = Nanos::new;
    record.enter(at(1000), Nanos::ZERO);
    record.leave(at(1010), Leave::Preempted);
    assert_eq!(record.preemption(), Preemption::Preempted);
    record.enter(at(1030), Nanos::ZERO);
    assert_eq!(record.preemption(), Preemption::Running);
    record.leave(at(1035), Leave::Halted);
    assert_eq!(record.state(), Some(State::Blocked));
    assert_eq!(record.preemption(), Preemption::Running);
    record.wake(at(1135));
    assert_eq!(record.preemption(), Preemption::Preempted);
    record.enter(at(1138), Nanos::ZERO);
    record.leave(at(1139), Leave::Offline);
    assert_eq!(record.preemption(), Preemption::Running);
    record.enter(at(6_000_000_139), Nanos::ZERO);
    let long = 6_000_000_139 - 1139;
    assert_eq!(record.times(), Ok([16, 23, 100, long].map(Nanos::new)));
    assert_eq!(record.steal(), Ok(Nanos::new(23 + long)));
}

#[test]
fn every_stay_is_added_to_its_state() {
    accounts(&RunState64::new());
    accounts(&RunState32::new());
}

#[test]
fn entry_times_are_distinct_whatever_the_clock_does() {
    let record = RunState64::new();
    let mut seen = Vec::new();
    for now in [50, 50, 50, 7, 51] {
        record.transition(State::Runnable, Nanos::new(now));
        seen.push(record.state_entry_time.load(Relaxed));
    }
    assert_eq!(seen, [50, 51, 52, 53, 54]);
    // The account goes by entry times, so that it does not drift from them.
    assert_eq!(record.steal(), Ok(Nanos::new(4)));
}

#[test]
fn a_state_that_is_none_is_not_known() {
    let record = RunState64::new();
    record.state.store(4_u32.to_le(), Relaxed);
    assert_eq!(record.preemption(), Preemption::Unknown);
    assert!(!record.is_preempted());
    record.transition(State::Blocked, Nanos::new(3));
    assert_eq!(record.times(), Ok([Nanos::ZERO; 4]));
}

#[test]
fn a_mark_that_stays_ends_the_read_and_the_next_transition_makes_it_good() {
    let record = RunState32::new();
    record.transition(State::Runnable, Nanos::new(10));
    record.state_entry_time.store(0xa | UPDATE, Relaxed);
    let stuck = ReadError::InTransition {
        entry: 0xa | UPDATE,
        tries: READ_TRIES,
    };
    assert_eq!(record.steal(), Err(stuck));
    record.transition(State::Running, Nanos::new(15));
    assert_eq!(record.steal(), Ok(Nanos::new(5)));
}

#[test]
fn a_record_that_keeps_changing_ends_the_read() {
    let record = RunState64::new();
    let change = || record.transition(State::Running, Nanos::ZERO);
    let gave_up = ReadError::InTransition {
        entry: READ_TRIES.into(),
        tries: READ_TRIES,
    };
    assert_eq!(record.read(change), Err(gave_up));
}

#[test]
fn junk_in_the_record_does_not_leave_a_mark_for_ever() {
    let record = RunState64::new();
    record.state_entry_time.store(u64::MAX, Relaxed);
    record.transition(State::Runnable, Nanos::new(3));
    record.transition(State::Running, Nanos::new(8));
    assert_eq!(record.steal(), Ok(Nanos::new(5)));
}
