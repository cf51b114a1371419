//! The mock keeps the contracts of `Arch`.

#![cfg(all(feature = "mock", not(pv_loom)))]

use std::thread;

use pv_arch::mock::{Machine, MockArch, Oracle, Step, Trigger, What};
use pv_arch::{Arch, CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply, Yielded};

const CPU0: CpuId = CpuId::new(0);
const CPU1: CpuId = CpuId::new(1);
const TEN: Nanos = Nanos::new(10);

fn what(machine: &Machine) -> Vec<What> {
    machine.log().iter().map(|event| event.what).collect()
}

#[test]
fn a_kick_before_the_halt_is_remembered_once() {
    let machine = Machine::new(2);
    machine.script(Trigger::Halt(CPU0, 2), [Step::WakeSpuriously]);
    {
        let _cpu1 = machine.bind(CPU1);
        MockArch::kick(CPU0);
        MockArch::kick(CPU0);
    }
    let _cpu0 = machine.bind(CPU0);
    MockArch::halt_while(|| true);
    MockArch::halt_while(|| true);
    assert_eq!(
        what(&machine)[2..],
        [What::Halt, What::Woke, What::Halt, What::WokeSpuriously]
    );
}

#[test]
fn a_halt_whose_condition_is_false_returns_and_keeps_the_kick() {
    let machine = Machine::new(2);
    let _cpu0 = machine.bind(CPU0);
    MockArch::kick(CPU0);
    MockArch::halt_while(|| false);
    MockArch::halt_while(|| true);
    assert_eq!(
        what(&machine),
        [
            What::Kicked(CPU0),
            What::HaltRefused,
            What::Halt,
            What::Woke
        ]
    );
}

#[test]
fn a_kick_from_another_thread_ends_a_halt() {
    let machine = Machine::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _cpu0 = machine.bind(CPU0);
            MockArch::halt_while(|| true);
        });
        scope.spawn(|| {
            let _cpu1 = machine.bind(CPU1);
            MockArch::kick(CPU0);
        });
    });
    assert!(what(&machine).contains(&What::Woke));
}

