//! `StealClock`: monotonic and within wall time, whatever the record does.

use proptest::collection::vec;
use proptest::prelude::*;
use pv_arch::Nanos;
use pv_properties::{any_magnitude, config, nasty};
use pv_steal::{CARRY_BOUND, FaultCounts, ReadError, StealClock};

const MS: u64 = 1_000_000;

/// What the record holds at a reading, seen from the reading before.
#[derive(Clone, Copy, Debug)]
enum Raw {
    Plus(u64),
    Minus(u64),
    Is(u64),
    /// The high half of another value, as a reader in two halves sees it.
    Torn(u32),
    Unreadable,
}

/// What the guest's own clock did since.
#[derive(Clone, Copy, Debug)]
enum Time {
    Plus(u64),
    Minus(u64),
    Is(u64),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Reading(Raw, Time),
    Rebase,
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        8 => (0..20 * MS).prop_map(Raw::Plus),
        2 => any_magnitude().prop_map(Raw::Plus),
        2 => any_magnitude().prop_map(Raw::Minus),
        2 => nasty().prop_map(Raw::Is),
        1 => (0..4_u32).prop_map(Raw::Torn),
        1 => Just(Raw::Unreadable),
    ]
}

fn forward() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => (0..20 * MS).prop_map(Time::Plus),
        1 => (0..1_u64 << 45).prop_map(Time::Plus),
    ]
}

fn any_time() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => forward(),
        1 => (0..20 * MS).prop_map(Time::Minus),
        1 => any_magnitude().prop_map(Time::Minus),
        1 => any_magnitude().prop_map(Time::Plus),
        1 => nasty().prop_map(Time::Is),
    ]
}

/// Times that leave room after them.
fn early_time() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => forward(),
        1 => any_magnitude().prop_map(Time::Minus),
        1 => (0..1_u64 << 61).prop_map(Time::Is),
    ]
}

/// The latest time of all events.
fn latest(events: &[Event]) -> u64 {
    let (mut now, mut latest) = (1000 * MS, 1000 * MS);
    for event in events {
        if let Event::Reading(_, time) = event {
            now = after(*time, now);
            latest = latest.max(now);
        }
    }
    latest
}

fn events(time: impl Strategy<Value = Time>) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        20 => (raw(), time).prop_map(|(raw, time)| Event::Reading(raw, time)),
        1 => Just(Event::Rebase),
    ];
    vec(event, 1..60)
}

fn after(time: Time, now: u64) -> u64 {
    match time {
        Time::Plus(by) => now.saturating_add(by),
        Time::Minus(by) => now.saturating_sub(by),
        Time::Is(now) => now,
    }
}

fn becomes(raw: Raw, steal: u64) -> Result<u64, ReadError> {
    Ok(match raw {
        Raw::Plus(by) => steal.wrapping_add(by),
        Raw::Minus(by) => steal.wrapping_sub(by),
        Raw::Is(steal) => steal,
        Raw::Torn(high) => u64::from(high) << 32 | steal & 0xffff_ffff,
        Raw::Unreadable => {
            return Err(ReadError::StuckInUpdate {
                version: 7,
                tries: 64,
            });
        }
    })
}

