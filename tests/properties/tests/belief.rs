//! `Belief`: never more than the record says, and not for ever.

use proptest::collection::vec;
use proptest::prelude::*;
use pv_arch::Nanos;
use pv_properties::{any_magnitude, config, nasty};
use pv_steal::{Belief, Preemption, ReadError, SILENCE_HITS, Standing, TRUST_BOUND};

const MS: u64 = 1_000_000;

fn word() -> impl Strategy<Value = Preemption> {
    prop_oneof![
        6 => Just(Preemption::Preempted),
        3 => Just(Preemption::Running),
        1 => Just(Preemption::Unknown),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Steal {
    Same,
    Plus(u64),
    Is(u64),
    Unreadable,
}

fn steal() -> impl Strategy<Value = Steal> {
    prop_oneof![
        20 => Just(Steal::Same),
        2 => (0..20 * MS).prop_map(Steal::Plus),
        1 => nasty().prop_map(Steal::Is),
        2 => Just(Steal::Unreadable),
    ]
}

/// The guest's clock: forward, mostly; where to, otherwise.
fn time() -> impl Strategy<Value = (bool, u64)> {
    prop_oneof![
        8 => (0..400 * MS).prop_map(|by| (true, by)),
        1 => any_magnitude().prop_map(|by| (true, by)),
        1 => nasty().prop_map(|to| (false, to)),
    ]
}

const UNREADABLE: ReadError = ReadError::KeepsChanging {
    version: 8,
    tries: 64,
};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_set_bit_is_never_believed_beyond_the_bound_and_an_unset_one_never_invented(
        looks in vec((word(), steal(), time()), 1..80),
    ) {
        let mut belief = Belief::new();
        let (mut now, mut raw) = (0_u64, 0_u64);
        // For how long the bit has been seen set with no growth of steal, and
        // the steal that growth is measured from.
        let mut set_for: Option<u64> = None;
        let mut known: Option<u64> = None;
        for (said, steal, (forward, time)) in looks {
            let before = now;
            now = if forward { now.saturating_add(time) } else { time };
            let read = match steal {
                Steal::Same => Ok(raw),
                Steal::Plus(by) => Ok(raw.wrapping_add(by)),
                Steal::Is(steal) => Ok(steal),
                Steal::Unreadable => Err(UNREADABLE),
            };
            let mut grew = false;
            if let Ok(read) = read {
                grew = known.is_some_and(|old| (1..1 << 63).contains(&read.wrapping_sub(old)));
                raw = read;
                known = Some(read);
            }
            set_for = match (said, set_for) {
                (Preemption::Preempted, Some(so_far)) if !grew => {
                    Some(so_far.saturating_add(now.saturating_sub(before)))
                }
                (Preemption::Preempted, _) => Some(0),
                _ => None,
            };

            let believed = belief.look(said, read.map(Nanos::new), Nanos::new(now));
            prop_assert!(believed == said || believed == Preemption::Unknown);
            if let Some(set_for) = set_for {
                let within = Nanos::new(set_for) <= TRUST_BOUND;
                prop_assert_eq!(believed == Preemption::Preempted, within, "set for {}", set_for);
            }
        }
    }

    /// Each wait spans a look. The host sets the bit; it is never called
    /// silent, and while it waits it is believed.
    #[test]
    fn an_honest_host_is_never_called_silent(
        stretches in vec((1..5 * MS, 1..50 * MS, 1..5_u64), 1..60),
    ) {
        let mut belief = Belief::new();
        let (mut now, mut steal) = (0_u64, 1_u64);
        for (run, wait, looks) in stretches {
            now += run;
            let running = belief.look(Preemption::Running, Ok(Nanos::new(steal)), Nanos::new(now));
            prop_assert_eq!(running, Preemption::Running);
            for look in 1..=looks {
                let at = Nanos::new(now + wait * look / (looks + 1));
                let waiting = belief.look(Preemption::Preempted, Ok(Nanos::new(steal)), at);
                prop_assert_eq!(waiting, Preemption::Preempted);
            }
            now += wait;
            steal += wait;
            prop_assert_eq!(belief.standing(), Standing::Speaks);
        }
    }

    /// Fewer misses than it takes, then a hit, again and again. The wait that was
    /// hit is no miss when its steal shows.
    #[test]
    fn a_hit_makes_up_for_what_was_missed(
        rounds in vec((1..50 * MS, 0..u64::from(SILENCE_HITS)), 1..20),
    ) {
        let mut belief = Belief::new();
        let (mut now, mut steal) = (0_u64, 0_u64);
        for (wait, misses) in rounds {
            let _ = belief.look(Preemption::Preempted, Ok(Nanos::new(steal)), Nanos::new(now));
            for _ in 0..=misses {
                now += wait;
                steal += wait;
                let said = belief.look(Preemption::Running, Ok(Nanos::new(steal)), Nanos::new(now));
                prop_assert_eq!(said, Preemption::Running);
            }
        }
    }

    /// Each wait spans a look. The host never sets the bit: after as many waits
    /// as hits were to be expected it is called silent, and not before.
    #[test]
    fn a_host_that_never_sets_the_bit_is_found_out_in_time(
        stretches in vec((2..50 * MS, 0..100_u64), 2 * usize::from(SILENCE_HITS)),
    ) {
        let mut belief = Belief::new();
        let (mut now, mut steal) = (0_u64, 1_u64);
        let mut look = |steal: u64, now: u64| {
            let _ = belief.look(Preemption::Running, Ok(Nanos::new(steal)), Nanos::new(now));
            belief.standing()
        };
        for (waits, (wait, percent)) in (1..).zip(stretches) {
            // A look when it ran, one within the wait, one right after it: so
            // more was stolen since the second than passed since the second.
            look(steal, now);
            let within = now + 1 + (wait - 1) * percent / 100;
            look(steal, within);
            now += wait;
            steal += wait;
            let expected = if waits >= u64::from(SILENCE_HITS) {
                Standing::Silent
            } else {
                Standing::Speaks
            };
            prop_assert_eq!(look(steal, now), expected);
        }
    }

    #[test]
    fn a_record_that_stays_zero_is_never_believed(times in vec(time(), 1..80)) {
        let mut belief = Belief::new();
        let (mut now, mut watched, mut before) = (0_u64, 0_u64, None);
        for (forward, time) in times {
            now = if forward { now.saturating_add(time) } else { time };
            let said = belief.look(Preemption::Running, Ok(Nanos::ZERO), Nanos::new(now));
            prop_assert_eq!(said, Preemption::Unknown);
            if let Some(before) = before {
                watched = now.saturating_sub(before).saturating_add(watched);
            }
            before = Some(now);
            let watched = Nanos::new(watched);
            prop_assert_eq!(belief.standing(), Standing::Unheard { watched });
        }
    }
}
