//! Other users of the machine: unfuse does not write, read or follow files and links that they have planted, and they cannot
//! read its files. Needs root, which can act as another user, and `setpriv` and `timeout`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use unfuse_tests::{Mark, agent, check_private, compile, jdks, root, run, unfuse};

/// Ids of users: two that run `unfuse`, and one that plants files and links.
const ROOT: u32 = 0;
const NOBODY: u32 = 65_534;
const MALLORY: u32 = 1;

/// Seconds after which a command counts as hanging, for example because it opens a pipe.
const HANGS: &str = "120";

/// A directory that all users can read, with `unfuse`, its agent and a Java program.
struct Host {
    home: TempDir,
    java: PathBuf,
}

impl Host {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        assert_eq!(
            fs::metadata(home.path()).expect("there").uid(),
            ROOT,
            "these tests need root: they act as several users"
        );
        set_mode(home.path(), 0o755);
        let program = unfuse().get_program().to_owned();
        for file in [Path::new(&program), &agent()] {
            let name = file.file_name().expect("a name");
            fs::copy(file, home.path().join(name)).expect("a copy that all may read");
        }
        let jdk = jdks().remove(0);
        compile(&jdk, "Hot.java", home.path());
        Self {
            home,
            java: jdk.join("bin/java"),
        }
    }

    /// A command as a user, in a directory of that user, with a umask of 0.
    fn by(&self, user: u32, program: &Path) -> Command {
        let own = self.home.path().join(format!("home-{user}"));
        if !own.exists() {
            fs::create_dir(&own).expect("a directory");
            give(&own, user, 0o700);
        }
        let mut command = Command::new("timeout");
        command
            .args([HANGS, "setpriv", "--clear-groups"])
            .args([format!("--reuid={user}"), format!("--regid={user}")])
            .args(["sh", "-c", "umask 0; exec \"$@\"", "sh"])
            .arg(program)
            .current_dir(&own)
            .env("HOME", &own)
            .env("TMPDIR", &own)
            .env_remove("XDG_CACHE_HOME");
        command
    }

    fn unfuse(&self, user: u32, arguments: &[&str]) -> Command {
        let mut command = self.by(user, &self.home.path().join("unfuse"));
        command.args(arguments);
        command
    }

    /// Profiles a short run into a directory.
    fn record(&self, user: u32, out: &Path) -> Command {
        let mut command = self.unfuse(user, &["run", "--out"]);
        command
            .arg(out)
            .arg("--")
            .arg(&self.java)
            .arg("-cp")
            .arg(self.home.path())
            .args(["Hot", "300"]);
        command
    }

    /// The same program with the agent and these options.
    fn with_agent(&self, user: u32, options: &str) -> Command {
        let agent = self.home.path().join("libunfuse.so");
        let mut command = self.by(user, &self.java);
        command
            .arg(format!("-agentpath:{}={options}", agent.display()))
            .arg("-cp")
            .arg(self.home.path())
            .args(["Hot", "10"]);
        command
    }

    /// Makes a directory of a user, with this mode.
    fn directory(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir(&path).expect("a directory");
        give(&path, owner, mode);
        path
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

fn give(path: &Path, owner: u32, mode: u32) {
    set_mode(path, mode);
    chown(path, Some(owner), Some(owner)).expect("its owner");
}

/// Makes a link of a user.
fn link(to: &Path, path: &Path, owner: u32) {
    symlink(to, path).expect("a link");
    std::os::unix::fs::lchown(path, Some(owner), Some(owner)).expect("its owner");
}

/// Makes a pipe of a user, which all users may read and write.
fn pipe(path: &Path, owner: u32) {
    run(Command::new("mkfifo").arg(path));
    give(path, owner, 0o666);
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that the command fails in time, and that its message has all these parts.
fn refuses(command: &mut Command, says: &[&str]) {
    let output = command.output().expect("it runs");
    let text = said(&output);
    let code = output.status.code();
    assert!(
        code.is_some_and(|code| code != 0 && code < 124),
        "{command:?} ended with {code:?}: {text}"
    );
    for part in says {
        assert!(text.contains(part), "{command:?}: no {part:?} in {text}");
    }
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).expect("a directory").count()
}

/// A profile that every user may read.
fn fixture(host: &Host) -> PathBuf {
    let copy = host.home.path().join("fixture");
    let from = root().join("cli/tests/fixtures/canonical");
    run(Command::new("cp").arg("-r").arg(from).arg(&copy));
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(&copy));
    copy
}

