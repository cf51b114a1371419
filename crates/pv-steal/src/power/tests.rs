use pv_arch::mock::{Machine, MockArch, What};
use pv_arch::sync::atomic::Ordering::Relaxed;

use super::*;

const CPU1: CpuId = CpuId::new(1);
const ADDR: GuestAddr = GuestAddr::new(0x1_2c00);

fn hypervisor(call: PlatformCall) -> Reply {
    match call {
        PlatformCall::Papr { token: 0xdc, args } => match decode(args, SIZE) {
            Ok(_) => Reply::status(H_SUCCESS),
            Err(status) => Reply::status(status),
        },
        _ => Reply::REFUSED,
    }
}

#[test]
fn the_size_is_big_endian() {
    static AREA: VirtualProcessorArea = VirtualProcessorArea::new();
    let machine = Machine::new(2);
    machine.on_call(|_, call| hypervisor(call));
    machine.map((&raw const AREA).cast(), 1024, ADDR);
    let _cpu = machine.bind(CPU1);
    assert_eq!(register::<MockArch>(&AREA), Ok(()));
    assert_eq!(AREA.size.load(Relaxed).to_ne_bytes(), [0x04, 0x00]);
}

#[test]
fn registration_names_sub_function_cpu_and_address() {
    static AREA: VirtualProcessorArea = VirtualProcessorArea::new();
    let machine = Machine::new(2);
    machine.on_call(|_, call| hypervisor(call));
    machine.map((&raw const AREA).cast(), 1024, ADDR);
    let _cpu = machine.bind(CPU1);
    let last = || machine.log().last().unwrap().what;
    let call = |args| What::Called(PlatformCall::Papr { token: 0xdc, args });

    AREA.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(register::<MockArch>(&AREA), Ok(()));
    assert_eq!(last(), call([0x2000_0000_0000, 1, 0x1_2c00]));
    assert!(!AREA.is_preempted(), "a stale counter is cleared");

    AREA.leave(Nanos::ZERO, Leave::Preempted);
    assert_eq!(unregister::<MockArch>(&AREA), Ok(()));
    assert_eq!(last(), call([0xa000_0000_0000, 1, 0]));
    assert!(!AREA.is_preempted(), "a stale counter is cleared");
}

#[test]
fn a_refusal_carries_address_and_status() {
    static AREA: VirtualProcessorArea = VirtualProcessorArea::new();
    let machine = Machine::new(1);
    machine.on_call(|_, _| Reply::status(H_PARAMETER));
    machine.map((&raw const AREA).cast(), 1024, ADDR);
    let _cpu = machine.bind(CpuId::BOOT);
    assert_eq!(
        register::<MockArch>(&AREA),
        Err(RegisterError::Refused {
            addr: ADDR,
            status: -4
        })
    );
}

#[test]
fn misaligned_and_crossing_addresses_are_named() {
    let addr = GuestAddr::new(0x1_2c40);
    let error = RegisterError::Misaligned { addr, align: 128 };
    assert_eq!(registration(CPU1, addr), Err(error));
    let addr = GuestAddr::new(0x1_2c80);
    let error = RegisterError::CrossesPage {
        addr,
        len: 1024,
        page: 4096,
    };
    assert_eq!(registration(CPU1, addr), Err(error));
}

#[test]
fn the_hypervisor_checks_flags_size_alignment_and_boundary() {
    let at = |flags, addr, size| decode([flags, 1, addr], size);
    let registered = Ok(Request::Register {
        cpu: CPU1,
        addr: ADDR,
    });
    assert_eq!(at(REGISTER_VPA, 0x1_2c00, 640), registered);
    assert_eq!(at(REGISTER_VPA, 0x1_2c00, 639), Err(H_PARAMETER));
    assert_eq!(at(REGISTER_VPA, 0x1_2c08, 640), Err(H_PARAMETER));
    // 640 bytes end at the boundary from 0xd80, and cross it from 0xe00.
    assert!(at(REGISTER_VPA, 0x1_2d80, 640).is_ok());
    assert_eq!(at(REGISTER_VPA, 0x1_2e00, 640), Err(H_PARAMETER));
    let gone = Ok(Request::Deregister { cpu: CPU1 });
    assert_eq!(at(DEREGISTER_VPA, 0, 0), gone);
    for reserved in [0_u64, 2 << 45, 4 << 45, 7 << 45, REGISTER_VPA | 1] {
        assert_eq!(at(reserved, 0x1_2c00, 640), Err(H_PARAMETER));
    }
    assert_eq!(decode([DEREGISTER_VPA, 1 << 32, 0], 0), Err(H_PARAMETER));
}

#[test]
fn a_vcpu_that_ceded_by_itself_is_not_preempted() {
    let area = VirtualProcessorArea::new();
    assert_eq!(area.preemption(), Preemption::Running);
    area.set_idle(true);
    area.leave(Nanos::ZERO, Leave::Halted);
    assert_eq!(area.dispatch_count(), 1);
    assert_eq!(area.preemption(), Preemption::Running);
    area.enter(Nanos::new(5), Nanos::ZERO);
    area.set_idle(false);
    area.leave(Nanos::new(6), Leave::Preempted);
    assert_eq!(area.dispatch_count(), 3);
    assert_eq!(area.preemption(), Preemption::Preempted);
    area.enter(Nanos::new(9), Nanos::new(3));
    assert_eq!(area.preemption(), Preemption::Running);
}

#[test]
fn a_host_that_leaves_or_enters_twice_keeps_the_parity() {
    let area = VirtualProcessorArea::new();
    area.leave(Nanos::ZERO, Leave::Preempted);
    area.leave(Nanos::ZERO, Leave::Offline);
    assert_eq!(area.dispatch_count(), 1);
    area.enter(Nanos::ZERO, Nanos::ZERO);
    area.enter(Nanos::ZERO, Nanos::ZERO);
    assert_eq!(area.dispatch_count(), 2);
}

#[test]
fn the_counter_is_big_endian() {
    let area = VirtualProcessorArea::new();
    area.dispatch_counter
        .store(0x0100_0000_u32.to_be(), Relaxed);
    assert_eq!(area.preemption(), Preemption::Running);
    area.dispatch_counter
        .store(u32::from_ne_bytes([0, 0, 0, 1]), Relaxed);
    assert_eq!(area.preemption(), Preemption::Preempted);
}

#[test]
fn steal_is_the_wait_for_capacity_and_for_a_processor() {
    let area = VirtualProcessorArea::new();
    area.wait_processor.store(512_000_000_u64.to_be(), Relaxed);
    area.wait_capacity.store(256_000_000_u64.to_be(), Relaxed);
    area.wait_ready.store(u64::MAX, Relaxed);
    assert_eq!(area.steal(), Ok(Nanos::from_millis(1500)));
}

#[test]
fn time_survives_the_way_through_ticks() {
    for ns in [
        0,
        1,
        2,
        63,
        64,
        124,
        125,
        126,
        999_999_937,
        u64::MAX / 2,
        u64::MAX,
    ] {
        let back = nanos(ticks(Nanos::new(ns))).get();
        assert!(back.abs_diff(ns) <= 1, "{ns} became {back}");
    }
    assert_eq!(nanos(u64::MAX), Nanos::MAX);
    assert_eq!(nanos(TIMEBASE_HZ), Nanos::from_secs(1));
}
