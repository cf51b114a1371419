//! The host's scheduler: who runs where. Pure decisions; no threads, no clock.
//!
//! Fair by virtual run time: the runnable vCPU that has run least runs next, for
//! a slice. A vCPU that wakes is placed half a slice behind the others at most,
//! so that sleeping earns no credit without bound, and it preempts a running
//! vCPU that is further ahead than a quarter of a slice.
//!
//! ```text
//!             dispatch              put
//!   Runnable ----------> Running ----------> Runnable
//!      ^                    |
//!      | wake               | halt             Absent: not started, or over
//!   Halted  <---------------+
//! ```
//!
//! A *held* vCPU is runnable but not eligible: a script has stopped it.

use pv_arch::Nanos;

/// Index of a vCPU; the harness uses the guest's CPU numbers.
pub(crate) type Vcpu = usize;
/// Index of a host CPU.
pub(crate) type Pcpu = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Running(Pcpu),
    Runnable,
    Halted,
}

/// How a held vCPU can come back before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub until: Nanos,
    /// A directed yield to it ends the hold.
    pub yields_end_it: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    state: State,
    vruntime: Nanos,
    hold: Option<Hold>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    running: Option<Vcpu>,
    /// Set once the vCPU really runs: waking its thread takes a while.
    since: Option<Nanos>,
    /// The current slice began here; a vCPU that nobody waits for gets another.
    slice_from: Nanos,
}

#[derive(Debug)]
pub(crate) struct Sched {
    slice: Nanos,
    vcpus: Vec<Entity>,
    pcpus: Vec<Slot>,
}

impl Sched {
    pub fn new(vcpus: usize, pcpus: usize, slice: Nanos) -> Self {
        Self {
            slice,
            vcpus: vec![
                Entity {
                    state: State::Absent,
                    vruntime: Nanos::ZERO,
                    hold: None,
                };
                vcpus
            ],
            pcpus: vec![Slot::default(); pcpus],
        }
    }

    pub fn state(&self, vcpu: Vcpu) -> State {
        self.vcpus[vcpu].state
    }

    pub fn running_on(&self, pcpu: Pcpu) -> Option<Vcpu> {
        self.pcpus[pcpu].running
    }

    /// A vCPU comes to life.
    pub fn start(&mut self, vcpu: Vcpu) {
        assert_eq!(self.vcpus[vcpu].state, State::Absent);
        self.vcpus[vcpu].state = State::Runnable;
    }

    /// Put a runnable vCPU on a free host CPU, if there are both.
    pub fn dispatch(&mut self, now: Nanos) -> Option<(Vcpu, Pcpu)> {
        let pcpu = self.pcpus.iter().position(|slot| slot.running.is_none())?;
        self.dispatch_on(pcpu, now).map(|vcpu| (vcpu, pcpu))
    }

    /// Put a runnable vCPU on this free host CPU.
    pub fn dispatch_on(&mut self, pcpu: Pcpu, now: Nanos) -> Option<Vcpu> {
        let vcpu = self.next(now)?;
        self.assign(vcpu, pcpu);
        Some(vcpu)
    }

    /// The thread of a dispatched vCPU has come to run.
    pub fn entered(&mut self, vcpu: Vcpu, now: Nanos) {
        let slot = self.slot_of(vcpu);
        slot.since = Some(now);
        slot.slice_from = now;
    }

    /// A running vCPU leaves its host CPU, which is returned, for `to`.
    pub fn put(&mut self, vcpu: Vcpu, to: State, now: Nanos) -> Pcpu {
        let State::Running(pcpu) = self.vcpus[vcpu].state else {
            panic!("vCPU {vcpu} leaves a host CPU that it does not have");
        };
        let ran = self.pcpus[pcpu]
            .since
            .map_or(Nanos::ZERO, |from| now.since(from));
        self.pcpus[pcpu] = Slot::default();
        let charged = ran.at_most(Nanos::new(self.slice.get().saturating_mul(2)));
        let entity = &mut self.vcpus[vcpu];
        entity.vruntime = entity.vruntime.plus(charged);
        entity.state = to;
        pcpu
    }

    /// A halted vCPU becomes runnable. Returns whether it was halted.
    pub fn wake(&mut self, vcpu: Vcpu, now: Nanos) -> bool {
        if self.vcpus[vcpu].state != State::Halted {
            return false;
        }
        let least = self.least_vruntime(now);
        let half_slice = Nanos::new(self.slice.get() / 2);
        let entity = &mut self.vcpus[vcpu];
        entity.state = State::Runnable;
        entity.vruntime = entity.vruntime.max(least.since(half_slice));
        true
    }

