//! What a KVM host accepts of the steal-time register: exactly the documented
//! set. Bit 0 switches on, bits 1 to 5 are reserved, the rest is the address.

use proptest::prelude::*;
use pv_arch::{GuestAddr, PlatformCall};
use pv_properties::{config, nasty};
use pv_steal::RegisterError;
use pv_steal::kvm_x86::{decode_msr, registration};

/// Any value, half of them with the low bits of a good one.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        nasty(),
        any::<u64>().prop_map(|value| value & !0x3f | 1),
        (any::<u64>(), 0..64_u64).prop_map(|(value, low)| value & !0x3f | low),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_register_takes_exactly_what_is_documented(value in value()) {
        let on = value % 2 == 1;
        let reserved = value / 2 % 32;
        let addr = GuestAddr::new(value - value % 2);
        let expected = match (on, reserved) {
            (false, _) => Ok(None),
            (true, 0) => Ok(Some(addr)),
            (true, _) => Err(RegisterError::Misaligned { addr, align: 64 }),
        };
        prop_assert_eq!(decode_msr(value), expected);
    }

    #[test]
    fn what_a_guest_registers_is_what_the_host_reads(value in value()) {
        let addr = GuestAddr::new(value - value % 2);
        match registration(addr) {
            Ok(PlatformCall::WriteMsr { index, value }) => {
                prop_assert_eq!(index, 0x4b56_4d03);
                prop_assert_eq!(decode_msr(value), Ok(Some(addr)));
            }
            Ok(call) => prop_assert!(false, "{call:?} is no write of a register"),
            Err(error) => {
                prop_assert_ne!(addr.get() % 64, 0);
                prop_assert_eq!(error, RegisterError::Misaligned { addr, align: 64 });
            }
        }
    }
}
