//! The profile of another user's JVM: written by that user, owned by the user who records it.
//!
//! The writer parses data from the JVM, so it has the identity of the JVM's owner. It writes to a spool, a directory of
//! the owner's inside the profile directory. The profile directory is closed to that user, so only the writer, which is
//! started inside the spool, can reach it. The recorder copies finished segments from there, and treats them as
//! untrusted files.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::unistd::fchown;
use unfuse_files::{Access, Directory, random_digits};
use unfuse_format::{HostRow, OutsideRow, ProcessRow, ProfileDir, SampleRow, StackRow, Table};

use crate::identity::Identity;

/// The tables of a recording: samples after the tables that they refer to, and the row on the process last.
const TABLES: [&str; 5] = [
    StackRow::NAME,
    HostRow::NAME,
    OutsideRow::NAME,
    SampleRow::NAME,
    ProcessRow::NAME,
];
/// Largest segment of a writer, bytes.
const LARGEST_SEGMENT: u64 = 256 << 20;
/// Maximum number of segments in one round: a writer makes a few between two rounds.
const MOST_SEGMENTS: usize = 10_000;

/// A spool, and the profile to which its segments are copied.
#[derive(Debug)]
pub(super) struct Spool {
    owner: Identity,
    profile: Directory,
    spool: Directory,
    tag: String,
}

impl Spool {
    /// Makes a spool for `owner` in a profile directory.
    ///
    /// # Errors
    /// The system's, and if the profile directory is another user's or open to others.
    pub(super) fn new(dir: &ProfileDir, owner: Identity) -> io::Result<Self> {
        // Not by its path, which may name another directory by now.
        let profile = dir.files().clone();
        let profile = profile.check(Access::Private).map_err(io::Error::other)?;
        let tag = random_digits()?;
        let name = format!(".spool-{tag}");
        let spool = profile
            .create_folder(&name, Access::Private)
            .map_err(io::Error::other)?;
        let spool = Self {
            owner,
            profile,
            spool,
            tag,
        };
        fchown(&spool.spool, Some(owner.uid()), Some(owner.gid()))?;
        Ok(spool)
    }

    /// The directory, for the writer.
    pub(super) fn handle(&self) -> io::Result<OwnedFd> {
        self.spool.as_fd().try_clone_to_owned()
    }

    /// The tag in the names of this spool's files.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// Copies finished segments to the profile, and deletes them from the spool.
    ///
    /// # Errors
    /// The first failure. The other segments are copied nevertheless.
    pub(super) fn deliver(&self) -> io::Result<()> {
        let mut done = Ok(());
        for table in TABLES {
            if let Err(e) = self.deliver_table(table)
                && done.is_ok()
            {
                done = Err(e);
            }
        }
        done
    }

    fn deliver_table(&self, table: &str) -> io::Result<()> {
        let from = match self.spool.folder(table) {
            Ok(from) => from,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let is_segment = |name: &OsStr| name.to_str().is_some_and(|name| self.is_segment(name));
        let mut names = from.find(MOST_SEGMENTS, is_segment)?;
        if names.is_empty() {
            return Ok(());
        }
        names.sort();
        let to = self
            .profile
            .create_folder(table, Access::Private)
            .map_err(io::Error::other)?;
        let mut done = Ok(());
        for name in names {
            if let Err(e) = self.deliver_segment(&from, &to, &name)
                && done.is_ok()
            {
                done = Err(e);
            }
        }
        done
    }

    fn deliver_segment(&self, from: &Directory, to: &Directory, name: &OsStr) -> io::Result<()> {
        let bytes = self.read(from, name)?;
        to.write(name, &bytes)?;
        // If this fails, it is copied again under the same name.
        let _ = from.remove(name);
        Ok(())
    }

    /// Whether a writer could have given a segment this name, and the profile does not have it yet.
    fn is_segment(&self, name: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_plain = !name.starts_with('.') && name.chars().all(plain);
        let tagged = format!("-{}-", self.tag);
        is_plain && name.ends_with(".parquet") && name.contains(&tagged)
    }

    /// Reads a file that is as the writer makes them: no link, no device, the owner's, with one name.
    fn read(&self, from: &Directory, name: &OsStr) -> io::Result<Vec<u8>> {
        let file = from.open_file(name)?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        if metadata.uid() == self.owner.uid().as_raw() && metadata.nlink() == 1 {
            file.take(LARGEST_SEGMENT + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 <= LARGEST_SEGMENT {
                return Ok(bytes);
            }
        }
        let name = name.display();
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{name} in the spool is not a segment of the writer"),
        ))
    }
}

