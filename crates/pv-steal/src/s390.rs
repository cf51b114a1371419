//! s390: no record in memory.
//!
//! * Steal is what the clock grew and the CPU timer did not: the timer of a
//!   CPU stands still while the host runs somebody else. Whether it also stands
//!   still while the CPU waits by itself differs, so the guest takes out
//!   whatever the two grew apart in enabled wait.
//! * Preempted is what SIGNAL PROCESSOR answers to the order "sense running
//!   status", which is not asked about CPUs in enabled wait: they do not run,
//!   and have no wish to.
//!
//! Sources: the Linux headers `asm/sigp.h` and `asm/sie.h`, whose names are
//! those of "z/Architecture Principles of Operation" (SIGNAL PROCESSOR, STORE
//! CPU TIMER).

use core::marker::PhantomData;

use bitflags::bitflags;
use pv_arch::sync::atomic::{AtomicBool, AtomicU64};
use pv_arch::{Arch, CpuId, Nanos, PlatformCall, Reply};

use crate::record::{Preemption, StealSource};
use crate::{ReadError, RegisterError};

/// The order "sense running status".
pub const SENSE_RUNNING: u8 = 0x15;
/// Condition code 0: the order was accepted; the CPU runs.
pub const CC_ACCEPTED: i64 = 0;
/// Condition code 1: a status was stored.
pub const CC_STATUS_STORED: i64 = 1;

bitflags! {
    /// The status that is stored with condition code 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SigpStatus: u64 {
        /// The order is not installed.
        const INVALID_ORDER = 0x2;
        /// The CPU does not run.
        const NOT_RUNNING = 0x400;
        const _ = !0;
    }
}

pv_arch::orderings! {
    /// Only the CPU itself writes and reads its times.
    fn own_times = Relaxed;
    /// Whether the CPU waits by itself: a hint to the others.
    fn read_waiting = Relaxed;
    /// The marker is the whole message.
    fn write_waiting = Relaxed;
}

/// What one CPU knows of its own time; others ask it whether it runs.
///
/// All times are of the clock [`Arch::now`] and the timer
/// [`PlatformCall::CpuTimer`] of the CPU.
#[derive(Debug)]
pub struct StolenTime<A> {
    cpu: CpuId,
    /// Clock less timer at registration, and since then by waiting: what must
    /// be taken from clock less timer now to get steal.
    not_stolen: AtomicU64,
    /// Clock less timer when the present wait began.
    wait_begun: AtomicU64,
    /// The largest steal told so far.
    told: AtomicU64,
    waiting: AtomicBool,
    arch: PhantomData<fn() -> A>,
}

impl<A> StolenTime<A> {
    pv_arch::const_new! {
        /// The time of `cpu`, to be registered by it.
        pub fn new(cpu: CpuId) -> Self {
            Self {
                cpu,
                not_stolen: AtomicU64::new(0),
                wait_begun: AtomicU64::new(0),
                told: AtomicU64::new(0),
                waiting: AtomicBool::new(false),
                arch: PhantomData,
            }
        }
    }
}

/// What the CPU itself says.
impl<A: Arch> StolenTime<A> {
    /// Enabled wait begins. Called on the CPU itself, as the last thing before.
    pub fn begin_wait(&self) {
        self.wait_begun.store(apart_or_zero::<A>(), own_times());
        if !pv_arch::seeded_bug!("s390.wait-without-mark") {
            self.waiting.store(true, write_waiting());
        }
    }

    /// Enabled wait has ended. Called on the CPU itself, first thing after.
    ///
    /// Time between the wake-up and the first instruction after it counts as
    /// waited, not as stolen: there is nothing that tells the two apart. The
    /// timer may run in enabled wait or not; what it ran is taken out again.
    pub fn end_wait(&self) {
        if !self.waiting.load(own_times()) {
            return;
        }
        if !pv_arch::seeded_bug!("s390.wait-leaves-mark") {
            self.waiting.store(false, write_waiting());
        }
        let begun = self.wait_begun.load(own_times());
        let waited = apart_or_zero::<A>().wrapping_sub(begun);
        let before = self.not_stolen.load(own_times());
        self.not_stolen
            .store(before.wrapping_add(waited), own_times());
    }
}

