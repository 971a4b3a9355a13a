//! Frames of Python workers: whose code they are, and what their files are called.

use std::sync::Arc;

use unfuse_format::{Frame, FrameKind};

/// Packages that PySpark itself calls to pass data on: functions of theirs that it calls directly are its own work.
const DATA: [&str; 3] = ["numpy", "pandas", "pyarrow"];
/// Folders in which packages are.
const PACKAGES: [&str; 2] = ["/site-packages/", "/dist-packages/"];
/// What archives of Python code end with, in the path of a file in them.
const ARCHIVES: [&str; 2] = [".zip/", ".egg/"];

/// Whose code a Python frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin<'a> {
    User,
    PySpark,
    /// A package, by its name.
    Package(&'a str),
    Standard,
}

/// Whether a frame is a function of a Python worker.
pub fn is_python(frame: &Frame) -> bool {
    frame.kind == FrameKind::Python
}

/// The path of a Python file from its package on, `pandas/core/frame.py`; for a file that is in no package its name.
pub fn python_file(path: &str) -> &str {
    let in_package = package_path(path).or_else(|| {
        let name = path.rsplit('/').next().unwrap_or(path);
        // From a folder of Spark, the package is known too.
        let at = path.rfind("/pyspark/").map(|at| &path[at + 1..]);
        Some(at.unwrap_or(name))
    });
    in_package.unwrap_or(path)
}

/// The path from the folder of packages or the archive on; none in the standard library, and of a file that is in
/// neither.
fn package_path(path: &str) -> Option<&str> {
    let starts = PACKAGES.iter().chain(&ARCHIVES);
    let ends = starts.filter_map(|part| Some(path.rfind(part)? + part.len()));
    ends.max().map(|end| &path[end..])
}

fn origin(path: &str) -> Origin<'_> {
    if path.contains("/pyspark/") {
        return Origin::PySpark;
    }
    if path.starts_with("<frozen ") {
        return Origin::Standard;
    }
    let in_packages = PACKAGES.iter().any(|part| path.contains(part));
    match package_path(path) {
        Some(inside) if in_packages => {
            let package = inside.split('/').next().unwrap_or(inside);
            Origin::Package(package.trim_end_matches(".py"))
        }
        None if path.contains("/lib/python3") => Origin::Standard,
        // Files that the user has added to the application.
        _ => Origin::User,
    }
}

/// The position of the frame that says best where a Python worker was: the innermost one of the user's code. If PySpark
/// calls a package directly, the innermost one of that package; if it passes data on, its own. None if there is no frame of
/// Python.
pub fn python_line(frames: &[Arc<Frame>]) -> Option<usize> {
    let first = frames.iter().position(|frame| is_python(frame))?;
    let own = &frames[first..];
    let innermost = |wanted: &dyn Fn(Origin<'_>) -> bool| {
        let at = own.iter().rposition(|frame| wanted(origin(&frame.file)))?;
        Some(first + at)
    };
    let of_user = innermost(&|origin| origin == Origin::User);
    let of_package = || {
        let spark = |frame: &Arc<Frame>| origin(&frame.file) == Origin::PySpark;
        let begin = own.iter().position(spark)?;
        let called = own[begin..].iter().find(|frame| !spark(frame))?;
        match origin(&called.file) {
            Origin::Package(name) if !DATA.contains(&name) => {
                innermost(&|origin| origin == Origin::Package(name))
            }
            _ => None,
        }
    };
    let of_spark = || innermost(&|origin| origin == Origin::PySpark);
    of_user
        .or_else(of_package)
        .or_else(of_spark)
        .or(Some(frames.iter().rposition(|frame| is_python(frame))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = "/opt/venv/lib/python3.11/site-packages";

    fn stack(files: &[&str]) -> Vec<Arc<Frame>> {
        let java = Frame {
            class: "org.apache.spark.api.python.BasePythonRunner".to_owned(),
            kind: FrameKind::Java,
            ..Frame::default()
        };
        let python = files.iter().map(|file| Frame {
            kind: FrameKind::Python,
            file: file.replace('~', PACKAGES),
            ..Frame::default()
        });
        std::iter::once(java).chain(python).map(Arc::new).collect()
    }

    #[test]
    fn files_are_called_by_their_packages() {
        for (path, name) in [
            ("/home/me/job.py", "job.py"),
            ("job.py", "job.py"),
            ("<stdin>", "<stdin>"),
            ("~/pandas/core/frame.py", "pandas/core/frame.py"),
            ("/usr/lib/python3/dist-packages/six.py", "six.py"),
            (
                "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py",
                "pyspark/worker.py",
            ),
            ("/opt/spark/python/pyspark/worker.py", "pyspark/worker.py"),
            ("/tmp/userFiles/etl.zip/etl/clean.py", "etl/clean.py"),
            ("/usr/lib/python3.11/re/__init__.py", "__init__.py"),
        ] {
            assert_eq!(python_file(&path.replace('~', PACKAGES)), name);
        }
    }

    #[test]
    fn the_line_is_the_users_where_there_is_one() {
        let spark = "~/pyspark/worker.py";
        let main = "/usr/lib/python3.11/runpy.py";
        let re = "/usr/lib/python3.11/re/__init__.py";
        for (files, expected) in [
            (vec![main, spark, "/home/job.py", re], Some(3)),
            (
                vec![
                    main,
                    spark,
                    "/home/job.py",
                    "~/pandas/a.py",
                    "/home/b.py",
                    re,
                ],
                Some(5),
            ),
            (vec![spark, "/tmp/etl.zip/etl/clean.py", re], Some(2)),
            (
                vec![
                    spark,
                    "~/etl/clean.py",
                    "~/etl/more.py",
                    "~/pandas/core/frame.py",
                ],
                Some(3),
            ),
            (
                vec![
                    spark,
                    "~/pyspark/serializers.py",
                    "~/pyarrow/ipc.py",
                    "~/pandas/a.py",
                ],
                Some(2),
            ),
            (vec![spark, "<string>", re], Some(2)),
            (vec![spark], Some(1)),
            (vec![main, re], Some(2)),
            (vec![], None),
        ] {
            assert_eq!(python_line(&stack(&files)), expected, "{files:?}");
        }
    }
}
