//! The platforms, by name.

use core::fmt;
use core::str::FromStr;

/// A kind of hypervisor, by the record that it publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// KVM on x86 ([`crate::kvm_x86`]).
    KvmX86,
    /// Arm PV time (`crate::arm`).
    Arm,
    /// RISC-V SBI steal-time accounting ([`crate::riscv`]).
    RiscV,
    /// KVM on `LoongArch` ([`crate::loongarch`]).
    LoongArch,
    /// s390, which has no record (`crate::s390`).
    S390,
    /// POWER shared processors (`crate::power`).
    Power,
    /// Xen run states ([`crate::xen`]).
    Xen,
}

impl Platform {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::KvmX86,
        Self::Arm,
        Self::RiscV,
        Self::LoongArch,
        Self::S390,
        Self::Power,
        Self::Xen,
    ];

    /// The name, as [`FromStr`] reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KvmX86 => "kvm-x86",
            Self::Arm => "arm",
            Self::RiscV => "riscv",
            Self::LoongArch => "loongarch",
            Self::S390 => "s390",
            Self::Power => "power",
            Self::Xen => "xen",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(text: &str) -> Result<Self, UnknownPlatform> {
        Self::ALL
            .into_iter()
            .find(|platform| platform.name() == text)
            .ok_or(UnknownPlatform { len: text.len() })
    }
}

/// A name that is no platform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPlatform {
    /// Length of the name in bytes (the name itself is the caller's).
    pub len: usize,
}

impl fmt::Display for UnknownPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a platform (a name of {} bytes); want one of",
            self.len
        )?;
        Platform::ALL
            .iter()
            .try_for_each(|platform| write!(f, " {platform}"))
    }
}

impl core::error::Error for UnknownPlatform {}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for platform in Platform::ALL {
            assert_eq!(platform.name().parse(), Ok(platform));
            assert_eq!(platform.to_string(), platform.name());
        }
    }

    #[test]
    fn a_wrong_name_is_told_what_there_is() {
        let error = "KVM".parse::<Platform>().unwrap_err();
        assert_eq!(error, UnknownPlatform { len: 3 });
        assert!(error.to_string().ends_with("loongarch s390 power xen"));
    }
}