    /// The running vCPU that `woken` should preempt: the one furthest ahead, if
    /// it is ahead by more than a quarter of a slice and no host CPU is free.
    pub fn wake_up_victim(&self, woken: Vcpu, now: Nanos) -> Option<Vcpu> {
        if self.pcpus.iter().any(|slot| slot.running.is_none()) {
            return None;
        }
        let entity = &self.vcpus[woken];
        if entity.state != State::Runnable || self.is_held(woken, now) {
            return None;
        }
        let (ahead, victim) = self
            .pcpus
            .iter()
            .filter(|slot| slot.since.is_some())
            .filter_map(|slot| slot.running)
            .map(|vcpu| (self.vruntime_now(vcpu, now), vcpu))
            .max()?;
        let margin = Nanos::new(self.slice.get() / 4);
        (ahead.since(entity.vruntime) > margin).then_some(victim)
    }

    /// The vCPU on `pcpu` if its slice is over while somebody waits; if nobody
    /// does, it gets another slice.
    pub fn expired(&mut self, pcpu: Pcpu, now: Nanos) -> Option<Vcpu> {
        let waiting = self.somebody_waits(now);
        let slot = &mut self.pcpus[pcpu];
        slot.since?;
        if now.since(slot.slice_from) < self.slice {
            return None;
        }
        if !waiting {
            slot.slice_from = now;
            return None;
        }
        slot.running
    }

    /// Whether an eligible vCPU waits for a host CPU.
    pub fn somebody_waits(&self, now: Nanos) -> bool {
        self.next(now).is_some()
    }

    /// `from`, which runs, gives its host CPU to `to`, if `to` is kept waiting.
    /// Returns whether it did.
    pub fn yield_to(&mut self, from: Vcpu, to: Vcpu, now: Nanos) -> bool {
        let entity = &mut self.vcpus[to];
        let firmly_held = entity
            .hold
            .is_some_and(|hold| hold.until > now && !hold.yields_end_it);
        if from == to || entity.state != State::Runnable || firmly_held {
            return false;
        }
        entity.hold = None;
        let pcpu = self.put(from, State::Runnable, now);
        self.assign(to, pcpu);
        true
    }

    /// Stop a vCPU from being chosen until a time.
    pub fn hold(&mut self, vcpu: Vcpu, hold: Hold) {
        self.vcpus[vcpu].hold = Some(hold);
    }

    /// End a hold before its time.
    pub fn release(&mut self, vcpu: Vcpu) {
        self.vcpus[vcpu].hold = None;
    }

    pub fn is_held(&self, vcpu: Vcpu, now: Nanos) -> bool {
        self.vcpus[vcpu].hold.is_some_and(|hold| hold.until > now)
    }

    /// Whether no vCPU runs or can ever run again without a kick from outside.
    pub fn all_halted(&self) -> bool {
        let mut present = self
            .vcpus
            .iter()
            .filter(|entity| entity.state != State::Absent)
            .peekable();
        present.peek().is_some() && present.all(|entity| entity.state == State::Halted)
    }

    pub fn all_absent(&self) -> bool {
        self.vcpus
            .iter()
            .all(|entity| entity.state == State::Absent)
    }

