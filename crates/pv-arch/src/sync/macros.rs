//! Named orderings, seeded bugs and const constructors.

/// Name memory orderings, once each, with the reason for each.
///
/// ```
/// use pv_arch::orderings;
/// use pv_arch::sync::atomic::{AtomicU32, Ordering};
///
/// orderings! {
///     /// The flag is raised after the data that it announces.
///     fn raise_flag = Release;
/// }
///
/// let flag = AtomicU32::new(0);
/// flag.store(1, raise_flag());
/// assert_eq!(raise_flag(), Ordering::Release);
/// ```
///
/// Each name is a `const fn` that returns the ordering. Under `cfg(pv_loom)`
/// the environment can replace it (see `sync::mutate`), and a constant `SITES`
/// beside the functions lists them for the tool that does so.
#[cfg(not(pv_loom))]
#[macro_export]
macro_rules! orderings {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident = $order:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            $vis const fn $name() -> $crate::sync::atomic::Ordering {
                $crate::sync::atomic::Ordering::$order
            }
        )*
    };
}

/// Name memory orderings (the form for models, which can be mutated).
#[cfg(pv_loom)]
#[macro_export]
macro_rules! orderings {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident = $order:ident;)*) => {
        $(
            $(#[$doc])*
            $vis fn $name() -> $crate::sync::atomic::Ordering {
                $crate::sync::mutate::ordering(
                    concat!(module_path!(), "::", stringify!($name)),
                    $crate::sync::atomic::Ordering::$order,
                )
            }
        )*

        /// The orderings named in this module.
        pub const SITES: &[$crate::sync::mutate::Site] = &[
            $($crate::sync::mutate::Site {
                name: concat!(module_path!(), "::", stringify!($name)),
                order: $crate::sync::atomic::Ordering::$order,
            },)*
        ];
    };
}

/// Whether the named mistake is switched on: never, except in a model.
///
/// ```
/// let skip_check = pv_arch::seeded_bug!("example.skip-check");
/// assert!(!skip_check);
/// ```
#[cfg(not(pv_loom))]
#[macro_export]
macro_rules! seeded_bug {
    ($name:literal) => {
        false
    };
}

/// Whether the named mistake is switched on by the environment.
#[cfg(pv_loom)]
#[macro_export]
macro_rules! seeded_bug {
    ($name:literal) => {
        $crate::sync::mutate::seeded($name)
    };
}

/// Write constructors that are `const` except under `cfg(pv_loom)`, whose
/// atomics register themselves with the running model.
///
/// ```
/// use pv_arch::sync::atomic::AtomicU32;
///
/// struct Word(AtomicU32);
///
/// impl Word {
///     pv_arch::const_new! {
///         /// A word that is 0.
///         pub fn new() -> Self { Self(AtomicU32::new(0)) }
///     }
/// }
///
/// static WORD: Word = Word::new();
/// # assert_eq!(WORD.0.load(pv_arch::sync::atomic::Ordering::Relaxed), 0);
/// ```
#[cfg(not(pv_loom))]
#[macro_export]
macro_rules! const_new {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block)*) => {
        $($(#[$doc])* $vis const fn $name($($arg: $ty),*) -> $ret $body)*
    };
}

/// Write constructors (the form for models: not `const`).
#[cfg(pv_loom)]
#[macro_export]
macro_rules! const_new {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block)*) => {
        $($(#[$doc])* $vis fn $name($($arg: $ty),*) -> $ret $body)*
    };
}
