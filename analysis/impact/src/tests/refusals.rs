use std::fs;

use super::*;

fn base() -> Scheme {
    scheme(1.0, "d", "n")
}

fn refused(runs: &[(f64, f64)]) -> String {
    let runs = runs
        .iter()
        .map(|(cpu, seconds)| run(scheme(*cpu, "d", "n"), *seconds));
    Runs::new(base(), runs.collect())
        .expect_err("refused")
        .to_string()
}

#[test]
fn runs_that_cannot_be_are_refused_with_the_reason() {
    for (runs, words) in [
        (
            &[(1.0, 0.0), (2.0, 1.0)][..],
            "1/d/n: 0 s is no possible running time",
        ),
        (&[(1.0, 1.0), (2.0, -3.0)], "-3 s is no possible"),
        (&[(1.0, f64::NAN), (2.0, 1.0)], "NaN s"),
        (&[(1.0, 1.0), (2.0, f64::INFINITY)], "inf s"),
        (&[(1.0, 1e300), (2.0, 1.0)], "is no possible running time"),
        (&[(0.0, 1.0), (1.0, 1.0)], "0 is no possible speed"),
        (&[(f64::NAN, 1.0), (1.0, 1.0)], "NaN is no possible speed"),
        (
            &[],
            "no run at the base scheme 1/d/n; every indicator compares with it. There are runs at none",
        ),
        (&[(2.0, 1.0)], "There are runs at 2/d/n"),
        (
            &[(1.0, 1.0), (0.5, 2.0)],
            "the base scheme's CPU speed 1 is above 0.5",
        ),
        (&[(1.0, 1.0), (1.0, 2.0)], "no run with a faster CPU"),
    ] {
        let said = refused(runs);
        assert!(said.contains(words), "{said}");
    }
    let mut busy = run(base(), 1.0);
    busy.utilisation.cpu = Some(70.0);
    let said = Runs::new(base(), vec![busy, run(scheme(2.0, "d", "n"), 1.0)]);
    let said = said.expect_err("refused").to_string();
    assert!(said.contains("70 is no possible CPU part; it is a number, from 0 to 1"));
}

fn read(name: &str, text: &str) -> Result<Table, TableError> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a file");
    Table::read(&path, None)
}

#[test]
fn both_kinds_of_files_say_the_same() {
    let csv = read(
        "t.csv",
        "# GHz\ncpu, disk, network, seconds, cpu_util\n1.2,HDD,1Gbps,60,0.2\n1.2,HDD,1Gbps,61,0.2\n2.4,HDD,1Gbps,40,\n",
    );
    let toml = read(
        "t.toml",
        "base = { cpu = 1.2, disk = 'HDD', network = '1Gbps' }\n\
         [[runs]]\ncpu = 1.2\ndisk = 'HDD'\nnetwork = '1Gbps'\nseconds = [60, 61]\ncpu_util = 0.2\n\
         [[runs]]\ncpu = 2.4\ndisk = 'HDD'\nnetwork = '1Gbps'\nseconds = [40.0]\n",
    );
    let (csv, toml) = (csv.expect("CSV"), toml.expect("TOML"));
    assert_eq!((&csv.base, &csv.rows), (&toml.base, &toml.rows));
    let runs = &csv.workloads().expect("runs")[""];
    assert_eq!(runs.utilisation().cpu, Some(0.2));
    assert_eq!(Ok(csv.base.clone()), csv.base.to_string().parse());
}

#[test]
fn files_that_cannot_be_read_are_refused_with_their_line() {
    for (name, text, words) in [
        ("t.csv", "", "no rows"),
        ("t.csv", "cpu,seconds\n", "no rows"),
        ("t.csv", "cpu,seconds\n1,1\nfast,1\n", "line: 3"),
        ("t.csv", "cpu,seconds\n1,1\n1\n", "line: 3"),
        ("t.csv", "cpu,minutes\n1,1\n", "minutes"),
        ("t.csv", "cpu\n1\n", "seconds"),
        ("t.toml", "", "base"),
        ("t.toml", "base = { cpu = 1 }\n", "no rows"),
        (
            "t.toml",
            "base = { cpu = 1 }\n[[runs]]\ncpu = 1\ntimes = [1]\n",
            "line 4",
        ),
        ("t.toml", "base = ", "line 1"),
    ] {
        let said = match read(name, text) {
            Ok(table) => panic!("{table:?}"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(words) && said.contains(name), "{said}");
    }
    let table = read("t.csv", "workload,cpu,seconds\na,1,1\na,2,1\nb,1,-1\n").expect("a table");
    let said = table.workloads().expect_err("refused").to_string();
    assert!(
        said.contains("t.csv, workload b: a run at 1//: -1 s"),
        "{said}"
    );
    assert!(
        "fast/ssd"
            .parse::<Scheme>()
            .expect_err("refused")
            .contains("1.2/HDD/1Gbps")
    );
    assert!(
        "1/a/b/c"
            .parse::<Scheme>()
            .expect_err("refused")
            .contains("too many")
    );
}
