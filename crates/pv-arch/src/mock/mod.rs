//! A scripted machine for tests (feature `mock`; needs `std`).
//!
//! A [`Machine`] has CPUs, a clock that moves only when told, a record of who
//! is preempted, an [`Oracle`] of any quality that answers
//! [`Arch::is_preempted`](crate::Arch::is_preempted), a script, and a log.
//! [`MockArch`] is the kernel type that code under test is generic over; it
//! acts on the machine and CPU that the calling thread was bound to.
//!
//! ```
//! use pv_arch::mock::{Machine, MockArch, Step, Trigger, What};
//! use pv_arch::{Arch, CpuId, Nanos};
//!
//! let (cpu0, cpu1) = (CpuId::new(0), CpuId::new(1));
//! let machine = Machine::new(2);
//! // When CPU 0 halts for the first time: a millisecond passes, then CPU 1's
//! // kick comes.
//! machine.script(Trigger::Halt(cpu0, 1), [Step::Advance(Nanos::from_millis(1)), Step::Kick(cpu0)]);
//!
//! let bound = machine.bind(cpu0);
//! MockArch::halt_while(|| true);
//! assert_eq!(MockArch::now(), Nanos::from_millis(1));
//! drop(bound);
//!
//! let events: Vec<What> = machine.log().iter().map(|event| event.what).collect();
//! assert_eq!(events, [What::Halt, What::Kicked(cpu0), What::Woke]);
//! # let _ = cpu1;
//! ```
//!
//! A halt ends by a kick (from another thread or the script) or by
//! [`Step::WakeSpuriously`]; one that nothing ends panics after ten seconds as a
//! lost wake-up, with the log. The machine knows nothing of records: a test that
//! wants a record to say what the machine does writes it itself.
//!
//! Works the same under `cfg(pv_loom)`, where pending kicks are loom's atomics
//! and a halted CPU lets the model run other threads.

mod arch;
mod cpu_side;
mod log;
mod machine;
mod oracle;
mod script;

pub use arch::MockArch;
#[cfg(pv_loom)]
pub use cpu_side::SITES;
pub use log::{Event, What};
pub use machine::{Bound, Machine};
pub use oracle::Oracle;
pub use script::{Step, Trigger};
