//! `StealAccount`: nothing is lost, nothing invented, no interval overcharged.

use proptest::collection::vec;
use proptest::prelude::*;
use pv_arch::Nanos;
use pv_properties::{config, nasty};
use pv_steal::{DEBT_BOUND, StealAccount};

const MS: u64 = 1_000_000;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_total_and_interval_balances(
        start in nasty(),
        steps in vec((nasty(), nasty(), 0..8_u8), 1..60),
    ) {
        let mut account = StealAccount::starting_at(Nanos::new(start));
        let mut total = start;
        for (grow, interval, kind) in steps {
            total = total.saturating_add(grow);
            let interval = Nanos::new(interval);
            if kind == 0 {
                account.discard(Nanos::new(total));
                prop_assert_eq!(account.debt(), Nanos::ZERO);
            } else {
                let split = account.split(Nanos::new(total), interval);
                prop_assert!(split.stolen <= interval);
                prop_assert_eq!(u128::from(split.stolen.get()) + u128::from(split.used.get()),
                    u128::from(interval.get()));
            }
            prop_assert!(account.debt() <= DEBT_BOUND);
            let parts = [account.charged(), account.discarded(), account.forgiven(), account.debt()];
            let sum: u128 = parts.iter().map(|part| u128::from(part.get())).sum();
            prop_assert_eq!(sum, u128::from(total - start));
        }
    }

    /// Steal up to a second ahead of the intervals is charged to the last
    /// nanosecond, and never before it came.
    #[test]
    fn all_steal_is_charged_in_the_end_and_none_before_it_came(
        steps in vec((0..16 * MS, 1..20 * MS), 1..60),
        ticks in 1..20 * MS,
    ) {
        let mut account = StealAccount::new();
        let (mut total, mut taken) = (0_u64, 0_u64);
        for (grow, interval) in steps {
            total += grow;
            taken += account.take(Nanos::new(total), Nanos::new(interval)).get();
            prop_assert!(taken <= total);
            prop_assert_eq!(taken + account.debt().get(), total);
        }
        for _ in 0..=account.debt().get() / ticks {
            taken += account.take(Nanos::new(total), Nanos::new(ticks)).get();
        }
        prop_assert_eq!(taken, total);
    }

    /// Two consumers cut the same hour differently and charge the same.
    #[test]
    fn how_time_is_cut_does_not_matter_in_the_end(
        // (length, stolen) of stretches of wall time; cuts after some of them.
        stretches in vec((1..20 * MS, 0..=100_u64, any::<bool>(), any::<bool>()), 1..60),
    ) {
        let mut accounts = [StealAccount::new(), StealAccount::new()];
        let mut since = [0_u64; 2];
        let (mut total, mut now) = (0_u64, 0_u64);
        for (length, percent, first, second) in stretches {
            now += length;
            total += length / 100 * percent;
            for (who, cut) in [first, second].into_iter().enumerate() {
                if cut {
                    let interval = Nanos::new(now - since[who]);
                    let _ = accounts[who].take(Nanos::new(total), interval);
                    since[who] = now;
                }
            }
        }
        for (account, since) in accounts.iter_mut().zip(since) {
            let _ = account.take(Nanos::new(total), Nanos::new(now - since));
            prop_assert_eq!(account.charged().get(), total);
        }
    }
}