#[test]
fn directories_that_others_can_change_are_refused() {
    let host = Host::new();
    for user in [ROOT, NOBODY] {
        let name = |what: &str| format!("{what}-{user}");
        let target = host.directory(&name("target"), user, 0o700);
        let linked = host.home.path().join(name("linked"));
        link(&target, &linked, MALLORY);
        let of_another = host.directory(&name("of-another"), MALLORY, 0o777);
        let private = host.directory(&name("private"), MALLORY, 0o700);
        let world = host.directory(&name("world"), user, 0o777);
        let sticky = host.directory(&name("sticky"), user, 0o1777);
        let group = host.directory(&name("group"), user, 0o770);
        let readable = host.directory(&name("readable"), user, 0o755);
        for (dir, says) in [
            (&linked, "symbolic link"),
            (&of_another, "another user (uid 1;"),
            (&private, "another user (uid 1;"),
            (&world, "chmod go-rwx"),
            (&sticky, "chmod go-rwx"),
            (&group, "chmod go-rwx"),
            (&readable, "chmod go-rwx"),
        ] {
            refuses(
                &mut host.record(user, dir),
                &["unfuse: ", says, "-o or dir="],
            );
            assert_eq!(count(dir), 0, "{}", dir.display());
        }
        // The advice of the message helps.
        set_mode(&world, 0o700);
        run(&mut host.record(user, &world));
        check_private(&world);
    }
}

#[test]
fn the_agent_refuses_them_too_and_the_job_runs_on() {
    let host = Host::new();
    let spools = host.directory("spools", MALLORY, 0o777);
    let world = host.directory("world", NOBODY, 0o777);
    for (options, says) in [
        (format!("dir={}", world.display()), "chmod go-rwx"),
        (
            format!("dir=hdfs://nowhere/profile,spools={}", spools.display()),
            "another user (uid 1;",
        ),
    ] {
        let output = run(&mut host.with_agent(NOBODY, &options));
        let text = said(&output);
        assert!(
            text.contains("unfuse: not profiling: ") && text.contains(says),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("true profile"));
    }
    assert_eq!(count(&spools) + count(&world), 0);
}

#[test]
fn links_in_a_profile_are_neither_written_nor_deleted_through() {
    let host = Host::new();
    for user in [ROOT, NOBODY] {
        let name = |what: &str| format!("{what}-{user}");
        let outside = host.directory(&name("outside"), user, 0o700);
        // As if its user had let others write there for a while.
        let profile = host.directory(&name("profile"), user, 0o700);
        for planted in ["samples", "stacks", "processes", "live", "sources"] {
            link(&outside, &profile.join(planted), MALLORY);
        }
        let output = host.record(user, &profile).output().expect("it runs");
        assert!(output.status.success(), "the job runs on: {output:?}");
        assert_eq!(count(&outside), 0, "{}", said(&output));
        let second = host.directory(&name("second"), user, 0o700);
        link(&outside.join("made"), &second.join("unfuse.json"), MALLORY);
        refuses(&mut host.record(user, &second), &["symbolic link"]);
        assert_eq!(count(&outside), 0);
    }
}