impl<A: Arch> StealSource for StolenTime<A> {
    /// Steal since registration. Only the CPU itself can ask.
    fn steal(&self) -> Result<Nanos, ReadError> {
        let here = A::this_cpu();
        if here != self.cpu {
            return Err(ReadError::OtherCpu {
                asked: self.cpu,
                here,
            });
        }
        let apart = apart::<A>().map_err(|status| ReadError::Refused { status })?;
        let grown = apart.wrapping_sub(self.not_stolen.load(own_times()));
        // Two readings are not equally far apart each time. What that makes
        // smaller must not look like a step back, nor below zero like centuries.
        let told = self.told.load(own_times());
        let is_behind = grown.wrapping_sub(told) > u64::MAX / 2;
        let stolen = if is_behind { told } else { grown };
        self.told.store(stolen, own_times());
        Ok(Nanos::new(stolen))
    }

    fn preemption(&self) -> Preemption {
        if self.waiting.load(read_waiting()) {
            return Preemption::Running;
        }
        read_sense_reply(A::platform_call(sense(self.cpu)))
    }
}

/// How far clock and timer are apart (modulo 2^64), or the refusal's status.
///
/// The timer is read first, always: a preemption between the two is then stolen
/// time that is seen at once, not run time that was never there; and what lies
/// between the two readings cancels out of a difference.
fn apart<A: Arch>() -> Result<u64, i64> {
    let reply = A::platform_call(PlatformCall::CpuTimer);
    match reply.status {
        0 => Ok(A::now().get().wrapping_sub(reply.values[0])),
        status => Err(status),
    }
}

/// A timer that cannot be read does not run; [`register`] has refused it.
fn apart_or_zero<A: Arch>() -> u64 {
    apart::<A>().unwrap_or(0)
}

/// The call that asks whether `cpu` runs.
pub const fn sense(cpu: CpuId) -> PlatformCall {
    PlatformCall::Sigp {
        order: SENSE_RUNNING,
        cpu,
    }
}

/// What the answer to [`sense`] means.
pub const fn read_sense_reply(reply: Reply) -> Preemption {
    let [status, ..] = reply.values;
    let status = SigpStatus::from_bits_retain(status);
    match reply.status {
        CC_ACCEPTED => Preemption::Running,
        CC_STATUS_STORED if status.contains(SigpStatus::NOT_RUNNING) => Preemption::Preempted,
        _ => Preemption::Unknown,
    }
}

/// What a host answers to [`SENSE_RUNNING`].
pub const fn sense_reply(is_running: bool) -> Reply {
    if is_running {
        Reply::status(CC_ACCEPTED)
    } else {
        Reply {
            status: CC_STATUS_STORED,
            values: [SigpStatus::NOT_RUNNING.bits(), 0, 0, 0],
        }
    }
}

/// What a host without the order answers.
pub const fn invalid_order_reply() -> Reply {
    Reply {
        status: CC_STATUS_STORED,
        values: [SigpStatus::INVALID_ORDER.bits(), 0, 0, 0],
    }
}

/// Begin to count, on the CPU itself: there is nothing to tell the host, but
/// the timer must be readable.
pub fn register<A: Arch>(time: &StolenTime<A>) -> Result<(), RegisterError> {
    if A::this_cpu() != time.cpu {
        return Err(RegisterError::OtherCpu {
            asked: time.cpu,
            here: A::this_cpu(),
        });
    }
    let apart = apart::<A>().map_err(|_| RegisterError::NotOffered)?;
    time.not_stolen.store(apart, own_times());
    time.told.store(0, own_times());
    time.waiting.store(false, write_waiting());
    Ok(())
}

