//! Faults of steal time that were seen in the field, with their published
//! numbers: `docs/steal-accounting.md` lists what each of them must do.

use pv_arch::Nanos;
use pv_steal::kvm_x86::StealTime;
use pv_steal::{
    Belief, ClockFault, FaultCounts, HalfLife, HostRecord, Leave, Preemption, ReadError, Split,
    Standing, StealAccount, StealClock, StealEstimate, StealSource,
};

/// Statistics count in ticks of 100 Hz.
const fn ticks(ticks: u64) -> Nanos {
    Nanos::from_millis(10 * ticks)
}

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A clock whose base is steal `raw` at time 0.
fn based(raw: Nanos) -> StealClock {
    let mut clock = StealClock::new();
    assert_eq!(clock.update(Ok(raw), Nanos::ZERO).total, Nanos::ZERO);
    clock
}

/// Xen, live migration: the steal statistic of each of four CPUs went from 335
/// ticks to 312. Here it goes on from there at its usual pace.
#[test]
fn steal_steps_back_from_335_to_312_ticks_on_each_of_four_cpus() {
    for cpu in 0..4 {
        let record = StealTime::new();
        let mut clock = StealClock::new();
        let mut account = StealAccount::new();
        let mut told = Vec::new();
        let published = (300..=335).step_by(5).chain((312..=332).step_by(5));
        for (tick, steal) in (0..).zip(published) {
            record.publish_steal(ticks(steal));
            let reading = clock.update(record.steal(), ticks(10 * tick));
            let split = account.split(reading.total, ticks(10));
            assert_eq!(split.used.plus(split.stolen), ticks(10));
            told.push((split.stolen, reading.fault));
        }
        let back = ClockFault::SteppedBack {
            from: ticks(335),
            to: ticks(312),
        };
        let steady = (ticks(5), None);
        let mut expected = vec![(ticks(0), None)];
        expected.extend([steady; 7]);
        expected.push((ticks(0), Some(back)));
        expected.extend([steady; 4]);
        assert_eq!(told, expected, "cpu{cpu}");
        assert_eq!(clock.total(), ticks(55));
    }
}

/// KVM, restored guest: the host's last run delay came from another thread than
/// the vCPU's, a little ahead of it. The difference is negative, as u64 it is
/// 584 years, and a guest that carries it shows 100 % steal for days. (The value
/// of steal before the restore is from the report of the fault.)
#[test]
fn a_difference_that_is_negative_as_u64_does_not_show_100_percent_for_days() {
    let saved = Nanos::new(144_139_048);
    let (other_thread, vcpu_thread) = (ms(5000), ms(4999));
    let growth = vcpu_thread.get().wrapping_sub(other_thread.get());
    let restored = Nanos::new(saved.get().wrapping_add(growth));
    let second = Nanos::from_secs(1);
    let two_days = 2 * 24 * 3600;

    // What such a guest does.
    let mut owed = restored.get().wrapping_sub(saved.get());
    let mut shown = 0;
    for _ in 0..two_days {
        let stolen = owed.min(second.get());
        owed -= stolen;
        shown += stolen;
    }
    assert_eq!(shown, two_days * second.get(), "100 % for two days");

    let mut clock = based(saved);
    let mut account = StealAccount::new();
    for passed in 1..=two_days {
        let total = clock.update(Ok(restored), Nanos::from_secs(passed)).total;
        assert_eq!(account.take(total, second), Nanos::ZERO);
    }
    let stepped_back = 1;
    let once = FaultCounts {
        stepped_back,
        ..FaultCounts::NONE
    };
    assert_eq!(clock.faults(), once);
}

/// A tick of 4 ms in which steal grows by 10 ms: idle and user time came out
/// negative.
#[test]
fn steal_larger_than_the_interval_makes_no_other_time_negative() {
    let mut clock = based(ms(0));
    let mut account = StealAccount::new();
    let mut splits = Vec::new();
    for tick in 1..=4 {
        let reading = clock.update(Ok(ms(10)), ms(4 * tick));
        assert_eq!(reading.fault, None);
        splits.push(account.split(reading.total, ms(4)));
    }
    let split = |stolen, used| Split {
        stolen: ms(stolen),
        used: ms(used),
    };
    assert_eq!(splits, [split(4, 0), split(4, 0), split(2, 2), split(0, 4)]);
}

/// A 32-bit guest reads steal in halves while the low one wraps, after 4.29 s of
/// steal: for one reading the high half is wrong.
#[test]
fn a_torn_read_is_not_told_and_does_not_last() {
    let wrap = 1_u64 << 32;
    let (before, after) = (wrap - 1_000_000, wrap + 1_000_000);
    let old_low_new_high = after & !(wrap - 1) | before & (wrap - 1);
    let new_low_old_high = before & !(wrap - 1) | after & (wrap - 1);
    assert_eq!(old_low_new_high - before, wrap, "4.29 s too much");
    assert_eq!(after - new_low_old_high, wrap, "4.29 s too little");

    for torn in [old_low_new_high, new_low_old_high] {
        let mut clock = based(Nanos::new(before));
        let at_torn = clock.update(Ok(Nanos::new(torn)), ms(10));
        let at_good = clock.update(Ok(Nanos::new(after)), ms(20));
        assert_eq!((at_torn.total, at_good.total), (ms(0), ms(0)));
        assert_eq!(clock.faults().sum(), 2, "to the torn value and back");
        let next = clock.update(Ok(Nanos::new(after).plus(ms(3))), ms(30));
        assert_eq!((next.total, next.fault), (ms(3), None));
    }
}

