//! What the vCPUs of a guest share of each other.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use pv_arch::sync::atomic::{AtomicU64, Ordering};
use pv_arch::{CpuCount, CpuId};

use crate::platform::Driver;

/// What all vCPUs of the guest know of each other.
pub(crate) struct GuestTables {
    drivers: Vec<OnceLock<&'static dyn Driver>>,
    looks: Vec<CachePadded<Looks>>,
}

/// How often a vCPU was looked at by others, and seen preempted.
#[derive(Default)]
struct Looks {
    all: AtomicU64,
    preempted: AtomicU64,
}

impl GuestTables {
    pub fn new(count: CpuCount) -> Self {
        Self {
            drivers: count.cpus().map(|_| OnceLock::new()).collect(),
            looks: count.cpus().map(|_| CachePadded::default()).collect(),
        }
    }

    /// The driver of `cpu`'s record is there.
    pub fn introduce(&self, cpu: CpuId, driver: &'static dyn Driver) {
        self.drivers[cpu.index()].get_or_init(|| driver);
    }

    /// Somebody looked at `cpu`.
    pub fn looked_at(&self, cpu: CpuId, is_preempted: bool) {
        let looks = &self.looks[cpu.index()];
        looks.all.fetch_add(1, Ordering::Relaxed);
        if is_preempted {
            looks.preempted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What `cpu`'s record says; nothing before it is registered.
    pub fn is_preempted(&self, cpu: CpuId) -> bool {
        self.drivers
            .get(cpu.index())
            .and_then(OnceLock::get)
            .is_some_and(|driver| driver.source().is_preempted())
    }

    /// How often others looked at `cpu`, and how often it seemed preempted.
    pub fn looks_at(&self, cpu: CpuId) -> (u64, u64) {
        let looks = &self.looks[cpu.index()];
        (
            looks.all.load(Ordering::Relaxed),
            looks.preempted.load(Ordering::Relaxed),
        )
    }
}
