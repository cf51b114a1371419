//! What the property tests share: how many cases, and values that hurt.

use proptest::prelude::*;

/// 4096 cases a property, or as many as `PROPTEST_CASES` says. Failures print
/// their smallest input, which belongs into a test of its own; no file of seeds
/// is kept.
pub fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 4096;
    }
    config.failure_persistence = None;
    config
}

/// Any `u64`, each magnitude as likely as the next.
pub fn any_magnitude() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift)
}

/// Any `u64`, with the edges of the type and of 32-bit halves often.
pub fn nasty() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any_magnitude(),
        1 => Just(0),
        1 => Just(u64::MAX),
        1 => Just(1 << 63),
        1 => Just((1 << 63) - 1),
        1 => (0..8_u64).prop_map(|n| (1 << 32) - 4 + n),
        1 => (0..8_u64).prop_map(|n| u64::MAX - n),
    ]
}
