//! Root records the JVM of a user who has planted links, FIFOs and devices in all places that root might read.
//!
//! These tests need root, and `setpriv` to start JVMs as `nobody`.

use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use unfuse_tests::{
    HotTruth, Mark, PATIENCE, agent, check_hot, compile, is, jdks, run, samples, thread, top,
    unfuse,
};

/// `nobody` and its group.
const NOBODY: u32 = 65_534;

/// CAP_IPC_LOCK and CAP_PERFMON, which opening an event and mapping its ring need.
const TO_OPEN_EVENTS: u64 = 1 << 14 | 1 << 38;

/// Held for reading while a JVM of `nobody` starts, for writing while a test has planted files in `nobody`'s folder of
/// performance data. A starting JVM opens all files there and would wait for the writer of a FIFO.
static PERFORMANCE_DATA: RwLock<()> = RwLock::new(());

/// A command that runs a program as the user `nobody`.
fn by_nobody(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    let ids = NOBODY.to_string();
    command
        .args(["--reuid", &ids, "--regid", &ids, "--clear-groups"])
        .arg(program.as_ref());
    command
}

/// `Hot` of `tests/programs`, running as `nobody`.
struct Running {
    java: Child,
    truth: HotTruth,
    /// Files that the test made in /tmp.
    planted: Vec<PathBuf>,
}

impl Running {
    /// It runs until it is dropped.
    fn start(java_home: &Path, home: &Path, cwd: &Path) -> Self {
        let own = fs::metadata("/proc/self").expect("/proc").uid();
        assert_eq!(
            own, 0,
            "this test records another user's JVM: run it as root"
        );
        compile(java_home, "Hot.java", home);
        let starting = PERFORMANCE_DATA.read();
        let _starting = starting.unwrap_or_else(PoisonError::into_inner);
        // The JVM may not be able to write to its working directory.
        let truth = HotTruth::in_dir(&home.join("work"));
        let java = by_nobody(java_home.join("bin/java"))
            .args([&truth.option(), "-cp"])
            .arg(home)
            .args(["Hot", "3600000"])
            .current_dir(cwd)
            .stdout(Stdio::null())
            .spawn()
            .expect("java starts");
        let mut running = Self {
            java,
            truth,
            planted: Vec::new(),
        };
        // A starting JVM removes a file in place of its socket, handles SIGQUIT, and then starts its compilers.
        let has_started = |pid| thread(pid as i32, "C1 CompilerThre").is_some();
        let until = Instant::now() + PATIENCE;
        while !has_started(running.java.id()) {
            assert!(running.is_alive() && Instant::now() < until, "no JVM");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ids(running.java.id(), "Uid:"), [NOBODY; 4]);
        running
    }

    fn is_alive(&mut self) -> bool {
        self.java.try_wait().expect("a child").is_none()
    }

    fn pid(&self) -> String {
        self.java.id().to_string()
    }

    /// `unfuse record` by root, which must not hang.
    fn record(&self, profile: &Path) -> Output {
        Command::new("timeout")
            .args(["--kill-after=10", "120"])
            .arg(unfuse().get_program())
            .args(["record", "--for", "1s", "--rate", "1000", "--out"])
            .arg(profile)
            .args(["--pid", &self.pid()])
            .output()
            .expect("it runs")
    }

    /// Checks that the recording is refused with this message, leaves no profile and does not disturb the JVM.
    fn is_refused(&mut self, profile: &Path, says: &str) {
        let output = self.record(profile);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{says}: {text}");
        assert!(text.contains(says), "{text}");
        assert!(text.contains("remove it"), "{text}");
        assert!(!profile.exists(), "{says}: an empty profile stays");
        assert!(self.is_alive(), "{says}");
    }

