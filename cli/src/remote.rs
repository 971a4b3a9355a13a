//! Profiles on a Hadoop file system: mirrors of them in the cache directory.
//!
//! Hadoop's own client reads the files. It supports every file system that Spark can write to, with the same
//! configuration and credentials, and every Spark includes it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use unfuse_eventlog::is_event_log;
use unfuse_files::{Access, Directory};
use unfuse_format::{MANIFEST, ProfileDir};
use unfuse_machine as machine;

use crate::event_log;
use crate::setup::Spark;

/// Number of files that one command fetches.
const AT_ONCE: usize = 500;

/// Whether a directory is named by a URI.
pub fn is_uri(dir: &Path) -> bool {
    unfuse_format::is_uri(&dir.to_string_lossy())
}

/// The local directory of a profile: the directory itself, a mirror of all present files, or a profile made from an event
/// log. Fetches only new files, because files of a profile never change.
pub fn local(dir: &Path) -> Result<PathBuf> {
    local_without(dir, &[])
}

/// The same without some tables.
pub fn local_without(dir: &Path, tables: &[&str]) -> Result<PathBuf> {
    let uri = dir.to_string_lossy();
    let here = match uri.strip_prefix("file:") {
        Some(path) => {
            let path = path.strip_prefix("//localhost").unwrap_or(path);
            Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
        }
        None if !is_uri(dir) => Some(dir),
        None => None,
    };
    if let Some(here) = here {
        let is_log = !ProfileDir::is_at(here) && is_event_log(here);
        return if is_log {
            event_log::as_profile(here)
        } else {
            Ok(here.to_owned())
        };
    }
    let uri = uri.trim_end_matches('/');
    let mut hasher = DefaultHasher::new();
    uri.hash(&mut hasher);
    let mirror = mirrors()?.create_folder(&format!("{:016x}", hasher.finish()), Access::Private)?;
    update(uri, &mirror, tables)?;
    Ok(mirror.path().to_owned())
}

/// The directory of the mirrors.
fn mirrors() -> Result<Directory> {
    machine::cache_folder("remote", Access::Private)
}

fn update(uri: &str, mirror: &Directory, without: &[&str]) -> Result<()> {
    let listing =
        hadoop(&["-ls", "-C", "-R", uri]).with_context(|| format!("{uri} cannot be read"))?;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let there: Vec<(&str, &str)> = listing.lines().filter_map(member).collect();
    if !there.contains(&("", MANIFEST)) {
        bail!(
            "{uri} is not an unfuse profile: it has no {MANIFEST}, or no JVM has written to it yet"
        );
    }
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (folder, name) in &there {
        if !without.contains(folder) && !mirror.path().join(folder).join(name).exists() {
            wanted.entry(folder).or_default().push(name);
        }
    }
    fetch_folders(uri, mirror, &mut wanted)?;
    for (folder, names) in wanted {
        let from = match folder {
            "" => uri.to_owned(),
            folder => format!("{uri}/{folder}"),
        };
        for names in names.chunks(AT_ONCE) {
            let aside = aside(mirror)?;
            let files = names.iter().map(|name| format!("{from}/{name}"));
            let fetched =
                get(files, aside.path()).with_context(|| format!("{from} cannot be read"));
            // Each fetched file is complete, even if another one failed.
            take(aside.path(), mirror, folder, names)?;
            fetched?;
        }
    }
    forget_others(mirror, &there)
}

/// Fetches folders of which the mirror has nothing yet, whole and by one command: each command starts a JVM. Leaves in `wanted` what
/// is still to be fetched: also files that could not be read, since a JVM that still writes changes the names of its files.
fn fetch_folders(
    uri: &str,
    mirror: &Directory,
    wanted: &mut BTreeMap<&str, Vec<&str>>,
) -> Result<()> {
    let is_new = |folder: &str| !folder.is_empty() && !mirror.path().join(folder).exists();
    let new: Vec<&str> = wanted.keys().copied().filter(|name| is_new(name)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let aside = aside(mirror)?;
    let _ = get(
        new.iter().map(|folder| format!("{uri}/{folder}")),
        aside.path(),
    );
    for folder in new {
        if let Some(names) = wanted.get_mut(folder) {
            take(&aside.path().join(folder), mirror, folder, names)?;
            names.retain(|name| !mirror.path().join(folder).join(name).exists());
        }
    }
    wanted.retain(|_, names| !names.is_empty());
    Ok(())
}

/// A temporary directory, so that an interrupted command leaves no incomplete file in the mirror.
fn aside(mirror: &Directory) -> Result<TempDir> {
    tempfile::tempdir_in(mirror.path())
        .with_context(|| format!("cannot write to {}", mirror.path().display()))
}

/// Copies files or folders into a local directory.
fn get(from: impl Iterator<Item = String>, to: &Path) -> Result<()> {
    let from: Vec<String> = from.collect();
    let to = format!("{}/", to.display());
    let mut arguments = vec!["-get"];
    arguments.extend(from.iter().map(String::as_str));
    arguments.push(&to);
    hadoop(&arguments).map(|_| ())
}

/// Moves regular files of these names from a directory to a folder of the mirror.
fn take(from: &Path, mirror: &Directory, folder: &str, names: &[&str]) -> Result<()> {
    let to = match folder {
        "" => mirror.clone(),
        folder => mirror.create_folder(folder, Access::Private)?,
    };
    for name in names {
        let file = from.join(name);
        if fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            let _ = fs::rename(file, to.path().join(name));
        }
    }
    Ok(())
}

