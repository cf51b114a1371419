//! The accounting of a tick.

use core::hint::black_box;

use pv_arch::Nanos;
use pv_steal::StealAccount;

#[inline(never)]
fn charging(account: &mut StealAccount) {
    black_box(account.take(black_box(Nanos::MAX), black_box(Nanos::ZERO)));
    black_box(account.split(black_box(Nanos::MAX), black_box(Nanos::ZERO)));
    account.discard(black_box(Nanos::MAX));
}

#[inline(never)]
fn balance(account: &StealAccount) {
    black_box(account.debt());
    black_box(account.charged());
    black_box(account.discarded());
    black_box(account.forgiven());
}

pub fn run() {
    let from_zero = StealAccount::new();
    let from_now = StealAccount::starting_at(black_box(Nanos::ZERO));
    for mut account in black_box([from_zero, from_now]) {
        charging(&mut account);
        balance(&account);
    }
}