/// The CPU goes offline: nobody is to take it for preempted.
pub fn unregister<A: Arch>(time: &StolenTime<A>) {
    time.waiting.store(true, write_waiting());
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use pv_arch::mock::{Machine, MockArch};

    use super::*;

    const CPU1: CpuId = CpuId::new(1);

    /// A machine of two CPUs where CPU 1 has run for `ran`.
    fn machine(ran: &Arc<Mutex<u64>>, sense: Reply) -> Arc<Machine> {
        let machine = Machine::new(2);
        let ran = Arc::clone(ran);
        machine.on_call(move |_, call| match call {
            PlatformCall::CpuTimer => Reply::value(*ran.lock().unwrap()),
            PlatformCall::Sigp { order: 0x15, cpu } => {
                assert_eq!(cpu, CPU1);
                sense
            }
            _ => Reply::REFUSED,
        });
        machine
    }

    fn preemption(reply: Reply) -> Preemption {
        let machine = machine(&Arc::default(), reply);
        let _cpu = machine.bind(CpuId::BOOT);
        StolenTime::<MockArch>::new(CPU1).preemption()
    }

    #[test]
    fn steal_is_clock_growth_less_timer_growth_less_wait() {
        let ran = Arc::new(Mutex::new(1_000_000));
        let machine = machine(&ran, sense_reply(true));
        machine.advance(Nanos::new(7));
        let _cpu = machine.bind(CPU1);
        let time = StolenTime::<MockArch>::new(CPU1);
        assert_eq!(register(&time), Ok(()));
        assert_eq!(time.steal(), Ok(Nanos::ZERO));
        // 100 ns of wall time, 60 of them run.
        machine.advance(Nanos::new(100));
        *ran.lock().unwrap() += 60;
        assert_eq!(time.steal(), Ok(Nanos::new(40)));
        // A wait is not stolen.
        time.begin_wait();
        machine.advance(Nanos::new(500));
        time.end_wait();
        time.end_wait();
        assert_eq!(time.steal(), Ok(Nanos::new(40)));
        // Nor is it where the timer runs on in it.
        time.begin_wait();
        machine.advance(Nanos::new(500));
        *ran.lock().unwrap() += 500;
        time.end_wait();
        assert_eq!(time.steal(), Ok(Nanos::new(40)));
    }

    #[test]
    fn steal_never_steps_back_when_the_timer_catches_up() {
        let ran = Arc::new(Mutex::new(0));
        let machine = machine(&ran, sense_reply(true));
        let _cpu = machine.bind(CPU1);
        let time = StolenTime::<MockArch>::new(CPU1);
        assert_eq!(register(&time), Ok(()));
        machine.advance(Nanos::new(100));
        *ran.lock().unwrap() += 60;
        assert_eq!(time.steal(), Ok(Nanos::new(40)));
        *ran.lock().unwrap() += 10;
        assert_eq!(time.steal(), Ok(Nanos::new(40)));
        machine.advance(Nanos::new(30));
        assert_eq!(time.steal(), Ok(Nanos::new(60)));
    }

    #[test]
    fn a_timer_that_is_ahead_of_the_clock_is_no_steal() {
        let ran = Arc::default();
        let machine = machine(&ran, sense_reply(true));
        let _cpu = machine.bind(CPU1);
        let time = StolenTime::<MockArch>::new(CPU1);
        assert_eq!(register(&time), Ok(()));
        *ran.lock().unwrap() += 60;
        assert_eq!(time.steal(), Ok(Nanos::ZERO));
    }

    #[test]
    fn another_cpu_cannot_read_the_timer() {
        let machine = machine(&Arc::default(), sense_reply(true));
        let _cpu = machine.bind(CpuId::BOOT);
        let time = StolenTime::<MockArch>::new(CPU1);
        let (asked, here) = (CPU1, CpuId::BOOT);
        assert_eq!(time.steal(), Err(ReadError::OtherCpu { asked, here }));
        assert_eq!(
            register(&time),
            Err(RegisterError::OtherCpu { asked, here })
        );
    }

    #[test]
    fn a_machine_without_the_timer_does_not_offer_steal() {
        let machine = Machine::new(2);
        let _cpu = machine.bind(CPU1);
        let time = StolenTime::<MockArch>::new(CPU1);
        assert_eq!(register(&time), Err(RegisterError::NotOffered));
        assert_eq!(time.steal(), Err(ReadError::Refused { status: -1 }));
    }

    #[test]
    fn preempted_is_condition_code_1_with_the_status_not_running() {
        assert_eq!(preemption(sense_reply(true)), Preemption::Running);
        assert_eq!(preemption(sense_reply(false)), Preemption::Preempted);
        assert_eq!(preemption(invalid_order_reply()), Preemption::Unknown);
        assert_eq!(preemption(Reply::status(2)), Preemption::Unknown);
        assert_eq!(preemption(Reply::status(3)), Preemption::Unknown);
    }

    #[test]
    fn a_cpu_in_enabled_wait_or_offline_is_not_asked_about() {
        let machine = machine(&Arc::default(), sense_reply(false));
        let _cpu = machine.bind(CPU1);
        let time = StolenTime::<MockArch>::new(CPU1);
        assert!(time.is_preempted());
        time.begin_wait();
        machine.take_log();
        assert!(!time.is_preempted());
        assert_eq!(machine.log(), []);
        time.end_wait();
        assert!(time.is_preempted());
        unregister(&time);
        assert!(!time.is_preempted());
    }
}
