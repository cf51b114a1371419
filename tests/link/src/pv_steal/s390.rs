//! s390, which has no record, through both kernels.

use core::hint::black_box;

use pv_arch::{Arch, CpuId, Reply};
use pv_steal::StealSource;
use pv_steal::s390::{
    StolenTime, invalid_order_reply, read_sense_reply, register, sense, sense_reply, unregister,
};

use super::record::guest_side;
use crate::kernel::{Defaults, Kernel};

#[inline(never)]
fn own_time<A: Arch>(time: &StolenTime<A>) {
    black_box(register(time).is_ok());
    time.begin_wait();
    time.end_wait();
    black_box(time.steal().is_ok());
    black_box(time.preemption());
    unregister(time);
}

#[inline(never)]
fn sensing() {
    black_box(sense(CpuId::new(black_box(1))));
    black_box(read_sense_reply(black_box(Reply::REFUSED)));
    black_box(sense_reply(black_box(true)));
    black_box(invalid_order_reply());
}

#[inline(never)]
fn every_method<A: Arch>() {
    let time = black_box(StolenTime::<A>::new(black_box(CpuId::BOOT)));
    own_time(&time);
    guest_side(&time);
}

pub fn run() {
    every_method::<Kernel>();
    every_method::<Defaults>();
    sensing();
}
