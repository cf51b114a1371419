//! Our records and constants are those of the installed C headers.

use std::path::Path;

use conformance::{Claim, Header, record_claims};
use pv_steal::kvm_x86::{self, Features, Hints, PreemptedFlags};
use pv_steal::xen::{self, RunState32, RunState64, State};
use pv_steal::{GuestRecord, s390};

const KVM: Header<'_> = Header {
    name: "kvm_para",
    prologue: "#include <asm/kvm_para.h>\n#include <linux/kvm_para.h>",
    flags: &[],
    packages: "gcc libc6-dev linux-libc-dev",
};

const XEN: Header<'_> = Header {
    name: "xen_vcpu",
    prologue: "#include <stdint.h>\n#include <xen/xen.h>\n#include <xen/vcpu.h>",
    flags: &["-D__XEN_TOOLS__"],
    packages: "gcc libc6-dev libxen-dev",
};

/// Freestanding, so that no 32-bit C library is needed.
const XEN32: Header<'_> = Header {
    name: "xen_vcpu_32",
    flags: &["-D__XEN_TOOLS__", "-m32", "-ffreestanding"],
    ..XEN
};

const S390: Header<'_> = Header {
    name: "s390_sie",
    prologue: r#"
        #include <string.h>
        #include "/usr/s390x-linux-gnu/include/asm/sie.h"
        struct order { int code; const char *name; };
        static int order(const char *name) {
            static const struct order orders[] = { sigp_order_codes };
            for (unsigned n = 0; n < sizeof orders / sizeof *orders; n++)
                if (!strcmp(orders[n].name, name)) return orders[n].code;
            return -1;
        }"#,
    flags: &[],
    packages: "gcc libc6-dev linux-libc-dev-s390x-cross",
};

fn dir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn with<'a>(record: &'a [(String, u64)], constants: &[Claim<'a>]) -> Vec<Claim<'a>> {
    let record = record.iter().map(|(text, ours)| (text.as_str(), *ours));
    record.chain(constants.iter().copied()).collect()
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn kvm_x86_is_asm_kvm_para_h() {
    let record = record_claims::<kvm_x86::StealTime>(
        "struct kvm_steal_time",
        &[
            ("steal", "steal"),
            ("version", "version"),
            ("flags", "flags"),
            ("preempted", "preempted"),
            ("pad", "u8_pad"),
            ("pad2", "pad"),
        ],
    );
    let signature = kvm_x86::SIGNATURE.map(u64::from);
    let feature = |feature: Features| u64::from(feature.bits());
    let constants = [
        ("MSR_KVM_STEAL_TIME", kvm_x86::MSR_STEAL_TIME.into()),
        ("KVM_MSR_ENABLED", kvm_x86::MSR_ENABLE),
        ("KVM_STEAL_RESERVED_MASK", kvm_x86::MSR_RESERVED),
        (
            "1 << (KVM_STEAL_ALIGNMENT_BITS + 1)",
            kvm_x86::StealTime::LAYOUT.align,
        ),
        ("KVM_CPUID_SIGNATURE", kvm_x86::FIRST_LEAF.into()),
        ("((unsigned *)KVM_SIGNATURE)[0]", signature[0]),
        ("((unsigned *)KVM_SIGNATURE)[1]", signature[1]),
        ("(unsigned char)KVM_SIGNATURE[8]", signature[2]),
        ("1 << KVM_FEATURE_STEAL_TIME", feature(Features::STEAL_TIME)),
        ("1 << KVM_FEATURE_PV_UNHALT", feature(Features::PV_UNHALT)),
        (
            "1 << KVM_FEATURE_PV_TLB_FLUSH",
            feature(Features::PV_TLB_FLUSH),
        ),
        (
            "1 << KVM_FEATURE_PV_SEND_IPI",
            feature(Features::PV_SEND_IPI),
        ),
        (
            "1 << KVM_FEATURE_POLL_CONTROL",
            feature(Features::POLL_CONTROL),
        ),
        (
            "1 << KVM_FEATURE_PV_SCHED_YIELD",
            feature(Features::PV_SCHED_YIELD),
        ),
        ("1 << KVM_HINTS_REALTIME", Hints::REALTIME.bits().into()),
        (
            "KVM_VCPU_PREEMPTED",
            PreemptedFlags::PREEMPTED.bits().into(),
        ),
        (
            "KVM_VCPU_FLUSH_TLB",
            PreemptedFlags::FLUSH_TLB.bits().into(),
        ),
    ];
    assert_none(&KVM.wrong(dir(), &with(&record, &constants)));
}

const RUN_STATE: &[(&str, &str)] = &[
    ("state", "state"),
    ("state_entry_time", "state_entry_time"),
    ("time", "time"),
];

fn xen_constants() -> [Claim<'static>; 7] {
    [
        ("RUNSTATE_running", State::Running as u64),
        ("RUNSTATE_runnable", State::Runnable as u64),
        ("RUNSTATE_blocked", State::Blocked as u64),
        ("RUNSTATE_offline", State::Offline as u64),
        ("XEN_RUNSTATE_UPDATE >> 32", xen::UPDATE >> 32),
        (
            "VCPUOP_register_runstate_memory_area",
            xen::REGISTER_BY_VIRTUAL.into(),
        ),
        ("VMASST_TYPE_runstate_update_flag", xen::ASSIST_MARK.into()),
    ]
}

#[test]
fn xen_is_xen_vcpu_h_for_64_bit_guests() {
    let record = record_claims::<RunState64>("struct vcpu_runstate_info", RUN_STATE);
    assert_none(&XEN.wrong(dir(), &with(&record, &xen_constants())));
}

#[test]
fn xen_is_xen_vcpu_h_for_32_bit_guests() {
    let record = record_claims::<RunState32>("struct vcpu_runstate_info", RUN_STATE);
    assert_none(&XEN32.wrong_by_assertion(dir(), &with(&record, &xen_constants())));
}

#[test]
fn the_s390_order_is_asm_sie_h() {
    let claim = ("order(\"SIGP sense running\")", s390::SENSE_RUNNING.into());
    assert_none(&S390.wrong(dir(), &[claim]));
}

#[test]
fn a_wrong_claim_is_found_either_way() {
    let claims = [
        ("sizeof(struct vcpu_runstate_info)", 48),
        ("RUNSTATE_offline", 4),
    ];
    let header = Header {
        name: "wrong_claim",
        ..XEN
    };
    assert_eq!(
        header.wrong(dir(), &claims),
        ["wrong_claim: RUNSTATE_offline is 3, ours is 4"]
    );
    let header = Header {
        name: "wrong_claim_32",
        ..XEN32
    };
    assert_eq!(
        header.wrong_by_assertion(dir(), &claims),
        [
            "wrong_claim_32: sizeof(struct vcpu_runstate_info) is not our 48",
            "wrong_claim_32: RUNSTATE_offline is not our 4"
        ]
    );
}

const NOT_THERE: Header<'_> = Header {
    name: "not_there",
    prologue: "#include <not/there.h>",
    flags: &[],
    packages: "libnot-there-dev",
};

#[test]
#[should_panic(expected = "apt-get install libnot-there-dev")]
fn a_missing_header_fails_and_names_its_package() {
    NOT_THERE.wrong(dir(), &[]);
}

#[test]
#[should_panic(expected = "apt-get install libnot-there-dev")]
fn a_missing_header_of_another_target_fails_and_names_its_package() {
    let header = Header {
        name: "not_there_32",
        ..NOT_THERE
    };
    header.wrong_by_assertion(dir(), &[]);
}