/// Feed `events`, check after each reading what must hold, and return a time
/// that is not before the last one.
fn feed(clock: &mut StealClock, events: &[Event]) -> Result<u64, TestCaseError> {
    let (mut steal, mut now) = (u64::MAX - 30 * MS, 1000 * MS);
    let mut read_at: Option<u64> = None;
    let mut wall = 0_u64;
    for event in events {
        let Event::Reading(raw, time) = *event else {
            clock.rebase();
            continue;
        };
        now = after(time, now);
        let before = clock.total().get();
        let raw = becomes(raw, steal);
        let total = clock
            .update(raw.map(Nanos::new), Nanos::new(now))
            .total
            .get();

        let elapsed = match (raw, read_at) {
            (Ok(_), Some(earlier)) => now.saturating_sub(earlier),
            _ => 0,
        };
        prop_assert!(total >= before, "went back from {before} to {total}");
        prop_assert!(
            total - before <= elapsed,
            "grew by {} in {elapsed}",
            total - before
        );
        wall = wall.saturating_add(elapsed);
        prop_assert!(total <= wall, "total {total} in {wall} of wall time");
        if let Ok(raw) = raw {
            (steal, read_at) = (raw, Some(now));
        }
    }
    Ok(now.max(read_at.unwrap_or(0)))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_record_leaves_the_clock_monotonic_and_within_wall_time(events in events(any_time())) {
        feed(&mut StealClock::new(), &events)?;
    }

    #[test]
    fn the_total_never_exceeds_the_time_since_the_first_reading(events in events(forward())) {
        let mut clock = StealClock::new();
        let end = feed(&mut clock, &events)?;
        // The first reading is not before 1 s, where `feed` starts.
        prop_assert!(clock.total().get() <= end - 1000 * MS);
    }

    /// An honest record is told to the nanosecond, from any start, over a wrap.
    #[test]
    fn nothing_is_lost_of_an_honest_record(
        start in nasty(),
        steps in vec((any_magnitude().prop_map(|n| n >> 8), 0..=100_u64), 1..60),
    ) {
        let mut clock = StealClock::new();
        let (mut now, mut stolen) = (0_u64, 0_u64);
        let _ = clock.update(Ok(Nanos::new(start)), Nanos::ZERO);
        for (elapsed, percent) in steps {
            now += elapsed;
            stolen += elapsed / 100 * percent;
            let raw = Nanos::new(start.wrapping_add(stolen));
            let reading = clock.update(Ok(raw), Nanos::new(now));
            prop_assert_eq!((reading.total.get(), reading.fault), (stolen, None));
        }
    }

    /// A host that accounts whole ticks, each at its start.
    #[test]
    fn a_host_that_is_a_tick_ahead_is_told_in_time_and_without_a_fault(
        steps in vec((0..30 * MS, 0..=100_u64), 1..100),
    ) {
        let tick = CARRY_BOUND.get();
        let mut clock = StealClock::new();
        let (mut now, mut stolen) = (0_u64, 0_u64);
        let _ = clock.update(Ok(Nanos::ZERO), Nanos::ZERO);
        for (elapsed, percent) in steps {
            now += elapsed;
            stolen += elapsed / 100 * percent;
            let published = Nanos::new(stolen.next_multiple_of(tick));
            let _ = clock.update(Ok(published), Nanos::new(now));
            prop_assert!(clock.total() <= published);
        }
        // A tick later all that was published has been told.
        let published = Nanos::new(stolen.next_multiple_of(tick));
        let _ = clock.update(Ok(published), Nanos::new(now + tick));
        prop_assert_eq!(clock.total(), published);
        prop_assert_eq!(clock.faults(), FaultCounts::NONE);
    }

    /// Readings come with a time up to the bound too early, so it steps back.
    #[test]
    fn skew_of_the_guests_clock_costs_no_steal(
        steps in vec((0..30 * MS, 0..=100_u64, 0..=CARRY_BOUND.get()), 1..60),
    ) {
        let mut clock = StealClock::new();
        let (mut now, mut stolen) = (1000 * MS, 0_u64);
        let _ = clock.update(Ok(Nanos::ZERO), Nanos::new(now));
        for (elapsed, percent, early) in steps {
            now += elapsed;
            stolen += elapsed / 100 * percent;
            let _ = clock.update(Ok(Nanos::new(stolen)), Nanos::new(now - early));
        }
        let _ = clock.update(Ok(Nanos::new(stolen)), Nanos::new(now).plus(CARRY_BOUND));
        prop_assert_eq!(clock.total().get(), stolen);
        let time_went_back = clock.faults().time_went_back;
        prop_assert_eq!(clock.faults(), FaultCounts { time_went_back, ..FaultCounts::NONE });
    }

    /// A host that tells more than wall time, for however long, is owed a tick.
    #[test]
    fn what_is_still_to_be_told_is_within_the_bound(
        steps in vec((0..30 * MS, 0..=CARRY_BOUND.get()), 1..60),
    ) {
        let mut clock = StealClock::new();
        let (mut now, mut raw, mut ahead) = (0_u64, 0_u64, 0_u64);
        let _ = clock.update(Ok(Nanos::ZERO), Nanos::ZERO);
        for (elapsed, by) in steps {
            now += elapsed;
            raw += elapsed + by;
            ahead += by;
            let _ = clock.update(Ok(Nanos::new(raw)), Nanos::new(now));
            prop_assert_eq!(clock.total().get(), now, "it was all stolen");
        }
        let _ = clock.update(Ok(Nanos::new(raw)), Nanos::new(now + 1000 * MS));
        prop_assert_eq!(clock.total().get() - now, ahead.min(CARRY_BOUND.get()));
        prop_assert_eq!(clock.faults().overran > 0, ahead > CARRY_BOUND.get());
        prop_assert_eq!(clock.faults().jumped, 0);
    }

    /// Whatever happened before, one reading of a good record is enough.
    #[test]
    fn no_fault_lasts(
        events in events(early_time()),
        start in nasty(),
        steps in vec((1..30 * MS, 0..=100_u64), 1..30),
    ) {
        let mut clock = StealClock::new();
        feed(&mut clock, &events)?;
        // Well after every reading. (A clock that is set back by less than the
        // carry bound is skew: then the old base is good until its time comes.)
        let mut now = latest(&events) + 1000 * MS;
        let _ = clock.update(Ok(Nanos::new(start)), Nanos::new(now));
        let (total, faults) = (clock.total().get(), clock.faults());
        let mut stolen = 0_u64;
        for (elapsed, percent) in steps {
            now += elapsed;
            stolen += elapsed / 100 * percent;
            let raw = Nanos::new(start.wrapping_add(stolen));
            let _ = clock.update(Ok(raw), Nanos::new(now));
        }
        let grown = clock.total().get() - total;
        prop_assert!(grown >= stolen, "{grown} of {stolen} told");
        prop_assert!(grown <= stolen + CARRY_BOUND.get(), "{grown} of {stolen} told");
        let overran = clock.faults().overran;
        prop_assert_eq!(FaultCounts { overran, ..faults }, clock.faults());
    }

    #[test]
    fn a_new_record_is_taken_as_it_is(
        events in events(any_time()),
        raw in nasty(),
        now in nasty(),
    ) {
        let mut clock = StealClock::new();
        feed(&mut clock, &events)?;
        let total = clock.total();
        clock.rebase();
        let reading = clock.update(Ok(Nanos::new(raw)), Nanos::new(now));
        prop_assert_eq!((reading.total, reading.fault), (total, None));
    }
}
