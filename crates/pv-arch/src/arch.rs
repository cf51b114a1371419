//! The trait that a guest kernel implements.

use crate::sync::hint;
use crate::{CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply};

/// Everything that paravirtual code needs from the kernel it is linked into.
///
/// All functions are static: a lock must be const-constructible and carry no
/// reference, so the kernel is a type (usually an empty struct), not a value.
/// The required methods are those that every kernel has; the others default to
/// what a machine without a hypervisor does.
///
/// # Words used in the contracts
///
/// * *Pinned*: the caller cannot be moved to another CPU for as long as it uses
///   the answer (preemption off, or interrupts off, or an idle task).
/// * *Hint*: may be wrong or stale in either direction; correctness must not
///   depend on it.
/// * *Spurious*: may return although nothing happened.
///
/// No method may panic, allocate, or take a lock that its caller might hold.
pub trait Arch: Sized + 'static {
    /// What [`irq_save`](Arch::irq_save) must remember to undo itself: flags,
    /// a nesting count, or `()` where there are no interrupts.
    type IrqState;

    /// The CPU that executes this call.
    ///
    /// *Caller*: any context, pinned; the answer holds while it stays pinned.
    /// *Ordering*: none. *Range*: below [`cpu_count`](Arch::cpu_count).
    fn this_cpu() -> CpuId;

    /// How many CPUs there can ever be (possible, not online).
    ///
    /// *Caller*: any context. Constant after boot.
    fn cpu_count() -> CpuCount;

    /// A clock in nanoseconds that never goes back on one CPU.
    ///
    /// *Caller*: any context, NMI included. *Between CPUs*: may differ by less
    /// than it takes to pass a message; users compare readings of one CPU only.
    /// Must count wall time: it goes on while the vCPU is preempted.
    fn now() -> Nanos;

    /// One turn of a wait that ends after a bounded number of turns.
    ///
    /// *Caller*: any context. *Ordering*: none. Cheap: a few to some hundred
    /// cycles. A model checker must not schedule another thread here, or the
    /// path behind the bound is never explored.
    #[inline(always)]
    fn relax_bounded() {
        hint::relax_bounded();
    }

    /// One turn of a wait that only another CPU can end.
    ///
    /// *Caller*: any context, interrupts on or off. *Ordering*: none. Kernels
    /// that serve TLB shoot-downs or the like while they spin do it here.
    #[inline(always)]
    fn relax_unbounded() {
        hint::relax_unbounded();
    }

    /// Mask interrupts on this CPU and say how they were.
    ///
    /// *Caller*: any context; nests. *Ordering*: a compiler barrier: nothing
    /// moves out of the masked region upwards.
    fn irq_save() -> Self::IrqState;

    /// Put interrupts back as they were.
    ///
    /// *Caller*: the context that saved, innermost first. *Ordering*: a compiler
    /// barrier: nothing moves out of the masked region downwards.
    fn irq_restore(state: Self::IrqState);

    /// Give the CPU back to the host for as long as `still()` is true and no
    /// kick has come.
    ///
    /// With interrupts masked, evaluate `still()`; if it is false return at
    /// once; else halt such that a kick or an interrupt which arrives *after*
    /// the evaluation ends the halt (on x86 the enable-and-halt pair). If
    /// interrupts were on, they are on while halted; if they were off, only a
    /// kick ends the halt.
    ///
    /// *Caller*: pinned; not from an NMI (there, return at once).
    /// *Returns*: after a kick, after an interrupt was served, or *spuriously*;
    /// the caller re-checks and calls again. `still` may be evaluated any number
    /// of times, and is evaluated at least once. *Ordering*: **consumes the
    /// pending kick with Acquire**: what the kicker wrote before it kicked is
    /// visible after the return.
    ///
    /// The condition is not optional. Contexts that nest on one CPU share its
    /// one pending kick; an interrupt handler that waits may consume the kick of
    /// the context below it, which then halts only if its own condition, looked
    /// at with interrupts off, still holds.
    #[inline]
    fn halt_while(mut still: impl FnMut() -> bool) {
        if still() {
            Self::relax_unbounded();
        }
    }

    /// End the halt of `cpu`, now or next time.
    ///
    /// *Caller*: any context. *Sticky*: a kick sent to a CPU that is not halted
    /// is remembered and ends its next halt at once; several pending kicks are
    /// one. *Ordering*: **a read-modify-write with Release.** A plain store
    /// could be ordered before the target's consumption of an earlier kick and
    /// vanish. A CPU number out of range is ignored.
    #[inline]
    fn kick(cpu: CpuId) {
        let _ = cpu;
    }

    /// Offer the rest of this vCPU's time to `cpu`.
    ///
    /// *Caller*: any context in which being away for long does no harm.
    /// *Hint*; *ordering*: none. The caller may lose its CPU before the return.
    #[inline]
    fn yield_to(cpu: CpuId) -> Yielded {
        let _ = cpu;
        Yielded::Unsupported
    }

    /// Whether the host says that `cpu` is runnable but not running.
    ///
    /// *Caller*: any context. *Hint*; *ordering*: none. Must be cheap: one load
    /// of a shared line (`pv-steal` has the readers). Answers `false` for the
    /// calling CPU, for a CPU out of range, and where the host does not tell.
    #[inline(always)]
    fn is_preempted(cpu: CpuId) -> bool {
        let _ = cpu;
        false
    }

    /// The guest-physical address of an object that the kernel owns, or `None`
    /// if it is not mapped at one (or not contiguously for `len` bytes, or in
    /// memory that the host cannot read because it is encrypted).
    ///
    /// *Caller*: boot and CPU hot-plug. The answer must hold until the object is
    /// given up.
    #[inline]
    fn guest_addr(object: *const u8, len: usize) -> Option<GuestAddr> {
        let _ = (object, len);
        None
    }

    /// Execute one platform call on this CPU and return the raw answer.
    ///
    /// *Caller*: pinned, where the call is allowed (usually boot and CPU
    /// hot-plug; [`PlatformCall::Sigp`] and [`PlatformCall::CpuTimer`] in any
    /// context). *Ordering*: a compiler barrier. A call that this machine does
    /// not have, or that traps, answers [`Reply::REFUSED`].
    #[inline]
    fn platform_call(call: PlatformCall) -> Reply {
        let _ = call;
        Reply::REFUSED
    }

    /// Make every store that `cpu` has executed so far visible, and every load
    /// it executes from now on see what the caller wrote before this call.
    ///
    /// An inter-processor interrupt that is waited for, or `membarrier` in user
    /// space. *Caller*: interrupts on. *Ordering*: a full barrier on both CPUs.
    /// Returns `false`, having done nothing, where this is absent: users must
    /// then order both sides themselves.
    #[inline]
    fn serialize(cpu: CpuId) -> bool {
        let _ = cpu;
        false
    }
}

/// What became of a directed yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Yielded {
    /// The host ran the target in the caller's place.
    Boosted,
    /// The host saw nothing to gain: the target runs, sleeps, or does not exist.
    NothingToGain,
    /// This machine has no directed yield.
    Unsupported,
}
