//! Raw requests to the platform: the words that leave the guest.

use crate::{CpuId, GuestAddr};

/// One privileged instruction or hypercall, with its raw operands.
///
/// What the operands mean is known only to the crate that builds the call
/// (`pv-steal` for the registration of records); an [`crate::Arch`]
/// implementation executes it and returns the machine's raw answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlatformCall {
    /// x86: write `value` to model-specific register `index`. A general
    /// protection fault is caught and answered as a refusal; otherwise the
    /// status is 0.
    WriteMsr {
        /// Register number (ECX).
        index: u32,
        /// Value (EDX:EAX).
        value: u64,
    },
    /// x86: CPUID of `leaf`, sub-leaf 0. Status 0; answers EAX, EBX, ECX, EDX.
    Cpuid {
        /// Leaf number (EAX).
        leaf: u32,
    },
    /// Arm: SMCCC call through the discovered conduit. Status 0 if it was made;
    /// answers X0, also where that means an error.
    Smccc {
        /// Function identifier (W0).
        function: u32,
        /// First argument (X1).
        arg: u64,
    },
    /// RISC-V: SBI call. The status is the SBI error, the value `a1`.
    Sbi {
        /// Extension identifier (`a7`).
        extension: u32,
        /// Function identifier (`a6`).
        function: u32,
        /// Arguments (`a0` to `a2`).
        args: [u64; 3],
    },
    /// `LoongArch`: CPUCFG of `word`. Status 0; answers the word.
    Cpucfg {
        /// Configuration word number.
        word: u32,
    },
    /// `LoongArch`: KVM hypercall. The status is `a0` as returned.
    LoongArchHypercall {
        /// Code in the `hvcl` instruction: the service.
        service: u16,
        /// Function of the service (`a0`).
        function: u64,
        /// Arguments (`a1` and `a2`).
        args: [u64; 2],
    },
    /// POWER: hypervisor call. The status is R3, the value R4.
    Papr {
        /// Token of the call (R3).
        token: u64,
        /// Arguments (R4 to R6).
        args: [u64; 3],
    },
    /// s390: SIGNAL PROCESSOR. The status is the condition code, the value the
    /// status word that is stored with condition code 1.
    Sigp {
        /// Order code.
        order: u8,
        /// CPU addressed.
        cpu: CpuId,
    },
    /// s390: STORE CPU TIMER of this CPU, as nanoseconds run so far (the
    /// hardware counts down; the kernel turns it round and scales it). Status 0.
    CpuTimer,
    /// Xen: `HYPERVISOR_vcpu_op`. The status is the return value (0 or
    /// a negative error number).
    XenVcpuOp {
        /// Operation number.
        op: u32,
        /// CPU that the operation is about.
        cpu: CpuId,
        /// The operation's argument structure holds this one address (a
        /// virtual one for the operations that say so).
        area: GuestAddr,
    },
}

/// The machine's raw answer to a [`PlatformCall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status in the call's own convention; a trapped or unknown call answers
    /// [`Reply::REFUSED`].
    pub status: i64,
    /// Result registers, in the order that the call's documentation gives.
    pub values: [u64; 4],
}

impl Reply {
    /// The call does not exist on this machine, or trapped.
    pub const REFUSED: Self = Self {
        status: -1,
        values: [0; 4],
    };

    /// Success (status 0) with one result value.
    #[inline]
    pub const fn value(value: u64) -> Self {
        Self {
            status: 0,
            values: [value, 0, 0, 0],
        }
    }

    /// Success (status 0) with four result registers.
    #[inline]
    pub const fn registers(values: [u64; 4]) -> Self {
        Self { status: 0, values }
    }

    /// A bare status.
    #[inline]
    pub const fn status(status: i64) -> Self {
        Self {
            status,
            values: [0; 4],
        }
    }
}
