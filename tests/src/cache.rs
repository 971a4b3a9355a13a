//! What tests install into the cache directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::root;

/// The cache directory of `unfuse setup`, usually `~/.cache/unfuse`.
pub(crate) fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = base.or_else(home).expect("HOME or XDG_CACHE_HOME is set");
    base.join("unfuse")
}

/// The directory NAME-HASH for what these files below `tests` pin. `install` fills it if it is missing. Tests that need it
/// at the same time, in one process or several, wait for the first.
///
/// # Panics
/// If that fails.
pub(crate) fn installed(
    name: &str,
    pins: &[impl AsRef<Path>],
    install: impl FnOnce(&Path),
) -> PathBuf {
    let pins = pins.iter().map(|pin| root().join("tests").join(pin));
    let bytes = pins.flat_map(|pin| fs::read(pin).expect("the lock files are there"));
    let home = cache().join(format!("{name}-{:08x}", hash(bytes)));
    let marker = home.join("installed");
    if !marker.exists() {
        fs::create_dir_all(cache()).expect("the cache directory can be written");
        let lock =
            File::create(home.with_extension("lock")).expect("the cache directory can be written");
        lock.lock().expect("a lock");
        if !marker.exists() {
            install(&home);
            fs::write(marker, "").expect("the cache directory can be written");
        }
    }
    home
}

/// A hash of bytes, for names of directories.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let bytes = bytes.into_iter();
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }) as u32
}