impl Drop for Spool {
    /// Removes the spool with all undelivered segments.
    fn drop(&mut self) {
        let _ = self.spool.delete();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use unfuse_format::SegmentWriter;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn spool(home: &Path) -> (PathBuf, Spool, PathBuf) {
        let profile = home.join("profile");
        let dir = ProfileDir::create(&profile).unwrap();
        let spool = Spool::new(&dir, Identity::current()).unwrap();
        let inside = spool.spool.path().to_owned();
        (profile, spool, inside)
    }

    #[test]
    fn finished_segments_are_moved() {
        let home = tempfile::tempdir().unwrap();
        let (profile, spool, inside) = spool(home.path());
        assert_eq!(mode(&inside), 0o700);
        spool.deliver().unwrap();
        fs::create_dir(inside.join("samples")).unwrap();
        let name = |end: &str| format!("samples/host-1-{}-{end}", spool.tag());
        fs::write(inside.join(name("00000.parquet")), "rows").unwrap();
        fs::write(inside.join(name("00001.tmp")), "half").unwrap();
        spool.deliver().unwrap();
        let delivered = profile.join(name("00000.parquet"));
        assert_eq!(fs::read_to_string(&delivered).unwrap(), "rows");
        assert_eq!(mode(&delivered), 0o600);
        let left: Vec<_> = fs::read_dir(inside.join("samples"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left.len(), 1, "{left:?}");
        drop(spool);
        assert!(!inside.exists());
    }

    /// Files of a writer in a spool, and the result in the profile.
    #[test]
    fn all_is_private() {
        let home = tempfile::tempdir().unwrap();
        let (profile, spool, inside) = spool(home.path());
        let writer = format!("host-1-{}", spool.tag());
        let dir = ProfileDir::create(&inside).unwrap();
        let mut samples = SegmentWriter::<SampleRow>::new(&dir, &writer);
        samples.push(SampleRow::default());
        samples.flush().unwrap();
        let segment = samples.take_last().unwrap();
        let check = |place: &Path| {
            let folder = place.join(SampleRow::NAME);
            let modes = [place, &folder, &folder.join(&segment)].map(mode);
            assert_eq!(modes, [0o700, 0o700, 0o600], "{}", place.display());
        };
        check(&inside);
        assert_eq!(mode(&inside.join("unfuse.json")), 0o600);
        spool.deliver().unwrap();
        check(&profile);
    }

    #[test]
    fn what_is_no_segment_is_refused_and_the_rest_is_moved() {
        let home = tempfile::tempdir().unwrap();
        let (profile, spool, inside) = spool(home.path());
        let secret = home.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let samples = inside.join("samples");
        fs::create_dir(&samples).unwrap();
        let name = |end: u32| format!("host-1-{}-{end}.parquet", spool.tag());
        symlink(&secret, samples.join(name(0))).unwrap();
        symlink("/dev/zero", samples.join(name(1))).unwrap();
        fs::hard_link(&secret, samples.join(name(2))).unwrap();
        mkfifo(&samples.join(name(3)), Mode::S_IRWXU).unwrap();
        fs::write(samples.join(name(4)), "rows").unwrap();
        // The possible name of a segment of an earlier recording.
        fs::write(samples.join("host-1-00000.parquet"), "rows").unwrap();
        symlink(home.path(), inside.join("hosts")).unwrap();
        assert!(spool.deliver().is_err());
        let delivered: Vec<_> = fs::read_dir(profile.join("samples"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(delivered, [name(4).as_str()]);
        assert!(!profile.join("hosts").exists());
        drop(spool);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    }

    #[test]
    fn the_spool_is_in_the_directory_that_was_opened() {
        let home = tempfile::tempdir().unwrap();
        let (path, moved) = (home.path().join("profile"), home.path().join("moved"));
        let dir = ProfileDir::create(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        let spool = Spool::new(&dir, Identity::current()).unwrap();
        let names = |path: &Path| fs::read_dir(path).unwrap().count();
        assert_eq!((names(&path), names(&moved)), (0, 2));
        drop(spool);
        assert_eq!((names(&path), names(&moved)), (0, 1));
    }

    #[test]
    fn an_open_profile_directory_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let profile = home.path().join("profile");
        let dir = ProfileDir::create(&profile).unwrap();
        fs::set_permissions(&profile, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Spool::new(&dir, Identity::current()).unwrap_err();
        assert!(
            error.to_string().contains("other users can read"),
            "{error}"
        );
    }
}
