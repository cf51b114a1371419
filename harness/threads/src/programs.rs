//! Guest programs of the harness itself.

use crossbeam_utils::CachePadded;
use pv_arch::sync::atomic::{AtomicU32, Ordering};
use pv_arch::{Arch, CpuCount, CpuId};

use crate::guest::{GuestCpu, Program};
use crate::{ThreadArch, settings};

/// Every vCPU computes and never halts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spinners;

impl Program for Spinners {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            cpu.compute(1 << 12);
        }
    }
}

/// Relay teams of two vCPUs (the last one of three where the number is odd).
/// Whoever has its team's token computes for a while, hands it on and kicks the
/// next one; whoever has none halts. So half of the vCPUs want to run, and a
/// team that loses one kick is out for good: nobody else wakes it.
#[derive(Debug)]
pub struct Relay {
    mail: Vec<CachePadded<AtomicU32>>,
    next: Vec<usize>,
    rounds: u32,
}

/// A token's stay at a vCPU: some hundred microseconds.
const ROUNDS: u32 = 3000;

impl Relay {
    /// Teams for `count` vCPUs.
    pub fn new(count: CpuCount) -> Self {
        let count = count.get() as usize;
        let next: Vec<usize> = (0..count).map(|vcpu| next_in_team(vcpu, count)).collect();
        let is_first = |vcpu: usize| vcpu.is_multiple_of(2) && (vcpu + 1 < count || count == 1);
        let mail = (0..count)
            .map(|vcpu| CachePadded::new(AtomicU32::new(is_first(vcpu).into())))
            .collect();
        Self {
            mail,
            next,
            rounds: ROUNDS,
        }
    }
}

/// Teams are 0-1, 2-3, ..; a vCPU that is left over joins the last team.
fn next_in_team(vcpu: usize, count: usize) -> usize {
    let first = vcpu & !1;
    match (count - first, count % 2) {
        (1, _) if first == 0 => 0,
        (1, _) => first - 2,
        (3, 1) => vcpu + 1,
        _ => vcpu ^ 1,
    }
}

impl Program for Relay {
    fn run(&self, cpu: &mut GuestCpu) {
        let me = cpu.id().index();
        let next = self.next[me];
        while !cpu.is_stopping() {
            if self.mail[me].load(Ordering::Acquire) == 0 {
                cpu.halt_while(|| self.mail[me].load(Ordering::Acquire) == 0);
                continue;
            }
            cpu.compute(self.rounds);
            // Only this vCPU takes from here, so there is still one to take.
            self.mail[me].fetch_sub(1, Ordering::Relaxed);
            self.mail[next].fetch_add(1, Ordering::Release);
            ThreadArch::kick(crate::core::cpu_id(next));
        }
    }

    fn is_owed_wake_up(&self, cpu: CpuId) -> Option<bool> {
        Some(self.mail[cpu.index()].load(Ordering::Acquire) != 0)
    }

    fn verify(&self) -> Result<(), String> {
        let tokens = u32::try_from((self.mail.len() / 2).max(1)).unwrap_or(u32::MAX);
        let left: u32 = self
            .mail
            .iter()
            .map(|mail| mail.load(Ordering::Relaxed))
            .sum();
        if left == tokens {
            Ok(())
        } else {
            Err(format!("{left} tokens are left of {tokens}"))
        }
    }
}

/// Which of the programs to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// [`Relay`]: vCPUs run, wait and halt.
    #[default]
    Relay,
    /// [`Spinners`]: vCPUs run and wait.
    Spinners,
}

impl Workload {
    /// The program, for a machine of these settings.
    pub fn program(
        self,
        settings: &settings::Settings,
    ) -> Result<Box<dyn Program>, settings::SettingsError> {
        let count = settings.check()?;
        Ok(match self {
            Self::Relay => Box::new(Relay::new(count)),
            Self::Spinners => Box::new(Spinners),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vcpu_is_in_a_team_with_one_token() {
        for count in 1..=9 {
            let relay = Relay::new(CpuCount::new(count).unwrap());
            for start in 0..relay.next.len() {
                let mut team = vec![start];
                while relay.next[team[team.len() - 1]] != start {
                    team.push(relay.next[team[team.len() - 1]]);
                }
                let tokens: u32 = team
                    .iter()
                    .map(|vcpu| relay.mail[*vcpu].load(Ordering::Relaxed))
                    .sum();
                assert_eq!(tokens, 1, "{count} vCPUs, team {team:?}");
                assert!(team.len() <= 3);
            }
        }
    }
}