/// Removes files that the URI no longer has, because another profile has replaced the earlier one.
fn forget_others(mirror: &Directory, there: &[(&str, &str)]) -> Result<()> {
    for folder in fs::read_dir(mirror.path())?.flatten() {
        let Ok(files) = fs::read_dir(folder.path()) else {
            continue;
        };
        let folder = folder.file_name();
        if folder.to_string_lossy().starts_with('.') {
            // Another command is still fetching into this directory.
            continue;
        }
        for file in files.flatten() {
            let (folder, name) = (folder.to_string_lossy(), file.file_name());
            if !there.contains(&(&*folder, &*name.to_string_lossy())) {
                fs::remove_file(file.path())?;
            }
        }
    }
    Ok(())
}

/// Folder and name of a profile's file from its address; `None` for other files.
fn member(address: &str) -> Option<(&str, &str)> {
    let (parent, name) = address.rsplit_once('/')?;
    if name == MANIFEST {
        return Some(("", MANIFEST));
    }
    let folder = parent.rsplit('/').next()?;
    let plain = |text: &str| {
        !text.starts_with('.')
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let is_data = name.ends_with(".parquet") || (folder == "sources" && name.ends_with(".java"));
    (is_data && plain(folder) && plain(name)).then_some((folder, name))
}

/// The output of `hadoop fs`.
fn hadoop(arguments: &[&str]) -> Result<Vec<u8>> {
    let mut command = client()?;
    let output = command
        .args(arguments)
        .output()
        .context("cannot run Hadoop's client")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        bail!(
            "{}",
            last.unwrap_or("Hadoop's client failed without a message")
        );
    }
    Ok(output.stdout)
}

/// `hadoop fs`, or the same client from the jars of a Spark.
fn client() -> Result<Command> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = |name: &str| {
        let mut found = env::split_paths(&path).map(|dir| dir.join(name));
        found.find(|program| program.is_file())
    };
    if let Some(program) = on_path("hadoop") {
        let mut command = Command::new(program);
        command.arg("fs");
        return Ok(command);
    }
    let jars = spark_jars(on_path("spark-submit")).context(
        "reading a URI needs Hadoop's client: put `hadoop` or `spark-submit` on the PATH, set SPARK_HOME, or run \
         `unfuse setup --spark 4.3`",
    )?;
    let java = machine::javas()
        .into_iter()
        .find(|java| java.release >= 17)
        .context("no JDK 17 or newer was found")?;
    let mut class_path = OsString::new();
    for extra in ["HADOOP_CONF_DIR", "HADOOP_CLASSPATH"] {
        if let Some(extra) = env::var_os(extra) {
            class_path.push(extra);
            class_path.push(":");
        }
    }
    class_path.push(jars.join("*"));
    class_path.push(":");
    class_path.push(no_settings()?);
    let mut command = Command::new(java.program);
    command
        .args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(class_path)
        .arg("org.apache.hadoop.fs.FsShell");
    Ok(command)
}

/// A directory with an empty configuration. Hadoop's shell does not start without one.
fn no_settings() -> Result<PathBuf> {
    let dir = mirrors()?.create_folder("conf", Access::Private)?;
    dir.write("core-site.xml", b"<configuration/>")?;
    Ok(dir.path().to_owned())
}

/// The jars of SPARK_HOME, of the Spark on the PATH, or of a Spark that `unfuse setup` installed.
fn spark_jars(submit: Option<PathBuf>) -> Option<PathBuf> {
    let mut homes: Vec<PathBuf> = env::var_os("SPARK_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    homes.extend(submit.as_deref().and_then(two_up));
    homes.extend(Spark::homes().map(|home| home.join("venv")));
    homes.iter().find_map(|home| jars_of(home))
}

/// The jars of the Spark that a spark-submit belongs to.
pub fn jars_beside(submit: &Path) -> Option<PathBuf> {
    jars_of(&two_up(submit)?)
}

fn two_up(program: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(program).ok()?;
    Some(real.parent()?.parent()?.to_owned())
}

/// The jars in a Spark directory, or in a virtual environment with PySpark.
fn jars_of(home: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(home.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let in_python = versions.map(|version| version.path().join("site-packages/pyspark/jars"));
    std::iter::once(home.join("jars"))
        .chain(in_python)
        .find(|jars| jars.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_no_paths() {
        for uri in ["hdfs://nn:8020/p", "s3a://bucket/p", "file:/tmp/p"] {
            assert!(is_uri(Path::new(uri)), "{uri}");
        }
        for path in ["/tmp/p", "p", "a/b:/c", "."] {
            assert!(!is_uri(Path::new(path)), "{path}");
        }
        for uri in ["file:/tmp/p", "file:///tmp/p", "file://localhost/tmp/p"] {
            assert_eq!(local(Path::new(uri)).unwrap(), Path::new("/tmp/p"));
        }
    }

    #[test]
    fn only_files_of_a_profile_are_fetched() {
        assert_eq!(member("hdfs://n/p/unfuse.json"), Some(("", "unfuse.json")));
        assert_eq!(
            member("hdfs://n/p/samples/h-1-a-00000.parquet"),
            Some(("samples", "h-1-a-00000.parquet"))
        );
        assert_eq!(
            member("hdfs://n/p/sources/12.java"),
            Some(("sources", "12.java"))
        );
        for other in [
            "hdfs://n/p/samples/.h-1.parquet.unfuse-spool-x.tmp",
            "hdfs://n/p/samples/.h-1.parquet",
            "hdfs://n/p/../h-1.parquet",
            "hdfs://n/p/samples/h;1.parquet",
            "hdfs://n/p/samples",
            "Found 3 items",
        ] {
            assert_eq!(member(other), None, "{other}");
        }
    }
}
