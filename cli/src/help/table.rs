//! The commands as `unfuse --help` lists them, each with two examples.

/// Commands that serve one purpose.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) entries: &'static [Entry],
}

/// A command.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Command lines that run without changes in the directory
    /// of `unfuse demo`, or of the profile that they name.
    pub(super) examples: [&'static str; 2],
}

const fn entry(name: &'static str, examples: [&'static str; 2]) -> Entry {
    Entry { name, examples }
}

/// Every command, in the order of the help.
pub(super) const GROUPS: &[Group] = &[
    Group {
        title: "Record",
        entries: &[
            entry(
                "run",
                [
                    "unfuse run -o prof -- spark-submit --master 'local[*]' job.py",
                    "unfuse run --keep 2GB --keep-for 7d -- spark-submit --master yarn stream.py",
                ],
            ),
            entry(
                "record",
                [
                    "unfuse record --pid $(pgrep -o java) --for 1m",
                    "unfuse record --pid $(pgrep -o java) -o prof --rate 1000",
                ],
            ),
            entry(
                "trino",
                [
                    "unfuse trino http://localhost:8080 -o queries --for 1m",
                    "unfuse trino https://trino.example.com --headers token.txt",
                ],
            ),
            entry(
                "pause",
                [
                    "unfuse pause --pid $(pgrep -o java)",
                    "unfuse pause --pid $(pgrep -o java) --all",
                ],
            ),
            entry(
                "resume",
                [
                    "unfuse resume --pid $(pgrep -o java)",
                    "unfuse resume --pid 4711",
                ],
            ),
        ],
    },
    Group {
        title: "Look",
        entries: &[
            entry(
                "report",
                [
                    "unfuse report unfuse-demo/profile --open",
                    "unfuse report unfuse-demo/profile -o page.html --since 5m",
                ],
            ),
            entry(
                "top",
                [
                    "unfuse top unfuse-demo/profile --limit 10",
                    "unfuse top unfuse-demo/profile --kind off-cpu --by line",
                ],
            ),
            entry(
                "plan",
                [
                    "unfuse plan unfuse-demo/profile",
                    "unfuse plan unfuse-demo/profile --query 1 --all",
                ],
            ),
            entry(
                "flame",
                [
                    "unfuse flame unfuse-demo/profile -o flame.svg",
                    "unfuse flame unfuse-demo/profile -o waits.svg --kind off-cpu --level full",
                ],
            ),
            entry(
                "source",
                [
                    "unfuse source unfuse-demo/profile",
                    "unfuse source unfuse-demo/profile --query 1 --all",
                ],
            ),
            entry(
                "history",
                [
                    "unfuse history --in unfuse-demo/profile",
                    "unfuse history --in . --limit 10 --json",
                ],
            ),
            entry(
                "export",
                [
                    "unfuse export unfuse-demo/profile --format speedscope -o profile.json",
                    "unfuse export unfuse-demo/profile --format folded --query 1",
                ],
            ),
        ],
    },
    Group {
        title: "Explain",
        entries: &[
            entry(
                "why",
                [
                    "unfuse why unfuse-demo/profile",
                    "unfuse why unfuse-demo/profile --query 3 --against-query 2",
                ],
            ),
            entry(
                "check",
                [
                    "unfuse check prof --against unfuse-demo/profile --max-regression 10%",
                    "unfuse check prof --baseline perf --update --junit check.xml",
                ],
            ),
            entry(
                "what-if",
                [
                    "unfuse what-if unfuse-demo/profile",
                    "unfuse what-if unfuse-demo/profile slots=4 gc=0 --query 3",
                ],
            ),
            entry(
                "advise",
                [
                    "unfuse advise unfuse-demo/profile",
                    "unfuse advise unfuse-demo/profile --query 3 --json",
                ],
            ),
            entry(
                "blame",
                [
                    "unfuse blame unfuse-demo/profile",
                    "unfuse blame unfuse-demo/profile --victim 1 --by operator --since 5m",
                ],
            ),
            entry(
                "skew",
                [
                    "unfuse skew unfuse-demo/profile",
                    "unfuse skew unfuse-demo/profile --limit 1 --json",
                ],
            ),
        ],
    },
    Group {
        title: "Plan",
        entries: &[
            entry(
                "impact",
                [
                    "unfuse impact measure --input data -- spark-submit --master 'local[*]' job.py",
                    "unfuse impact runs.csv",
                ],
            ),
            entry(
                "size",
                [
                    "unfuse size fit profiles -o job.toml",
                    "unfuse size predict job.toml --slots 32",
                ],
            ),
        ],
    },
    Group {
        title: "Set up",
        entries: &[
            entry(
                "doctor",
                ["unfuse doctor --spark", "unfuse doctor --report"],
            ),
            entry(
                "demo",
                ["unfuse demo", "unfuse demo -o demo --scale 0.2 --open"],
            ),
            entry(
                "setup",
                [
                    "unfuse setup --spark 4.3",
                    "unfuse setup --spark 3.5 --jdk 21 --tpch 1",
                ],
            ),
            entry(
                "completions",
                [
                    "eval \"$(unfuse completions bash)\"",
                    "unfuse completions fish > ~/.config/fish/completions/unfuse.fish",
                ],
            ),
            entry(
                "man",
                [
                    "unfuse man | man -l -",
                    "unfuse man ~/.local/share/man/man1",
                ],
            ),
            entry("mcp", ["unfuse mcp unfuse-demo", "unfuse mcp ~/profiles"]),
            entry(
                "schema",
                ["unfuse schema", "unfuse schema top > top.schema.json"],
            ),
            entry("agent", ["unfuse agent", "unfuse agent | grep -A1 rate="]),
        ],
    },
];

/// Commands that have commands of their own.
pub(super) const NESTED: &[(&str, &[Entry])] = &[
    (
        "impact",
        &[entry(
            "measure",
            [
                "unfuse impact measure --dry-run -- spark-submit --master 'local[*]' job.py",
                "unfuse impact measure --schemes cpu=1,2 disk=30MBps,ram --input data -- spark-submit job.py",
            ],
        )],
    ),
    (
        "size",
        &[
            entry(
                "fit",
                [
                    "unfuse size fit profiles -o job.toml",
                    "unfuse size fit /tmp/spark-events --app etl --runs runs.csv -o job.toml",
                ],
            ),
            entry(
                "predict",
                [
                    "unfuse size predict job.toml --slots 32",
                    "unfuse size predict job.toml --cluster m5.xlarge=3 --prices prices.toml --deadline 10m",
                ],
            ),
            entry(
                "cheapest",
                [
                    "unfuse size cheapest job.toml --prices prices.toml --deadline 10m",
                    "unfuse size cheapest job.toml --prices prices.toml --deadline 1h --sure --input-size 12GB",
                ],
            ),
            entry(
                "best",
                [
                    "unfuse size best job.toml --prices prices.toml --budget 2.50",
                    "unfuse size best job.toml --prices prices.toml --budget 2.50 --spot --json",
                ],
            ),
            entry(
                "curve",
                [
                    "unfuse size curve job.toml --prices prices.toml",
                    "unfuse size curve job.toml --prices prices.toml -o curve.svg",
                ],
            ),
        ],
    ),
];
