//! Takes the time of every operation, group by group.

use std::time::{Duration, Instant};

use bench::GROUPS;
use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_200))
        .sample_size(40)
        .configure_from_args();
    for group in GROUPS {
        let mut measured = criterion.benchmark_group(group.name);
        for op in group.ops {
            measured.bench_function(op.name, |bencher| {
                bencher.iter_custom(|times| {
                    let start = Instant::now();
                    (op.run)(times);
                    start.elapsed()
                });
            });
        }
        measured.finish();
    }
    criterion.final_summary();
}
