//! The sync shim: `core`'s atomics, or [loom](https://docs.rs/loom)'s under
//! `cfg(pv_loom)`.
//!
//! Every crate of the workspace takes its atomics, fences and cells from here,
//! and clippy's `disallowed-types` keeps it so (under `cfg(pv_loom)`, where `core`'s
//! own types are no longer the shim's); one cfg then model-checks the
//! code that ships, not a copy of it. The cfg has its own name so that a
//! `--cfg loom` meant for somebody else does not switch it.
//!
//! Beside the types, the shim has three things that make checking possible:
//!
//! * [`orderings!`](crate::orderings) names each memory ordering once. Under
//!   loom a model can weaken any of them from outside and must then fail.
//! * [`seeded_bug!`](crate::seeded_bug) marks a place where a known mistake can
//!   be switched on under loom; elsewhere it is the constant `false`.
//! * [`const_new!`](crate::const_new) writes `const fn` constructors, which
//!   loom's types cannot have.

mod macros;
#[cfg(pv_loom)]
pub mod mutate;

/// Atomic integers, orderings and fences.
pub mod atomic {
    #[cfg(all(not(pv_loom), target_has_atomic = "64"))]
    pub use core::sync::atomic::AtomicU64;
    #[cfg(not(pv_loom))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, compiler_fence, fence,
    };

    #[cfg(pv_loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    };

    pub use core::sync::atomic::Ordering;

    /// A memory fence. Unlike `core`'s, it takes `Relaxed` and then does
    /// nothing: that is how a model takes a fence out.
    #[cfg(pv_loom)]
    pub fn fence(order: Ordering) {
        if order != Ordering::Relaxed {
            loom::sync::atomic::fence(order);
        }
    }

    /// A compiler fence, as a full one: loom has none.
    #[cfg(pv_loom)]
    pub fn compiler_fence(order: Ordering) {
        fence(order);
    }
}

/// Interior mutability that a model checker can watch.
pub mod cell {
    #[cfg(pv_loom)]
    pub use loom::cell::UnsafeCell;

    /// `core`'s cell with loom's closure interface.
    #[cfg(not(pv_loom))]
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

    #[cfg(not(pv_loom))]
    impl<T> UnsafeCell<T> {
        /// A cell that holds `value`.
        #[inline(always)]
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// The value, which nobody else can reach any more.
        #[inline(always)]
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    #[cfg(not(pv_loom))]
    impl<T: ?Sized> UnsafeCell<T> {
        /// Call `f` with a pointer for reading. Whoever dereferences it must
        /// know that nobody writes meanwhile.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Call `f` with a pointer for writing. Whoever dereferences it must
        /// know that nobody else reads or writes meanwhile.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// What to do in a turn of a waiting loop.
pub mod hint {
    #[cfg(not(pv_loom))]
    pub use core::hint::spin_loop;

    /// Under loom, `spin_loop` lets another thread run.
    #[cfg(pv_loom)]
    pub use loom::hint::spin_loop;

    /// A turn of a loop with a bound. Under loom it does nothing: a yield here
    /// would hide the path behind the bound.
    #[inline(always)]
    pub fn relax_bounded() {
        #[cfg(not(pv_loom))]
        spin_loop();
    }

    /// A turn of a loop that only another CPU ends. Under loom another thread
    /// must run, or the exploration does not end.
    #[inline(always)]
    pub fn relax_unbounded() {
        spin_loop();
    }
}