    /// When something happens next by itself: a slice or a hold ends.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let slices = self
            .pcpus
            .iter()
            .filter(|slot| slot.since.is_some())
            .map(|slot| slot.slice_from.plus(self.slice));
        let holds = self
            .vcpus
            .iter()
            .filter(|entity| entity.state == State::Runnable)
            .filter_map(|entity| entity.hold)
            .map(|hold| hold.until)
            .filter(|until| *until > now);
        slices.chain(holds).min()
    }

    fn assign(&mut self, vcpu: Vcpu, pcpu: Pcpu) {
        self.vcpus[vcpu].state = State::Running(pcpu);
        self.pcpus[pcpu].running = Some(vcpu);
    }

    fn next(&self, now: Nanos) -> Option<Vcpu> {
        (0..self.vcpus.len())
            .filter(|vcpu| self.vcpus[*vcpu].state == State::Runnable && !self.is_held(*vcpu, now))
            .min_by_key(|vcpu| (self.vcpus[*vcpu].vruntime, *vcpu))
    }

    fn slot_of(&mut self, vcpu: Vcpu) -> &mut Slot {
        let State::Running(pcpu) = self.vcpus[vcpu].state else {
            panic!("vCPU {vcpu} has no host CPU");
        };
        &mut self.pcpus[pcpu]
    }

    fn vruntime_now(&self, vcpu: Vcpu, now: Nanos) -> Nanos {
        let entity = &self.vcpus[vcpu];
        let running = match entity.state {
            State::Running(pcpu) => self.pcpus[pcpu].since,
            _ => None,
        };
        running.map_or(entity.vruntime, |from| {
            entity.vruntime.plus(now.since(from))
        })
    }

    fn least_vruntime(&self, now: Nanos) -> Nanos {
        (0..self.vcpus.len())
            .filter(|vcpu| matches!(self.vcpus[*vcpu].state, State::Running(_) | State::Runnable))
            .map(|vcpu| self.vruntime_now(vcpu, now))
            .min()
            .unwrap_or(Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Nanos = Nanos::from_millis(4);

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// All vCPUs started and as many as possible running since time 0.
    fn running(vcpus: usize, pcpus: usize) -> Sched {
        let mut sched = Sched::new(vcpus, pcpus, SLICE);
        (0..vcpus).for_each(|vcpu| sched.start(vcpu));
        while let Some((vcpu, _)) = sched.dispatch(Nanos::ZERO) {
            sched.entered(vcpu, Nanos::ZERO);
        }
        sched
    }

    #[test]
    fn no_more_vcpus_run_than_there_are_host_cpus() {
        let sched = running(5, 2);
        let running = (0..5)
            .filter(|vcpu| matches!(sched.state(*vcpu), State::Running(_)))
            .count();
        assert_eq!(running, 2);
    }

    #[test]
    fn a_slice_ends_only_for_somebody() {
        let mut sched = running(2, 2);
        assert_eq!(sched.expired(0, ms(4)), None);
        let mut sched = running(3, 2);
        assert_eq!(sched.expired(0, ms(3)), None);
        assert_eq!(sched.expired(0, ms(4)), Some(0));
        assert_eq!(sched.expired(1, ms(4)), Some(1));
    }

    #[test]
    fn spinners_share_fairly() {
        let mut sched = running(3, 1);
        let mut ran = [0_u64; 3];
        for turn in 1..=300 {
            let now = ms(4 * turn);
            let vcpu = sched.running_on(0).unwrap();
            ran[vcpu] += 1;
            sched.put(vcpu, State::Runnable, now);
            let next = sched.dispatch_on(0, now).unwrap();
            sched.entered(next, now);
        }
        assert_eq!(ran, [100, 100, 100]);
    }

    #[test]
    fn a_long_sleep_earns_half_a_slice_at_most() {
        let mut sched = running(2, 2);
        sched.put(1, State::Halted, ms(1));
        assert!(sched.wake(1, ms(1000)));
        let credit = sched
            .vruntime_now(0, ms(1000))
            .since(sched.vcpus[1].vruntime);
        assert_eq!(credit, ms(2));
        assert!(!sched.wake(1, ms(1000)), "it is awake already");
    }

    #[test]
    fn the_hold_of_a_halted_vcpu_is_no_event() {
        let mut sched = running(1, 1);
        let hold = Hold {
            until: ms(9),
            yields_end_it: false,
        };
        sched.hold(0, hold);
        sched.put(0, State::Halted, ms(1));
        assert_eq!(sched.next_event(ms(1)), None);
        sched.wake(0, ms(2));
        assert_eq!(sched.next_event(ms(2)), Some(ms(9)));
    }

    #[test]
    fn a_stay_is_charged_as_two_slices_at_most() {
        let mut sched = running(2, 2);
        sched.put(0, State::Runnable, ms(1000));
        assert_eq!(sched.vcpus[0].vruntime, ms(8));
    }

    #[test]
    fn a_woken_vcpu_preempts_the_one_that_ran_most() {
        let mut sched = running(3, 2);
        sched.put(0, State::Halted, ms(1));
        let (next, _) = sched.dispatch(ms(1)).unwrap();
        assert_eq!(next, 2);
        sched.entered(2, ms(1));
        sched.wake(0, ms(3));
        assert_eq!(sched.wake_up_victim(0, ms(3)), Some(1));
    }

    #[test]
    fn a_yield_swaps_with_a_waiting_vcpu_only() {
        let mut sched = running(3, 2);
        assert!(!sched.yield_to(0, 1, ms(1)));
        assert!(!sched.yield_to(0, 0, ms(1)));
        assert!(sched.yield_to(0, 2, ms(1)));
        assert_eq!(sched.state(0), State::Runnable);
        assert_eq!(sched.running_on(0), Some(2));
    }

    #[test]
    fn a_held_vcpu_waits_for_its_time_or_for_a_yield() {
        let mut sched = running(2, 2);
        for yields_end_it in [false, true] {
            let pcpu = sched.put(0, State::Runnable, ms(1));
            sched.hold(
                0,
                Hold {
                    until: ms(9),
                    yields_end_it,
                },
            );
            assert_eq!(sched.dispatch(ms(8)), None);
            assert_eq!(sched.yield_to(1, 0, ms(8)), yields_end_it);
            if yields_end_it {
                break;
            }
            assert_eq!(sched.dispatch(ms(9)), Some((0, pcpu)));
            sched.entered(0, ms(9));
        }
    }
}
