use proptest::prelude::*;

use super::*;

fn jobs() -> impl Strategy<Value = Job> {
    (0.01..1.0f64, 0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64).prop_map(
        |(cpu, memory, disk, network)| {
            let all = cpu + memory + disk + network;
            Job {
                cpu: cpu / all,
                memory: memory / all,
                disk: disk / all,
                network: network / all,
            }
        },
    )
}

fn base() -> Scheme {
    scheme(1.2, "HDD", "1Gbps")
}

/// A pseudo-random number from 0 to 1.
fn chance(seed: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    for _ in 0..3 {
        x ^= x >> 31;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Approximately normal, with standard deviation 1.
fn normal(seed: u64) -> f64 {
    (0..12)
        .map(|n| chance(seed.wrapping_mul(12).wrapping_add(n)))
        .sum::<f64>()
        - 6.0
}

proptest! {
    #[test]
    fn jobs_that_do_one_thing_at_a_time_have_values_from_0_to_1(job in jobs()) {
        let analysis = job.analysis();
        prop_assert_eq!(analysis.indicators.len(), 4);
        for indicator in &analysis.indicators {
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&indicator.value), "{:?}", indicator);
        }
        prop_assert!((value(&analysis, Resource::Cpu) - job.cpu).abs() < 1e-9);
    }

    #[test]
    fn units_and_the_order_of_rows_do_not_matter(job in jobs(), scale in 0.001..1000.0f64) {
        let noise = |index: usize| 1.0 + 0.05 * normal(index as u64);
        let runs = job.runs(noise, 3);
        let mut others: Vec<Run> = runs.iter().rev().cloned().collect();
        for other in &mut others {
            other.seconds *= scale;
            other.scheme.cpu *= scale;
        }
        let mut base = base();
        let one = Analysis::new(&Runs::new(base.clone(), runs).unwrap());
        base.cpu *= scale;
        let other = Analysis::new(&Runs::new(base, others).unwrap());
        prop_assert_eq!(&one.verdict, &other.verdict);
        for (a, b) in one.indicators.iter().zip(&other.indicators) {
            prop_assert!((a.value - b.value).abs() < 1e-6);
            let (a, b) = (a.interval.unwrap(), b.interval.unwrap());
            prop_assert!((a.low - b.low).abs() < 1e-6 * (1.0 + a.low.abs()), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn whatever_is_measured_gives_numbers(
        seconds in prop::collection::vec(prop_oneof![1e-9..1e12f64, 0.1..100.0f64, Just(1e12), Just(1e-9)], 12..36),
        speeds in prop::collection::vec(1.0000001..1e9f64, 2),
    ) {
        let schemes = [1.0, speeds[0], speeds[1]].into_iter().flat_map(|cpu| {
            ["a", "b"].into_iter().flat_map(move |disk| ["x", "y"].map(|network| scheme(cpu, disk, network)))
        });
        let runs = schemes.cycle().zip(&seconds).map(|(scheme, seconds)| run(scheme, *seconds));
        let analysis = Analysis::new(&Runs::new(scheme(1.0, "a", "x"), runs.collect()).unwrap());
        for indicator in &analysis.indicators {
            prop_assert!(indicator.value.is_finite());
            if let Some(interval) = indicator.interval {
                prop_assert!(interval.low <= indicator.value && indicator.value <= interval.high);
                prop_assert!(interval.low.is_finite() && interval.high.is_finite());
            }
            let inside = (0.0..=1.0).contains(&indicator.value);
            prop_assert_eq!(inside, indicator.outside.is_none());
        }
        for time in &analysis.schemes {
            prop_assert!(time.seconds.is_finite() && time.speedup.is_finite());
        }
    }
}

/// About 95% of the intervals must contain the truth; few wrong verdicts may claim to be certain.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let job = Job {
        cpu: 0.35,
        memory: 0.05,
        disk: 0.4,
        network: 0.2,
    };
    let truth = job.analysis();
    let trials = 400;
    let (mut inside, mut of, mut sure, mut wrong) = (0, 0, 0, 0);
    for trial in 0..trials {
        let noise = |index: usize| 1.0 + 0.04 * normal(trial * 1000 + index as u64);
        let runs = Runs::new(base(), job.runs(noise, 3)).expect("runs");
        let analysis = Analysis::new(&runs);
        for indicator in &analysis.indicators {
            let interval = indicator.interval.expect("three repetitions");
            let true_value = value(&truth, indicator.resource);
            of += 1;
            inside += u32::from(interval.low <= true_value && true_value <= interval.high);
        }
        if let Verdict::Sure(resource) = analysis.verdict {
            sure += 1;
            wrong += u32::from(resource != Resource::Cpu);
        }
    }
    let held = f64::from(inside) / f64::from(of);
    assert!((0.93..=0.995).contains(&held), "{held}");
    assert!(
        sure > 50 && wrong <= 8,
        "{wrong} of {sure} sure verdicts are wrong"
    );
}

#[test]
fn values_outside_0_to_1_are_kept_and_explained() {
    let of = |seconds: [[f64; 2]; 2]| {
        let mut runs = Vec::new();
        for (cpu, times) in [1.0, 2.0].into_iter().zip(seconds) {
            runs.extend(times.map(|seconds| run(scheme(cpu, "d", "n"), seconds)));
        }
        Analysis::new(&Runs::new(scheme(1.0, "d", "n"), runs).expect("runs"))
    };
    let slower = of([[10.0, 10.01], [12.0, 12.01]]);
    assert!((value(&slower, Resource::Cpu) + 0.4).abs() < 0.01);
    assert!(
        slower.indicators[0]
            .outside
            .as_deref()
            .is_some_and(|why| why.contains("made the job slower"))
    );
    assert_eq!(slower.verdict, Verdict::Nothing);
    let chance = of([[10.0, 8.0], [8.8, 9.4]]);
    assert!(
        chance.indicators[0]
            .outside
            .as_deref()
            .is_some_and(|why| why.contains("contains 0, so it may be chance"))
    );
    let faster = of([[10.0, 10.01], [4.0, 4.01]]);
    assert!(
        faster.indicators[0]
            .outside
            .as_deref()
            .is_some_and(|why| why.contains("gained more"))
    );
    assert_eq!(faster.verdict, Verdict::OfMeasured(Resource::Cpu));
}

#[test]
fn suggestions_need_the_whole_interval_and_the_utilisation() {
    let with = |times: [f64; 4], cpu| {
        let mut runs: Vec<Run> = [1.0, 1.0, 2.0, 2.0]
            .into_iter()
            .zip(times)
            .map(|(cpu, seconds)| run(scheme(cpu, "d", "n"), seconds))
            .collect();
        for run in &mut runs {
            run.utilisation.cpu = cpu;
        }
        let analysis = Analysis::new(&Runs::new(scheme(1.0, "d", "n"), runs).expect("runs"));
        analysis.suggestions.first().map(|s| s.text)
    };
    let says = |text: Option<&str>, words: &str| {
        assert!(text.is_some_and(|t| t.contains(words)), "{text:?}")
    };
    says(with([10.0, 10.0, 9.9, 9.9], Some(0.9)), "stall for memory");
    assert_eq!(with([10.0, 10.0, 9.9, 9.9], None), None);
    assert_eq!(with([10.0, 10.0, 9.9, 9.9], Some(0.5)), None);
    says(with([10.0, 10.0, 5.1, 5.1], Some(0.17)), "not fully used");
    says(with([10.0, 10.0, 5.1, 5.1], None), "need not be tried");
    assert_eq!(with([10.0, 13.0, 5.1, 7.1], Some(0.17)), None);
}

/// Observed with a program that only sends over a slow network: equation 5 finds nothing.
#[test]
fn a_job_that_does_not_compute_has_a_note_on_what_helped() {
    let mut runs = Vec::new();
    for (cpu, network, seconds) in [
        (1.0, "slow", 2.91),
        (2.0, "slow", 2.91),
        (1.0, "fast", 0.35),
        (2.0, "fast", 0.35),
    ] {
        runs.push(run(scheme(cpu, "d", network), seconds));
        runs.push(run(scheme(cpu, "d", network), seconds + 0.01));
    }
    let analysis = Analysis::new(&Runs::new(scheme(1.0, "d", "slow"), runs).expect("runs"));
    assert_eq!(value(&analysis, Resource::Network), 0.0);
    assert_eq!(analysis.verdict, Verdict::Nothing);
    assert!(
        analysis.notes[0].starts_with("the network fast alone saved 88%"),
        "{:?}",
        analysis.notes
    );
}