#[test]
fn what_is_written_is_for_its_user_only() {
    let host = Host::new();
    let fixture = fixture(&host);
    let fixture = fixture.to_str().expect("text");
    for user in [ROOT, NOBODY] {
        let out = host.home.path().join(format!("home-{user}"));
        run(&mut host.record(user, Path::new("new/profile")));
        check_private(&out.join("new"));
        let outputs: [&[&str]; 7] = [
            &["report", fixture, "-o", "page.html"],
            &["flame", fixture, "-o", "flame.svg"],
            &["export", fixture, "--format", "pprof", "-o", "pprof"],
            &["export", fixture, "--format", "folded", "-o", "folded"],
            &["skew", fixture, "-o", "skew"],
            &["skew", fixture, "--json", "-o", "skew.json"],
            &["export", fixture, "--format", "json", "-o", "old"],
        ];
        fs::write(out.join("old"), "others can read this").expect("a file");
        give(&out.join("old"), user, 0o644);
        for arguments in outputs {
            run(&mut host.unfuse(user, arguments));
            let file = out.join(arguments[arguments.len() - 1]);
            assert!(fs::metadata(&file).expect("written").len() > 0);
            check_private(&file);
        }
        assert_eq!(count(&out), 8, "nothing is left beside the results");
    }
}

/// A profile with a URI is stored in a spool of its own, beside those of other users, until Spark's plugin copies it.
#[test]
fn a_spool_is_for_its_user_only() {
    let host = Host::new();
    for user in [ROOT, NOBODY] {
        // The mode of /tmp.
        let spools = host.directory(&format!("spools-{user}"), ROOT, 0o1777);
        let options = format!("dir=hdfs://nowhere/profile,spools={}", spools.display());
        let mut java = host.with_agent(user, &options);
        let mark = Mark::on(&mut java, &spools);
        run(&mut java);
        mark.wait_for_end();
        let made: Vec<_> = fs::read_dir(&spools).expect("spools").flatten().collect();
        assert_eq!(made.len(), 1, "{made:?}");
        let spool = made[0].path();
        assert_eq!(fs::metadata(&spool).expect("there").uid(), user);
        assert!(count(&spool.join("processes")) > 0, "nothing was profiled");
        check_private(&spool);
    }
}

#[test]
fn results_do_not_go_through_what_others_planted() {
    let host = Host::new();
    let fixture = fixture(&host);
    let fixture = fixture.to_str().expect("text");
    // As in /tmp, all users may make files there.
    let shared = host.directory("shared", ROOT, 0o777);
    let path_of = |name: &str| shared.join(name).to_str().expect("text").to_owned();
    for user in [ROOT, NOBODY] {
        let secret = host
            .directory(&format!("own-{user}"), user, 0o700)
            .join("secret");
        fs::write(&secret, "secret").expect("a file");
        give(&secret, user, 0o600);
        let (linked, piped, own) = (path_of("linked"), path_of("piped"), path_of("own"));
        link(&secret, Path::new(&linked), MALLORY);
        pipe(Path::new(&piped), MALLORY);
        link(&secret, Path::new(&own), user);
        // A link of the user that leads to a planted one.
        let twice = path_of("twice");
        link(Path::new(&linked), Path::new(&twice), user);
        for place in [&linked, &piped, &twice] {
            for command in [
                &["report", fixture][..],
                &["flame", fixture],
                &["export", fixture, "--format", "folded"],
                &["skew", fixture],
            ] {
                refuses(
                    host.unfuse(user, command).args(["-o", place]),
                    &["of another user (uid 1)", "-o"],
                );
            }
        }
        assert_eq!(fs::read(&secret).expect("read"), b"secret");
        let export = ["export", fixture, "--format", "folded", "-o"];
        run(host.unfuse(user, &export).arg(&own));
        assert!(fs::symlink_metadata(&own).expect("there").is_symlink());
        let text = fs::read(&secret).expect("read");
        assert!(text.len() > 100);
        // The names of standard output, and a pipe of the user.
        for place in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            let output = run(host.unfuse(user, &export).arg(place));
            assert_eq!(output.stdout, text, "{place}");
        }
        let mut piped = host.by(user, Path::new("bash"));
        let script = "\"$@\" >(cat > copy; mv copy copied); until test -e copied; do sleep 0.1; done; cat copied";
        piped
            .args(["-c", script, "bash"])
            .arg(host.home.path().join("unfuse"))
            .args(export);
        assert_eq!(run(&mut piped).stdout, text);
        // A file of another user is replaced if its directory allows that, and never written to.
        let old = shared.join("old");
        fs::write(&old, "old").expect("a file");
        give(&old, MALLORY, 0o666);
        run(host.unfuse(user, &export).arg(&old));
        assert_eq!(fs::metadata(&old).expect("there").uid(), user);
        check_private(&old);
        for name in [
            linked.as_str(),
            &path_of("piped"),
            &own,
            &twice,
            &path_of("old"),
        ] {
            fs::remove_file(name).expect("removed");
        }
        assert_eq!(count(&shared), 0, "nothing is left beside the results");
    }
}