    fn is_recorded(&self, profile: &Path, what: &str) {
        let output = self.record(profile);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{what}: {text}");
        let rows = top(profile, &["--by", "method"]);
        let hot = samples(&rows, |row| is(row, "Hot."));
        assert!(hot > 0, "{what}: {rows:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.java.kill();
        let _ = self.java.wait();
        for path in &self.planted {
            let _ = fs::remove_file(path);
        }
    }
}

/// The numbers in a line of a process's status.
fn ids(pid: u32, name: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = line.unwrap_or_default().split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// A mask in a process's status.
fn mask(pid: u32, set: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix(set))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// A directory that all users can read, with a directory of `nobody` in it.
fn directories() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("ours");
    let work = home.path().join("work");
    fs::create_dir(&work).expect("a directory");
    chown(&work, Some(NOBODY), Some(NOBODY)).expect("root may");
    (home, work)
}

/// Waits until a process belongs to `nobody` and has at most the `permitted` capabilities.
fn check_process(pid: u32, what: &str, permitted: u64) {
    let until = Instant::now() + PATIENCE;
    loop {
        let has_ended = || !Path::new(&format!("/proc/{pid}")).exists();
        let is_nobodys = ids(pid, "Uid:") == [NOBODY; 4]
            && ids(pid, "Gid:") == [NOBODY; 4]
            && ids(pid, "Groups:").is_empty()
            && ids(pid, "NoNewPrivs:") == [1];
        let holds = mask(pid, "CapPrm:").is_some_and(|held| held & !permitted == 0)
            && mask(pid, "CapEff:") == Some(0);
        if is_nobodys && holds {
            return;
        }
        assert!(!has_ended(), "{what} has ended");
        assert!(
            Instant::now() < until,
            "{what}: {}",
            fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that all files of a profile belong to root and that others cannot access them.
fn check_private(path: &Path) {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    assert_eq!((owner, mode), (0, expected), "{}", path.display());
    assert!(metadata.is_dir() || metadata.is_file());
    if metadata.is_dir() {
        for entry in fs::read_dir(path).expect("a directory").flatten() {
            let name = entry.file_name();
            assert!(!name.to_string_lossy().starts_with(".spool"), "{name:?}");
            check_private(&entry.path());
        }
    }
}

/// Checks that the writer's directory in a profile belongs to the JVM's owner and that others cannot access it.
fn check_spool(profile: &Path) {
    let mut entries = fs::read_dir(profile).expect("a directory").flatten();
    let spool = entries.find(|entry| entry.file_name().to_string_lossy().starts_with(".spool"));
    let metadata = spool.expect("a spool").metadata().expect("it is there");
    let is = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
    assert_eq!(is, (NOBODY, NOBODY, 0o700));
}

#[test]
fn a_jvm_of_another_user_is_recorded_by_processes_of_that_user() {
    for java_home in jdks() {
        let what = java_home.display().to_string();
        let (home, work) = directories();
        let mut java = Running::start(&java_home, home.path(), &work);
        java.truth.wait_until_warm();
        let profile = home.path().join("profile");
        let mut command = unfuse();
        command
            .args(["record", "--for", "8s", "--rate", "1000", "--out"])
            .arg(&profile)
            .args(["--pid", &java.pid()]);
        let mark = Mark::on(&mut command, home.path());
        let mut recorder = command.spawn().expect("it runs");
        mark.wait_for("unfuse-writer");
        check_spool(&profile);
        for (name, permitted) in [
            ("unfuse-writer", 0),
            ("unfuse-s-", 0),
            ("unfuse-manager", TO_OPEN_EVENTS),
        ] {
            let pid = mark.wait_for(name) as u32;
            check_process(pid, &format!("{what}, {name}"), permitted);
        }
        assert!(recorder.wait().expect("it ends").success(), "{what}");
        check_hot(&profile, &java.truth, 0.6, &what);
        check_private(&profile);
        // The same directory can store another recording of the same process.
        java.is_recorded(&profile, &format!("{what}, again"));
        check_private(&profile);
        mark.wait_for_end();
        assert!(java.is_alive(), "{what}");
    }
}

/// Runs `unfuse pause` as a user, from a copy of the program that all users may run. Returns its message if it fails.
fn pause(home: &Path, user: u32, pid: &str) -> Result<(), String> {
    let program = home.join("unfuse");
    fs::copy(unfuse().get_program(), &program).expect("our directory");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("ours");
    let ids = user.to_string();
    let output = Command::new("setpriv")
        .args(["--reuid", &ids, "--regid", &ids, "--clear-groups"])
        .arg(&program)
        .args(["pause", "--pid", pid])
        .output()
        .expect("it runs");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn only_root_and_the_owner_pause_a_recording() {
    const STRANGER: u32 = 12_345;
    let (home, work) = directories();
    let java = Running::start(&jdks()[0], home.path(), &work);
    java.truth.wait_until_warm();
    let pid = java.pid();
    // A process of another user listens at the address of the profiler.
    let name = format!("unfuse-pause-{pid}");
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let impostor = UnixListener::bind_addr(&address).expect("it is free");
    let said = pause(home.path(), 0, &pid).expect_err("it is no profiler");
    assert!(said.contains("a process of user 0 listens"), "{said}");
    drop(impostor);

    let profile = home.path().join("profile");
    let mut command = unfuse();
    command
        .args(["record", "--for", "60s", "--out"])
        .arg(&profile)
        .args(["--pid", &pid]);
    let mark = Mark::on(&mut command, home.path());
    let mut recorder = command.spawn().expect("it runs");
    mark.wait_for("unfuse-s-");
    let said = pause(home.path(), STRANGER, &pid).expect_err("it is nobody's");
    assert!(said.contains("is another user's"), "{said}");
    for user in [NOBODY, 0] {
        assert_eq!(pause(home.path(), user, &pid), Ok(()));
    }
    run(Command::new("kill").args(["-INT", &recorder.id().to_string()]));
    assert!(recorder.wait().expect("it ends").success());
    mark.wait_for_end();
}

/// A file of root to which planted links lead, and which must not change.
struct Precious(PathBuf);

impl Precious {
    fn new(home: &Path) -> Self {
        let path = home.join("precious");
        fs::write(&path, "precious").expect("our directory");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("ours");
        Self(path)
    }

    fn check(&self) {
        let text = fs::read_to_string(&self.0).expect("it is there");
        let metadata = fs::metadata(&self.0).expect("it is there");
        let is = (text.as_str(), metadata.uid(), metadata.mode() & 0o777);
        assert_eq!(is, ("precious", 0, 0o600));
    }
}

/// Plants each of these files as `nobody`, in turn, in a place that root might read.
fn plant_each(place: &Path, precious: &Precious, mut check: impl FnMut(&str)) {
    let (target, place) = (precious.0.display(), place.display());
    let (target, place) = (target.to_string(), place.to_string());
    let (target, place) = (target.as_str(), place.as_str());
    let plants: [(&str, &[&str]); 5] = [
        ("a symbolic link", &["ln", "-s", target, place]),
        ("a symbolic link", &["ln", "-s", "/dev/zero", place]),
        ("a FIFO", &["mkfifo", "--mode", "0666", place]),
        ("a directory", &["mkdir", "--mode", "0777", place]),
        // The numbers of /dev/zero.
        (
            "a device",
            &["mknod", "--mode", "0666", place, "c", "1", "5"],
        ),
    ];
    for (what, command) in plants {
        // Only root can make a device; below, it is given to `nobody`.
        let mut planter = match what {
            "a device" => Command::new(command[0]),
            _ => by_nobody(command[0]),
        };
        run(planter.args(&command[1..]));
        lchown(place, Some(NOBODY), Some(NOBODY)).expect("root may");
        check(what);
        precious.check();
        run(by_nobody("rm").args(["-r", "--", place]));
    }
}

#[test]
fn links_in_place_of_the_trigger_are_refused() {
    let java_home = &jdks()[0];
    let (home, work) = directories();
    let precious = Precious::new(home.path());
    let profile = home.path().join("profile");
    let mut java = Running::start(java_home, home.path(), &work);
    let trigger = work.join(format!(".attach_pid{}", java.pid()));
    let shown = format!("/proc/{0}/cwd/.attach_pid{0}", java.pid());
    plant_each(&trigger, &precious, |what| {
        java.is_refused(&profile, &format!("{shown} is {what}; "));
    });
    java.is_recorded(&profile, "without them");
    drop(java);

    // If the JVM's user cannot write to its working directory, the trigger is in /tmp.
    let mut java = Running::start(java_home, home.path(), home.path());
    let trigger = Path::new("/tmp").join(format!(".attach_pid{}", java.pid()));
    java.planted.push(trigger.clone());
    let profile = home.path().join("other");
    let shown = format!("/proc/{0}/root/tmp/.attach_pid{0}", java.pid());
    plant_each(&trigger, &precious, |what| {
        java.is_refused(&profile, &format!("{shown} is {what}; "));
    });
    java.is_recorded(&profile, "in /tmp");
    assert!(!trigger.exists(), "the trigger stays");
}

#[test]
fn links_in_place_of_the_socket_are_refused() {
    let (home, work) = directories();
    let precious = Precious::new(home.path());
    let mut java = Running::start(&jdks()[0], home.path(), &work);
    let socket = Path::new("/tmp").join(format!(".java_pid{}", java.pid()));
    java.planted.push(socket.clone());
    let profile = home.path().join("profile");
    let shown = format!("/proc/{0}/root/tmp/.java_pid{0}", java.pid());
    plant_each(&socket, &precious, |what| {
        java.is_refused(&profile, &format!("{shown} is {what}, not the socket"));
    });
    java.is_recorded(&profile, "without them");
}

#[test]
fn links_in_place_of_performance_data_are_not_read() {
    let (home, work) = directories();
    let precious = Precious::new(home.path());
    let java = Running::start(&jdks()[0], home.path(), &work);
    let folder = Path::new("/tmp/hsperfdata_nobody");
    let data = folder.join(java.pid());
    let planting = PERFORMANCE_DATA.write();
    let _planting = planting.unwrap_or_else(PoisonError::into_inner);
    run(by_nobody("rm").arg(&data));
    plant_each(&data, &precious, |what| {
        let profile = home.path().join("profile");
        java.is_recorded(&profile, &format!("{what} as performance data"));
        fs::remove_dir_all(&profile).expect("a profile");
    });
    // Folders of performance data of other users are not read.
    let folder = Path::new("/tmp/hsperfdata_planted");
    fs::create_dir(folder).expect("no other test makes it");
    let zeros = folder.join(java.pid());
    std::os::unix::fs::symlink("/dev/zero", zeros).expect("our folder");
    let profile = home.path().join("profile");
    let output = java.record(&profile);
    fs::remove_dir_all(folder).expect("our folder");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn root_loads_no_library_that_others_can_change() {
    let (home, work) = directories();
    let java = Running::start(&jdks()[0], home.path(), &work);
    let library = work.join("libunfuse.so");
    fs::copy(agent(), &library).expect("the agent is built");
    let output = unfuse()
        .env("UNFUSE_AGENT", &library)
        .args(["record", "--for", "1s", "--pid", &java.pid(), "--out"])
        .arg(home.path().join("profile"))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    let says = format!("{} belongs to user {NOBODY}", work.display());
    assert!(text.contains(&says), "{text}");
}
