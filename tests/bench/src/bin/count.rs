//! Runs one operation so many times, for a program that counts instructions.
//!
//! `count list` prints each operation and its baseline; `count GROUP/NAME N`
//! runs one N times.

use std::process::ExitCode;

use bench::{GROUPS, find};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => {
            for group in GROUPS {
                for op in group.ops {
                    println!("{0}/{1} {0}/{2}", group.name, op.name, group.baseline);
                }
            }
            ExitCode::SUCCESS
        }
        [id, times] => match (find(id), times.parse()) {
            (Some(op), Ok(times)) => {
                (op.run)(times);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: count list | count GROUP/NAME TIMES");
    ExitCode::from(2)
}