#[test]
fn every_oracle_answers_as_it_is_told_to() {
    let machine = Machine::new(2);
    let _cpu0 = machine.bind(CPU0);
    machine.advance(TEN);
    machine.preempt(CPU1);
    assert!(MockArch::is_preempted(CPU1));

    machine.set_oracle(Oracle::Late(TEN));
    assert!(!MockArch::is_preempted(CPU1));
    machine.advance(TEN);
    assert!(MockArch::is_preempted(CPU1));
    machine.resume(CPU1);
    assert!(MockArch::is_preempted(CPU1), "the resumption is late too");

    machine.set_oracle(Oracle::AlwaysFalse);
    assert!(!MockArch::is_preempted(CPU1));
    machine.set_oracle(Oracle::AlwaysTrue);
    assert!(MockArch::is_preempted(CPU1));

    let draw = |seed| {
        machine.set_oracle(Oracle::Random(seed));
        (0..64)
            .map(|_| MockArch::is_preempted(CPU1))
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    assert!(draw(7).contains(&true) && draw(7).contains(&false));
}

#[test]
fn nobody_is_preempted_to_itself_or_out_of_range() {
    let machine = Machine::new(2);
    let _cpu0 = machine.bind(CPU0);
    machine.set_oracle(Oracle::AlwaysTrue);
    assert!(!MockArch::is_preempted(CPU0));
    assert!(!MockArch::is_preempted(CpuId::new(2)));
    MockArch::kick(CpuId::new(2));
    assert_eq!(MockArch::yield_to(CpuId::new(2)), Yielded::NothingToGain);
}

#[test]
fn a_directed_yield_resumes_a_preempted_target_only() {
    let machine = Machine::new(2);
    let _cpu0 = machine.bind(CPU0);
    assert_eq!(MockArch::yield_to(CPU1), Yielded::NothingToGain);
    machine.preempt(CPU1);
    assert_eq!(MockArch::yield_to(CPU1), Yielded::Boosted);
    assert!(!MockArch::is_preempted(CPU1));
    machine.set_directed_yield(false);
    assert_eq!(MockArch::yield_to(CPU1), Yielded::Unsupported);
}

#[test]
fn a_script_can_preempt_in_the_middle_of_a_wait() {
    let machine = Machine::new(2);
    machine.advance_per_relax(TEN);
    machine.script(Trigger::Relax(CPU0, 3), [Step::Preempt(CPU1)]);
    let _cpu0 = machine.bind(CPU0);
    let mut turns = 0;
    while !MockArch::is_preempted(CPU1) {
        MockArch::relax_bounded();
        turns += 1;
    }
    assert_eq!((turns, machine.relaxes(CPU0)), (3, 3));
    assert_eq!(MockArch::now(), Nanos::new(30));
}

#[test]
#[should_panic(expected = "CPU 2 is out of range")]
fn a_script_about_a_cpu_that_is_not_there_is_refused_when_written() {
    let machine = Machine::new(2);
    machine.script(Trigger::Now(CPU0, 1), [Step::Kick(CpuId::new(2))]);
}

#[test]
fn bindings_may_end_in_any_order() {
    let machine = Machine::new(2);
    let outer = machine.bind(CPU0);
    let inner = machine.bind(CPU1);
    drop(outer);
    assert_eq!(MockArch::this_cpu(), CPU1);
    let newest = machine.bind(CPU0);
    assert_eq!(MockArch::this_cpu(), CPU0);
    drop(newest);
    assert_eq!(MockArch::this_cpu(), CPU1);
    drop(inner);
}

#[test]
fn interrupts_nest() {
    let machine = Machine::new(1);
    let _cpu0 = machine.bind(CPU0);
    let outer = MockArch::irq_save();
    let inner = MockArch::irq_save();
    assert_eq!(machine.irq_depth(CPU0), 2);
    MockArch::irq_restore(inner);
    MockArch::irq_restore(outer);
    assert_eq!(machine.irq_depth(CPU0), 0);
}

#[test]
#[should_panic(expected = "out of order")]
fn interrupts_restored_out_of_order_are_caught() {
    let machine = Machine::new(1);
    let _cpu0 = machine.bind(CPU0);
    let outer = MockArch::irq_save();
    let _inner = MockArch::irq_save();
    MockArch::irq_restore(outer);
}

#[test]
fn calls_are_refused_unless_the_test_answers_them() {
    let machine = Machine::new(1);
    let _cpu0 = machine.bind(CPU0);
    let call = PlatformCall::Cpuid { leaf: 0x4000_0000 };
    assert_eq!(MockArch::platform_call(call), Reply::REFUSED);
    machine.on_call(move |cpu, asked| {
        assert_eq!((cpu, asked), (CPU0, call));
        Reply::value(42)
    });
    assert_eq!(MockArch::platform_call(call), Reply::value(42));
}

#[test]
fn an_address_is_known_only_inside_a_mapping() {
    let machine = Machine::new(1);
    let _cpu0 = machine.bind(CPU0);
    let memory = [0_u8; 128];
    let at = |offset: usize| memory.as_ptr().wrapping_add(offset);
    assert_eq!(MockArch::guest_addr(at(0), 64), None);
    machine.map(memory.as_ptr(), memory.len(), GuestAddr::new(0x1000));
    assert_eq!(
        MockArch::guest_addr(at(64), 64),
        Some(GuestAddr::new(0x1040))
    );
    assert_eq!(MockArch::guest_addr(at(65), 64), None);
}

#[test]
fn a_machine_without_serialisation_says_so() {
    let machine = Machine::new(2);
    let _cpu0 = machine.bind(CPU0);
    assert!(MockArch::serialize(CPU1));
    machine.set_serialize(false);
    assert!(!MockArch::serialize(CPU1));
}

/// A kernel that implements only what every kernel has.
struct BareMetal;

impl Arch for BareMetal {
    type IrqState = ();
    fn this_cpu() -> CpuId {
        CpuId::BOOT
    }
    fn cpu_count() -> CpuCount {
        CpuCount::ONE
    }
    fn now() -> Nanos {
        Nanos::ZERO
    }
    fn irq_save() {}
    fn irq_restore((): ()) {}
}

#[test]
fn the_defaults_are_a_machine_without_a_hypervisor() {
    let mut looked = 0;
    BareMetal::halt_while(|| {
        looked += 1;
        true
    });
    assert_eq!(
        looked, 1,
        "the default halt looks once and wakes spuriously"
    );
    BareMetal::kick(CPU1);
    assert_eq!(BareMetal::yield_to(CPU1), Yielded::Unsupported);
    assert!(!BareMetal::is_preempted(CPU1));
    assert!(!BareMetal::serialize(CPU1));
    assert_eq!(BareMetal::guest_addr(std::ptr::null(), 1), None);
    assert_eq!(
        BareMetal::platform_call(PlatformCall::CpuTimer),
        Reply::REFUSED
    );
}
