//! Programs and headers that the parts need and cargo does not bring.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{self, succeeds};

/// Something that must be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prerequisite {
    /// `cc`: the linker, and the conformance tests' compiler.
    CCompiler,
    /// The kernel's headers for programs.
    LinuxHeaders,
    /// Xen's public headers.
    XenHeaders,
    /// The kernel's headers for s390, beside the machine's own.
    S390Headers,
    /// Counts instructions.
    Valgrind,
}

use Prerequisite::{CCompiler, LinuxHeaders, S390Headers, Valgrind, XenHeaders};

/// Where Debian's cross package puts it.
const S390_HEADER: &str = "/usr/s390x-linux-gnu/include/asm/sie.h";

impl Prerequisite {
    /// What it is, for messages.
    const fn what(self) -> &'static str {
        match self {
            CCompiler => "a C compiler (cc)",
            LinuxHeaders => "the header linux/kvm_para.h",
            XenHeaders => "the header xen/vcpu.h",
            S390Headers => "the header asm/sie.h of s390",
            Valgrind => "valgrind",
        }
    }

    /// The Debian packages that bring it.
    const fn packages(self) -> &'static [&'static str] {
        match self {
            CCompiler => &["gcc", "libc6-dev"],
            LinuxHeaders => &["linux-libc-dev"],
            XenHeaders => &["libxen-dev"],
            S390Headers => &["linux-libc-dev-s390x-cross"],
            Valgrind => &["valgrind"],
        }
    }

    fn is_here(self) -> bool {
        match self {
            CCompiler => succeeds(Command::new("cc").arg("--version")),
            LinuxHeaders => header_is_here("linux/kvm_para.h"),
            XenHeaders => header_is_here("xen/vcpu.h"),
            S390Headers => Path::new(S390_HEADER).exists(),
            Valgrind => succeeds(Command::new("valgrind").arg("--version")),
        }
    }
}

/// Whether the C compiler finds a header, wherever it looks.
fn header_is_here(name: &str) -> bool {
    let child = Command::new("cc")
        .args(["-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    let asked = child
        .stdin
        .take()
        .is_some_and(|mut input| writeln!(input, "#include <{name}>").is_ok());
    child.wait().is_ok_and(|status| asked && status.success())
}

/// What is still missing, with the message for each.
pub type Missing = BTreeMap<Prerequisite, String>;

/// Look for all of them; install what is missing where this process may.
pub fn provide(needs: &[Prerequisite]) -> Missing {
    let absent = || {
        let mut absent: Vec<_> = needs.to_vec();
        absent.sort();
        absent.dedup();
        absent.retain(|need| !need.is_here());
        absent
    };
    let mut missing = absent();
    if missing.is_empty() {
        return Missing::new();
    }
    if may_install() {
        let packages = packages(&missing);
        println!(
            "missing: {}; installing {}",
            names(&missing),
            packages.join(" ")
        );
        if let Err(error) = install(&packages) {
            println!("installing failed: {error:#}");
        }
        missing = absent();
    }
    missing
        .into_iter()
        .map(|need| (need, message(need)))
        .collect()
}

fn message(need: Prerequisite) -> String {
    let packages = need.packages().join(" ");
    format!(
        "{} is missing; on Debian or Ubuntu: apt-get install {packages}",
        need.what()
    )
}

fn names(needs: &[Prerequisite]) -> String {
    let names: Vec<_> = needs.iter().map(|need| need.what()).collect();
    names.join(", ")
}

fn packages(needs: &[Prerequisite]) -> Vec<&'static str> {
    needs
        .iter()
        .flat_map(|need| need.packages())
        .copied()
        .collect()
}

fn may_install() -> bool {
    let root = command::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    root && Path::new("/etc/debian_version").exists()
        && succeeds(Command::new("apt-get").arg("--version"))
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    let mut update = Command::new("apt-get");
    command::run(update.args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    command::run(
        install
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_prerequisite_names_its_package() {
        assert!(message(Valgrind).contains("apt-get install valgrind"));
        assert!(message(CCompiler).contains("gcc libc6-dev"));
    }

    #[test]
    fn a_header_that_does_not_exist_is_not_found() {
        assert!(!header_is_here("pv/no_such_header.h"));
        assert!(header_is_here("stddef.h"));
    }
}