/// A vCPU that gets nothing for a day (in readings of a second): steal is wall
/// time, exactly, and no task is charged.
#[test]
fn a_day_of_100_percent_steal_is_a_day() {
    let mut clock = based(Nanos::new(u64::MAX - 5));
    let mut account = StealAccount::new();
    let mut recent = StealEstimate::new(HalfLife::SHORT);
    let second = Nanos::from_secs(1);
    let day = 24 * 3600;
    for passed in 1..=day {
        let now = Nanos::from_secs(passed);
        let raw = now.get().wrapping_add(u64::MAX - 5);
        let reading = clock.update(Ok(Nanos::new(raw)), now);
        let Split { stolen, used } = account.split(reading.total, second);
        assert_eq!((stolen, used), (second, Nanos::ZERO));
        recent.update(stolen, second);
        assert_eq!(recent.permille(), 1000);
        assert!(recent.exceeds(999));
    }
    assert_eq!(clock.total(), Nanos::from_secs(day));
    assert_eq!(clock.faults(), FaultCounts::NONE);
}

/// The host died within an update: the version stays odd for an hour. The clock
/// holds; and when a new host makes it even, the hour that steal went on for is
/// told once, and not charged to an hour of tasks.
#[test]
fn a_version_that_stays_odd_for_an_hour_costs_a_second_at_most() {
    let stuck = Err(ReadError::StuckInUpdate {
        version: 4711,
        tries: 64,
    });
    let tick = ticks(1);
    let hour = 360_000;
    let mut clock = based(ms(0));
    let mut account = StealAccount::new();
    for passed in 1..=hour {
        let reading = clock.update(stuck, ticks(passed));
        assert_eq!(account.take(reading.total, tick), Nanos::ZERO);
    }
    assert_eq!(clock.faults().unreadable, 360_000);
    let good = clock.update(Ok(ticks(hour / 2)), ticks(hour + 1));
    assert_eq!((good.total, good.fault), (ticks(hour / 2), None));
    let charged = (0..hour)
        .filter(|_| account.take(good.total, tick) > Nanos::ZERO)
        .count();
    assert_eq!(charged, 101, "the first tick, and a second of them");
}

/// The record lies where the host cannot reach it (a page boundary, unmapped or
/// encrypted memory): it never updates.
#[test]
fn a_record_that_never_updates_is_not_believed() {
    let record = StealTime::new();
    let mut belief = Belief::new();
    for passed in 0..=60_000 {
        let said = belief.look(record.preemption(), record.steal(), ms(passed));
        assert_eq!(said, Preemption::Unknown);
    }
    let watched = Nanos::from_secs(60);
    assert_eq!(belief.standing(), Standing::Unheard { watched });
}

/// A CPU is unplugged with its bit set: it was avoided for ever.
#[test]
fn a_bit_left_set_is_not_believed_for_ever_and_not_at_all_after_a_reset() {
    let record = StealTime::new();
    record.leave(ms(0), Leave::Preempted);
    let mut belief = Belief::new();
    let mut look = |at| belief.look(record.preemption(), record.steal(), at);
    assert_eq!(look(ms(0)), Preemption::Preempted);
    assert_eq!(look(ms(1000)), Preemption::Preempted);
    assert_eq!(look(ms(1001)), Preemption::Unknown);
    assert_eq!(look(Nanos::from_secs(86_400)), Preemption::Unknown);

    // Registered again, which clears the record.
    let record = StealTime::new();
    belief.reset();
    let said = belief.look(record.preemption(), record.steal(), ms(0));
    assert_eq!(said, Preemption::Unknown);
}

/// A nested host counts steal and never sets the bit: `preemption_reported` is
/// 0 while steal runs. A quarter of the time is stolen; looks come at 4 ms.
#[test]
fn a_host_that_reports_no_preemption_while_steal_runs_is_found_out() {
    let record = StealTime::new();
    let mut belief = Belief::new();
    let mut found_out = None;
    for look in 0..1000 {
        record.enter(ms(4 * look), ms(look));
        let said = belief.look(record.preemption(), record.steal(), ms(4 * look));
        if look > 0 && said == Preemption::Unknown {
            found_out.get_or_insert(look);
        }
    }
    assert_eq!(found_out, Some(64), "16 expected hits at 1/4 each");
    assert_eq!(belief.standing(), Standing::Silent);
}