#[test]
fn profiles_of_others_are_read_and_nothing_behind_their_links() {
    let host = Host::new();
    let profile = host.home.path().join(format!("home-{NOBODY}/profile"));
    run(&mut host.record(NOBODY, Path::new("profile")));
    let top = |what: &str| {
        let output = run(host.unfuse(ROOT, &["top", "--by", "line"]).arg(&profile));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("Hot."), "{what}: {text}");
        said(&output)
    };
    assert!(!top("as it was").contains("left out"));
    let segment = fs::read_dir(profile.join("samples"))
        .expect("samples")
        .flatten()
        .next()
        .expect("a segment")
        .path();
    link(&segment, &profile.join("samples/linked.parquet"), NOBODY);
    link(
        Path::new("/dev/zero"),
        &profile.join("samples/zero.parquet"),
        NOBODY,
    );
    pipe(&profile.join("samples/piped.parquet"), NOBODY);
    pipe(&profile.join("live/piped"), NOBODY);
    pipe(&profile.join("live/piped.failed-5"), NOBODY);
    fs::create_dir_all(profile.join("sources")).expect("a folder");
    pipe(&profile.join("sources/0a.java"), NOBODY);
    link(Path::new("/"), &profile.join("stages"), NOBODY);
    let text = top("with links and pipes");
    for file in ["linked.parquet", "zero.parquet", "piped.parquet", "stages"] {
        let line = text.lines().find(|line| line.contains(file));
        assert!(line.is_some_and(|line| line.contains("left out")), "{text}");
    }
    for command in ["report", "source", "blame", "skew"] {
        let mut command = host.unfuse(ROOT, &[command]);
        let output = command.arg(&profile).output().expect("it runs");
        let code = output.status.code();
        assert!(code.is_some_and(|code| code < 124), "{command:?}: {code:?}");
    }
    fs::remove_file(profile.join("unfuse.json")).expect("removed");
    pipe(&profile.join("unfuse.json"), NOBODY);
    refuses(host.unfuse(ROOT, &["top"]).arg(&profile), &["unfuse.json"]);
}

#[test]
fn a_cache_that_others_can_change_is_refused() {
    let host = Host::new();
    for user in [ROOT, NOBODY] {
        for (what, owner, mode, says) in [
            ("another", MALLORY, 0o755, "another user (uid 1;"),
            ("world", user, 0o777, "chmod go-w"),
        ] {
            let base = host.directory(&format!("cache-{what}-{user}"), user, 0o755);
            let cache = base.join("unfuse");
            fs::create_dir(&cache).expect("a directory");
            give(&cache, owner, mode);
            for command in [
                &["top", "hdfs://nowhere/profile"][..],
                &["setup", "--spark", "4.3"],
            ] {
                let mut command = host.unfuse(user, command);
                command.env("XDG_CACHE_HOME", &base);
                refuses(&mut command, &[says, "XDG_CACHE_HOME"]);
            }
            assert_eq!(count(&cache), 0);
        }
    }
}

#[test]
fn doctor_leaves_nothing_and_uses_no_known_name() {
    let host = Host::new();
    let run_by = |user| {
        let own = host.home.path().join(format!("home-{user}"));
        let output = run(&mut host.unfuse(user, &["doctor"]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("the agent loads"), "{text}");
        assert_eq!(count(&own), 0);
    };
    run_by(ROOT);
    run_by(NOBODY);
}
