//! Table 1 and the figures in the text.
//!
//! The paper prints too little to compute its indicators again. It gives two running times: TPC-DS with SSD and 1 Gbps
//! takes 55.7 s in disk mode and 56.7 s in memory mode (section 5.2). Equation 1 needs running times at two CPU
//! frequencies, which the paper does not give. So the tests go backwards: they take the CRI of each scheme from table
//! 1, choose running times with this CRI, and compute table 1 from these by equations 1 and 3 to 6. They also check the
//! printed numbers against the paper's own equations and text; where that fails, the test mentions it.

use super::*;

/// A column of table 1: CRI, MRI, DRI, NRI.
struct Column {
    bdbench: [f64; 4],
    tpcds: [f64; 4],
    average: [f64; 4],
}

const DISK_MODE: Column = Column {
    bdbench: [0.73, 0.04, 0.17, 0.04],
    tpcds: [0.58, 0.18, 0.25, 0.015],
    average: [0.61, 0.16, 0.24, 0.02],
};
const MEMORY_MODE: Column = Column {
    bdbench: [0.55, 0.18, 0.19, 0.06],
    tpcds: [0.52, 0.31, 0.2, 0.06],
    average: [0.53, 0.3, 0.2, 0.06],
};
/// Section 4.1.
const QUERIES: [f64; 2] = [9.0, 42.0];

/// A job with these indicators, if it does one thing at a time. Solves equations 3 to 6 for the parts of its time: CRI
/// is the CPU's part c, DRI = c d / (1 − d), NRI likewise, and MRI = m / (c + m).
fn job([cri, mri, dri, nri]: [f64; 4]) -> Job {
    let part = |rise: f64| rise / (cri + rise);
    Job {
        cpu: cri,
        memory: cri * mri / (1.0 - mri),
        disk: part(dri),
        network: part(nri),
    }
}

fn sum(job: Job) -> f64 {
    job.cpu + job.memory + job.disk + job.network
}

