//! The command, from outside.

use std::process::{Command, Output};

use serde_json::Value;

fn pvsched(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pvsched"))
        .args(args)
        .output()
        .expect("the command was built")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the command prints UTF-8")
}

/// A twentieth of a second of virtual time.
const STEPPED: [&str; 5] = ["vcpus", "--seconds", "0.05", "--seed", "3"];

fn stepped(more: &[&str]) -> Output {
    pvsched(&[&STEPPED, more].concat())
}

#[test]
fn the_tour_shows_a_balanced_account() {
    let output = pvsched(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let tour: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &tour["tour"][0]["result"];
    assert!(report["method"].as_str().unwrap().contains("real time"));
    let vcpus = report["vcpus"].as_array().unwrap();
    assert_eq!(vcpus.len(), 8);
    let steal: u64 = vcpus
        .iter()
        .map(|vcpu| vcpu["guest"]["steal_ns"].as_u64().unwrap())
        .sum();
    assert!(steal > 0);
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["holds"] == true));
}

#[test]
fn bad_settings_are_refused_with_the_value_and_code_2() {
    for (args, says) in [
        (["--vcpus", "0"], "vcpus is 0"),
        (["--vcpus", "100000"], "vcpus is 100000"),
        (["--pcpus", "0"], "pcpus is 0"),
        (["--pcpus", "9"], "more than the 8 vcpus"),
        (["--slice", "0.01"], "slice is 0.01 ms"),
        (["--slice", "-1"], "-1"),
        (["--seconds", "1e9"], "1e9"),
        (["--seconds", "0"], "duration is 0 s"),
        (["--seconds", "0.0001"], "duration is 0.0001 s"),
        (["--platform", "vax"], "want one of kvm-x86"),
        (["--watchdog", "1"], "watchdog is 1 ms"),
        (["--drop-kicks", "0"], "0"),
    ] {
        let output = pvsched(&["vcpus", args[0], args[1]]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let error = text(&output.stderr);
        assert!(error.contains(says), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
}

#[test]
fn every_platform_runs() {
    for platform in [
        "kvm-x86",
        "arm",
        "riscv",
        "loongarch",
        "s390",
        "power",
        "xen",
    ] {
        let output = stepped(&["--platform", platform]);
        assert_eq!(output.status.code(), Some(0), "{platform}");
        assert!(text(&output.stdout).contains(platform));
    }
}

#[test]
fn one_seed_gives_the_same_output_to_the_byte() {
    let [first, second] = [(); 2].map(|()| stepped(&["--json"]).stdout);
    assert!(!first.is_empty());
    assert_eq!(text(&first), text(&second));
}

#[test]
fn output_that_nobody_reads_is_no_panic_and_lost_output_no_success() {
    use std::fs::OpenOptions;
    use std::process::Stdio;

    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = |args: &[&str], out: Stdio, err: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pvsched"));
        command.args(args).stdout(out).stderr(err);
        command.status().unwrap().code()
    };
    for json in [&["--json"][..], &[]] {
        let args = [&STEPPED, json].concat();
        assert_eq!(run(&args, full().into(), Stdio::null()), Some(1));
    }
    let refused = ["vcpus", "--vcpus", "0"];
    assert_eq!(run(&refused, Stdio::null(), full().into()), Some(2));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(run(&STEPPED, writer.into(), Stdio::null()), Some(0));
}

#[test]
fn a_wake_up_lost_just_before_the_end_is_found() {
    // The watchdog is far away; the end of the run finds it.
    let args = ["vcpus", "--vcpus", "16", "--seconds", "0.5", "--seed", "3"];
    let whole = pvsched(&args);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stdout));
    let lossy = pvsched(&[&args[..], &["--drop-kicks", "50"]].concat());
    assert_eq!(lossy.status.code(), Some(1));
    let error = text(&lossy.stderr);
    assert!(error.contains("nobody is going to kick it"), "{error}");
}

#[test]
fn a_lost_wake_up_is_told_with_code_1() {
    let args = ["--drop-kicks", "5", "--seconds", "20", "--watchdog", "300"];
    for json in [false, true] {
        let mut args: Vec<&str> = [&["vcpus", "--seed", "1"], &args[..]].concat();
        if json {
            args.push("--json");
        }
        let output = pvsched(&args);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("lost wake-up"));
        let is_json = serde_json::from_slice::<Value>(&output.stdout).is_ok();
        assert_eq!(is_json, json);
    }
}