#[test]
fn bounds_of_section_4_are_those_of_equation_3() {
    let analysis = job(DISK_MODE.bdbench).analysis();
    let mut bounds: Vec<f64> = analysis.improvements.iter().map(|i| i.bound).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
    assert!((bounds[0] - 0.5).abs() < 1e-12 && (bounds[1] - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn a_job_of_the_cpu_alone_has_cri_1_and_one_without_has_0() {
    let only = |cpu, disk| Job {
        cpu,
        memory: 0.0,
        disk,
        network: 0.0,
    };
    assert!((value(&only(1.0, 0.0).analysis(), Resource::Cpu) - 1.0).abs() < 1e-12);
    let runs = [1.2, 2.4, 3.6].map(|cpu| run(scheme(cpu, "HDD", "1Gbps"), 100.0));
    let runs = Runs::new(scheme(1.2, "HDD", "1Gbps"), runs.into()).expect("runs");
    assert_eq!(value(&Analysis::new(&runs), Resource::Cpu), 0.0);
}

#[test]
fn shares_of_time_give_the_indicators_that_the_equations_say() {
    let job = Job {
        cpu: 0.4,
        memory: 0.1,
        disk: 0.3,
        network: 0.2,
    };
    let analysis = job.analysis();
    for (resource, expected) in [
        (Resource::Cpu, 0.4),
        (Resource::Disk, 0.4 / 0.7 - 0.4),
        (Resource::Network, 0.4 / 0.8 - 0.4),
        (Resource::Memory, 0.1 / 0.5),
    ] {
        assert!(
            (value(&analysis, resource) - expected).abs() < 1e-12,
            "{resource:?}"
        );
    }
}

/// The CRI of each scheme, in this order: HDD and 1 Gbps, SSD and 1 Gbps, HDD and 10 Gbps, SSD and 10 Gbps.
type CriByScheme = [f64; 4];

/// The CRIs that equations 4 to 6 imply for a column of table 1.
fn implied([cri, mri, dri, nri]: [f64; 4]) -> CriByScheme {
    [cri, cri + dri, cri + nri, 1.0 - mri]
}

/// Running times of section 4.1 with these CRIs: equation 3 solved for RT, for a job that spends this part of each
/// scheme's time on the CPU. Three repetitions that differ by 0.01%.
fn with_cri(cri: CriByScheme) -> Vec<Run> {
    let io = [
        ("HDD", "1Gbps"),
        ("SSD", "1Gbps"),
        ("HDD", "10Gbps"),
        ("SSD", "10Gbps"),
    ];
    let mut runs = Vec::new();
    for cpu in [1.2, 2.4, 3.6] {
        for ((disk, network), cri) in io.into_iter().zip(cri) {
            let seconds = 100.0 * (1.0 - cri * (1.0 - 1.2 / cpu));
            for off in [0.9999, 1.0, 1.0001] {
                runs.push(run(scheme(cpu, disk, network), seconds * off));
            }
        }
    }
    runs
}

fn analysed(runs: Vec<Run>) -> Analysis {
    Analysis::new(&Runs::new(scheme(1.2, "HDD", "1Gbps"), runs).expect("runs"))
}

const RESOURCES: [Resource; 4] = [
    Resource::Cpu,
    Resource::Memory,
    Resource::Disk,
    Resource::Network,
];

#[test]
fn running_times_with_the_cri_of_table_1_give_table_1() {
    for column in [
        DISK_MODE.bdbench,
        DISK_MODE.tpcds,
        MEMORY_MODE.bdbench,
        MEMORY_MODE.tpcds,
    ] {
        let found = analysed(with_cri(implied(column)));
        for (resource, printed) in RESOURCES.into_iter().zip(column) {
            let value = value(&found, resource);
            assert!((value - printed).abs() < 1e-9, "{resource:?} {value}");
        }
        // "The CPU is the bottleneck for Spark" (section 5.1), with all four measured.
        assert_eq!(found.verdict, Verdict::Sure(Resource::Cpu));
    }
}

#[test]
fn indicators_of_table_1_sum_to_more_than_1() {
    for (column, expected) in [
        (DISK_MODE.bdbench, 0.98),
        (MEMORY_MODE.bdbench, 0.98),
        (DISK_MODE.tpcds, 1.025),
        (MEMORY_MODE.tpcds, 1.09),
    ] {
        assert!((column.iter().sum::<f64>() - expected).abs() < 1e-9);
    }
}

/// With the CRI and the sum of TPC-DS in memory mode, memory can have a larger indicator than the CPU: a CRI above 0.5
/// alone is not certain.
#[test]
fn a_cri_above_one_half_does_not_make_the_cpu_the_bottleneck() {
    let cri = MEMORY_MODE.tpcds[0];
    let others = MEMORY_MODE.tpcds.iter().sum::<f64>() - cri;
    let [dri, nri] = [0.01, 0.01];
    let mri = others - dri - nri;
    assert!(cri > 0.5 && mri > cri);
    let runs = with_cri(implied([cri, mri, dri, nri]));
    let low = |found: &Analysis| {
        let interval = found.indicator(Resource::Cpu).and_then(|one| one.interval);
        interval.expect("repetitions").low
    };
    let all = analysed(runs.clone());
    assert!(low(&all) > 0.5);
    assert_eq!(all.verdict, Verdict::Sure(Resource::Memory));
    let mut of_cpu = runs;
    of_cpu.retain(|run| run.scheme.disk == "HDD" && run.scheme.network == "1Gbps");
    let of_cpu = analysed(of_cpu);
    assert!(low(&of_cpu) > 0.5);
    assert_eq!(of_cpu.verdict, Verdict::OfMeasured(Resource::Cpu));
}

/// Table 1's BDBench in disk mode has exactly the values of such a job; its parts sum to 1.00. The other columns sum to
/// 1.02, 1.03 and 1.13: more than 1, so disk and network times overlapped (section 6 says that sums need not be 1).
#[test]
fn table_1_fits_jobs_that_do_one_thing_at_a_time_as_far_as_it_does() {
    for (column, expected) in [
        (DISK_MODE.bdbench, 1.001),
        (MEMORY_MODE.bdbench, 1.026),
        (DISK_MODE.tpcds, 1.034),
        (MEMORY_MODE.tpcds, 1.135),
    ] {
        assert!(
            (sum(job(column)) - expected).abs() < 1e-3,
            "{}",
            sum(job(column))
        );
    }
    let found = job(DISK_MODE.bdbench).analysis();
    for (resource, printed) in [
        (Resource::Cpu, 0.73),
        (Resource::Memory, 0.04),
        (Resource::Disk, 0.17),
        (Resource::Network, 0.04),
    ] {
        assert!(
            (value(&found, resource) - printed).abs() < 0.005,
            "{resource:?}"
        );
    }
}

/// Averages are over 9 queries of BDBench and 42 of TPC-DS. All agree except MRI in memory mode: 0.287, printed as 0.3,
/// which no rounding of 0.18 and 0.31 to two digits explains (at most 0.292).
#[test]
fn averages_of_table_1_are_of_all_queries_but_for_one() {
    let mut misfits = Vec::new();
    for column in [&DISK_MODE, &MEMORY_MODE] {
        for (index, printed) in column.average.into_iter().enumerate() {
            let all = QUERIES[0] * column.bdbench[index] + QUERIES[1] * column.tpcds[index];
            let mean = all / (QUERIES[0] + QUERIES[1]);
            // Half a digit of the entries, and half a digit of the mean.
            if (mean - printed).abs() > 0.01 {
                misfits.push((index, (mean * 1000.0).round() / 1000.0));
            }
        }
    }
    assert_eq!(misfits, [(1, 0.287)]);
}

/// Sections 5.1 to 5.4: averages over both modes.
#[test]
fn averages_in_the_text_are_those_of_table_1() {
    for (index, printed) in [(0, 0.57), (1, 0.23), (2, 0.22), (3, 0.04)] {
        let mean = f64::midpoint(DISK_MODE.average[index], MEMORY_MODE.average[index]);
        assert!((mean - printed).abs() < 1e-9, "{index}: {mean}");
    }
}

/// Section 5.2 says that memory mode has 2 to 4.5 times the MRI of disk mode, section 5.4 says 1.5 to 4 for NRI. Table
/// 1 has 1.7 to 4.5 and 1.5 to 4: the lower end of the first disagrees (at most 0.315 / 0.175 = 1.8).
#[test]
fn factors_in_the_text_are_those_of_table_1_but_for_one() {
    let factors = |index: usize| {
        [
            MEMORY_MODE.bdbench[index] / DISK_MODE.bdbench[index],
            MEMORY_MODE.tpcds[index] / DISK_MODE.tpcds[index],
        ]
    };
    let [bdbench, tpcds] = factors(1);
    assert!((bdbench - 4.5).abs() < 1e-9 && (tpcds - 1.72).abs() < 0.01);
    let [bdbench, tpcds] = factors(3);
    assert!((bdbench - 1.5).abs() < 1e-9 && (tpcds - 4.0).abs() < 1e-9);
}

/// Section 5.5: blocked-time analysis yields 48.6%, upgrading 77.7%. The direct comparison of running times, as made
/// there, is in the speed-ups of schemes.
#[test]
fn upgrading_shows_what_blocked_time_analysis_underestimates() {
    let runs = vec![
        run(scheme(1.2, "HDD", "1Gbps"), 100.0),
        run(scheme(2.4, "HDD", "1Gbps"), 99.0),
        run(scheme(1.2, "SSD", "10Gbps"), 22.3),
    ];
    let runs = Runs::new(scheme(1.2, "HDD", "1Gbps"), runs).expect("runs");
    let analysis = Analysis::new(&runs);
    let upgraded = analysis
        .schemes
        .iter()
        .find(|time| time.scheme.disk == "SSD");
    let saved = 1.0 - 1.0 / upgraded.expect("a scheme").speedup;
    assert!((saved - 0.777).abs() < 1e-9 && (saved / 0.486 - 1.6).abs() < 0.01);
    assert!(analysis.notes[0].contains("there is no run at 2.4/SSD/10Gbps"));
}
